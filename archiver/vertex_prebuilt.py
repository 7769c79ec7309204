"""A second archive, NAME.vertex/model.mar, for Google's prebuilt PyTorch containers on Vertex AI.

They hold Python 3.9, torch, TorchServe and numpy, but neither OpenVINO nor a tokenizer: what is missing lies in the
archive's packages/, fetched by a lock file with hashes, and handler/prebuilt_handler.py finds it there. One worker with
all cores, and batches of one request: with TorchServe's envelope a handler cannot tell the requests of a batch apart.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from archiver import archive, model_config, proof, weights
from archiver.errors import PackError
from archiver.options import PackOptions
from archiver.probe import Probe
from archiver.proof import Worker
from archiver.staging import CONFIG, MODEL, copy_handler
from marvec.settings import Settings

FILE = "model.mar"  # what the containers look for; they serve it under the name in it
PYTHON = "3.9"
LOCK = Path(__file__).resolve().parent.parent / "docker" / "requirements" / "prebuilt-py39.txt"
PACKAGES = ("openvino", "orjson", "safetensors", "tokenizers")

_NAME = "model"
_HANDLER = "prebuilt_handler.py"
_FOLDER = "packages"
_BATCH_SIZE = 1
_ENVELOPE = "json"
# Not there either, but installed where archives are packed: an import of one of them must not go unnoticed.
_ABSENT = (*PACKAGES, "huggingface_hub", "nncf", "openvino_telemetry", "sentence_transformers", "transformers")
_PLATFORMS = (*(f"manylinux_2_{minor}_x86_64" for minor in range(28, 16, -1)), "manylinux2014_x86_64")
# Of OpenVINO's own libraries, what serves CPUs stays, as in docker/Dockerfile.
_LOADED_ON_DEMAND = ("*_plugin.so*", "*_frontend.so*")
_NEEDED = ("_intel_cpu_plugin.so", "_ir_frontend.so")


def fetch(folder: Path, python: str = PYTHON, lock: Path = LOCK) -> None:
    """Unpack what the containers lack.

    Args:
        folder: Is made, and filled.
        python: Version of the interpreter that will import it.
        lock: The exact versions for that Python, with hashes.

    Raises:
        PackError: When there is no lock file, or pip cannot get what it says.
    """
    if not lock.is_file():
        raise PackError(f"--vertex-prebuilt: {lock} is missing: pack from a checkout of Marvec's repository")
    platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-compile", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", str(lock)]
    command += ["--implementation", "cp", "--python-version", python, *platforms, "--target", str(folder)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
        raise PackError(
            f"--vertex-prebuilt: pip cannot fetch {', '.join(PACKAGES)} for Python {python}: {(told or ['?'])[-1]}"
        )
    for name in ("bin", "openvino/include", "openvino/cmake"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for pattern in _LOADED_ON_DEMAND:
        for file in (folder / "openvino" / "libs").glob(pattern):
            if not any(name in file.name for name in _NEEDED):
                file.unlink()


def size_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def require_openvino(encoder: str) -> None:
    """Refuse what needs more than the containers can be given.

    Raises:
        PackError: For any engine but OpenVINO.
    """
    if encoder != "openvino":
        raise PackError(
            f"--vertex-prebuilt: this model does not convert to OpenVINO, and Google's prebuilt containers have no "
            f"{encoder} for it; pack without this option and serve it from an image of your own (marvec image build)"
        )


def build(staged: Path, folder: Path, packages: Path, options: PackOptions, settings: Settings) -> None:
    """Archive a staged tree as model.mar.

    Args:
        staged: The usual archive's tree, which becomes this one's.
        folder: An empty folder to write model.mar into.
        packages: What `fetch` made; is moved.
        options: For the version and the workers.
        settings: As in the usual archive.
    """
    packages.rename(staged / _FOLDER)
    copy_handler(staged, _HANDLER)
    weights.drop(staged / MODEL)  # those for GPUs, which need transformers
    config = model_config.render(settings, batch_size=_BATCH_SIZE, workers=options.workers or 1)
    (staged / CONFIG).write_text(config, encoding="utf-8")
    archive.build(staged, folder, _NAME, options.version, _HANDLER)


def prove(folder: Path, settings: Settings, probe: Probe) -> None:
    """Load model.mar as those containers' worker does, where none of the packages is installed, and ask it.

    What the archive holds is for another Python, so this one's own copies of the packages stand in its place.

    Args:
        folder: Holds model.mar, and nothing else.
        settings: As in the archive.
        probe: What to ask, and what to expect.

    Raises:
        PackError: As proof.prove does.
    """
    unpacked = folder / "unpacked"
    unpacked.mkdir()
    proof.prove(folder / FILE, unpacked, _NAME, settings, probe, Worker(_ENVELOPE, _ABSENT, _use_own_packages))


def _use_own_packages(unpacked: Path) -> None:
    for name in PACKAGES:
        bundled, own = unpacked / _FOLDER / name, importlib.util.find_spec(name)
        if not bundled.is_dir() or own is None or own.origin is None:
            raise PackError(f"--vertex-prebuilt: {_FOLDER}/{name} is missing in the archive, or {name} here")
        shutil.rmtree(bundled)
        bundled.symlink_to(Path(own.origin).parent, target_is_directory=True)
