"""config.properties as a boot completes it, and the command line of TorchServe's Java."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from serving.errors import SettingsError
from serving.java import Java
from serving.ports import Ports, free_ports
from serving.worker_plan import THREADS_VARIABLE, WorkerPlan

MAIN_CLASS = "org.pytorch.serve.ModelServer"
LOG_CONFIG = Path(__file__).resolve().with_name("log4j2.xml")
# They would beat the configuration that we hand over, write logs beside the run folder, or (PYTHONPATH, which
# TorchServe puts before an archive's own folder) bring in another library than the one that was packed.
REMOVED_VARIABLES = ("TS_CONFIG_FILE", "TS_MODEL_SERVER_HOME", "LOG_LOCATION", "METRICS_LOCATION", "TEMP", "PYTHONPATH")


@dataclass(frozen=True)
class BaseConfig:
    """config.properties as it stands in the repository or the image.

    Attributes:
        path: The file; paths inside it are relative to its folder.
        values: Key to value, `$$NAME$$` unresolved.
        text: The file's text.
    """

    path: Path
    values: Mapping[str, str]
    text: str

    @classmethod
    def read(cls, path: Path) -> BaseConfig:
        """Reads the file.

        Args:
            path: A config.properties of one `key=value` a line.

        Returns:
            Its content.

        Raises:
            SettingsError: The file cannot be read.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as err:
            raise SettingsError(f"{path} cannot be read ({err.strerror}): name another with --config") from err
        except UnicodeDecodeError as err:
            raise SettingsError(f"{path} is not UTF-8 text: name another with --config") from err
        lines = (line.strip() for line in text.splitlines())
        pairs = (line.partition("=") for line in lines if line and not line.startswith(("#", "!")))
        return cls(path.resolve(), {key.strip(): value.strip() for key, _, value in pairs}, text)

    def folder(self, key: str) -> Path:
        """A path setting, absolute.

        Args:
            key: The setting's name.

        Returns:
            The path, relative ones resolved against the file's folder.

        Raises:
            SettingsError: The file does not have the key.
        """
        if key not in self.values:
            raise SettingsError(f"{self.path} has no {key}: add it")
        return self.path.parent / self.values[key]


def run_time_config(base: BaseConfig, store: Path, models: Sequence[tuple[str, Path]], plan: WorkerPlan) -> str:
    """The properties that TorchServe gets: the base, then what a boot knows; of a key given twice the last counts.

    Args:
        base: config.properties.
        store: The model store.
        models: The name and the unpacked archive of each model to load.
        plan: How many workers.

    Returns:
        The text of a properties file.

    Raises:
        SettingsError: metrics_config is not there.
    """
    metrics = base.folder("metrics_config")
    if not metrics.is_file():
        raise SettingsError(f"{base.path}: metrics_config={metrics} is not there")
    # Workers listen on sockets in the run folder; where Java cannot use those, on TCP ports from this one on.
    *grpc_ports, worker_port = free_ports(3)
    added = {
        "model_store": store.resolve(),
        "load_models": ",".join(f"{name}={folder}" for name, folder in models),
        "default_workers_per_model": plan.workers,
        "metrics_config": metrics.resolve(),
        "grpc_inference_port": grpc_ports[0],
        "grpc_management_port": grpc_ports[1],
        "initial_worker_port": worker_port,
    }
    lines = "".join(f"{key}={_escaped(str(value))}\n" for key, value in added.items())
    return f"{base.text.rstrip()}\n\n# Added for this boot.\n{lines}"


def java_command(
    java: Java, base: BaseConfig, config: Path, scratch: Path, heap_bytes: int, *, debug: bool
) -> list[str]:
    """Starts Java itself, not the `torchserve` launcher: its exit status, its signals and its pid are then ours.

    Args:
        java: The Java to run.
        base: Its `vmargs` are passed on.
        config: The file with `run_time_config`'s text.
        heap_bytes: Java's largest heap, and as much outside it, unless `vmargs` say otherwise.
        scratch: java.io.tmpdir, with TorchServe's links to the unpacked models and the workers' sockets.
        debug: Let TorchServe say everything.

    Returns:
        The command.

    Raises:
        SettingsError: TorchServe, or PyYAML, which it needs without declaring it, is not installed.
    """
    home = torchserve_home()
    vmargs = shlex.split(base.values.get("vmargs", ""))
    memory = {"-Xmx": f"{heap_bytes >> 20}m", "-XX:MaxDirectMemorySize=": f"{heap_bytes >> 20}m"}
    level, trace = ("debug", "60") if debug else ("warn", "1")
    return [
        str(java.path),
        *java.options(),
        *(option + size for option, size in memory.items() if not any(arg.startswith(option) for arg in vmargs)),
        *vmargs,
        f"-Dmodel_server_home={home}",
        f"-Djava.io.tmpdir={scratch}",
        f"-Dlog4j.configurationFile={LOG_CONFIG.as_uri()}",
        f"-Dmarvec.level={level}",
        f"-Dmarvec.trace={trace}",
        "-cp",
        str(home / "ts" / "frontend" / "*"),
        MAIN_CLASS,
        # The workers run on the interpreter that runs this: its packages are the ones that were installed for them.
        "--python",
        sys.executable,
        "-f",
        str(config),
        # No snapshots: on a restart one would silently beat the configuration.
        "-ncs",
    ]


def java_environment(environment: Mapping[str, str], ports: Ports, plan: WorkerPlan, scratch: Path) -> dict[str, str]:
    """What Java, and through it every worker, gets to see.

    Args:
        environment: Usually `os.environ`.
        ports: For the `$$NAME$$` in config.properties.
        plan: Its threads become OMP_NUM_THREADS unless the operator set that.
        scratch: The workers' temporary files, gone with the run folder.

    Returns:
        The environment.
    """
    kept = {name: value for name, value in environment.items() if name not in REMOVED_VARIABLES}
    kept.setdefault(THREADS_VARIABLE, str(plan.threads))
    # Java takes the names of files from the locale; in one that is not UTF-8 it cannot open a path beyond ASCII.
    return {**kept, **ports.for_config(), "TMPDIR": str(scratch), "LC_ALL": "C.UTF-8"}


def torchserve_home() -> Path:
    """The folder that holds the package `ts`, found without importing it (it would import torch).

    Returns:
        A site-packages folder.

    Raises:
        SettingsError: TorchServe or PyYAML is not installed.
    """
    found = importlib.util.find_spec("ts")
    home = Path(found.origin).resolve().parent.parent if found and found.origin else None
    if home is None or not (home / "ts" / "frontend").is_dir():
        raise SettingsError(f"TorchServe is not installed for {sys.executable}: pip install torchserve==0.12.0")
    if importlib.util.find_spec("yaml") is None:
        raise SettingsError(f"PyYAML is not installed for {sys.executable}, TorchServe needs it: pip install PyYAML")
    return home


def _escaped(value: str) -> str:
    """Java reads properties as Latin-1, with a backslash as the escape for itself and for all other characters."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
    units = escaped.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)
