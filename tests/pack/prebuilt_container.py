"""A stand-in for Google's prebuilt container: TorchServe with what is known to be there, and nothing of Marvec's."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from archiver import vertex_prebuilt
from serving.java import find_java
from serving.ports import free_ports
from tests.install.other_pythons import ROOT, environment_with

# As far as is known, but for Python and torch, whose 3.9 and 2.4 are not at hand everywhere.
HELD = ["torch", "torchserve", "numpy", "PyYAML", "psutil", "Pillow", "packaging", "setuptools"]
READY_DEADLINE_S = 180.0
EXIT_DEADLINE_S = 30.0
CLEARED = ("PYTHONPATH", "OMP_NUM_THREADS", "TS_CONFIG_FILE", "TEMP")


def python_of_the_container() -> Path:
    """Return the interpreter of an environment that holds just that, in the versions tried together."""
    return environment_with(Path(sys.executable), HELD, ROOT / "requirements" / "constraints.txt")


def lock_for_this_python(folder: Path) -> Path:
    """Write what images lock of the bundled packages for Python 3.11."""
    locked = (ROOT / "docker" / "requirements" / "server-py311.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^\S+==(?:.*\\\n)*.*\n", locked, flags=re.MULTILINE)
    file = folder / "prebuilt-py311.txt"
    file.write_text("".join(entry for entry in entries if entry.split("==")[0] in vertex_prebuilt.PACKAGES))
    return file


def for_this_python(archive: Path, folder: Path) -> Path:
    """Write model.mar into a folder with its bundle made anew for the Python of these tests."""
    tree = folder / "tree"
    with zipfile.ZipFile(archive) as content:
        content.extractall(tree)
    shutil.rmtree(tree / "packages")
    version = ".".join(map(str, sys.version_info[:2]))
    vertex_prebuilt.fetch(tree / "packages", version, lock_for_this_python(folder))
    store = folder / "store"
    store.mkdir()
    with zipfile.ZipFile(store / archive.name, "w") as content:
        for file in sorted(tree.rglob("*")):
            content.write(file, file.relative_to(tree))
    return store


@contextmanager
def torchserve(python: Path, store: Path, *settings: str) -> Iterator[str]:
    """Start TorchServe on model.mar by its own command, and give the address of predictions."""
    inference, management, metrics, *grpc = free_ports(5)
    config = [
        f"inference_address=http://127.0.0.1:{inference}",
        f"management_address=http://127.0.0.1:{management}",
        f"metrics_address=http://127.0.0.1:{metrics}",
        f"grpc_inference_port={grpc[0]}",
        f"grpc_management_port={grpc[1]}",
        *settings,
    ]
    with tempfile.TemporaryDirectory(prefix="mt-") as name:  # pytest's own paths are too long for TorchServe's sockets
        folder = Path(name)
        (folder / "config.properties").write_text("\n".join(config))
        environment = {key: value for key, value in os.environ.items() if key not in CLEARED}
        environment |= {"TMPDIR": name, "JAVA_HOME": str(find_java(os.environ).path.resolve().parent.parent)}
        command = [str(python.with_name("torchserve")), "--start", "--foreground", "--no-config-snapshots"]
        command += ["--disable-token-auth", "--ts-config", "config.properties"]
        command += ["--model-store", str(store), "--models", "model=model.mar"]
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            _wait(process, f"http://127.0.0.1:{management}/models/model", log)
            yield f"http://127.0.0.1:{inference}"
        finally:
            _end(process)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            workers = requests.get(url, timeout=10).json()[0]["workers"]
        except (requests.ConnectionError, KeyError):  # not up yet, or the model is not registered yet
            workers = []
        if workers and all(worker["status"] == "READY" for worker in workers):
            return
        time.sleep(0.2)
    raise TimeoutError(f"no READY worker:\n{log.read_text(errors='replace')[-8000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command, its Java and its workers, which are one session of their own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(EXIT_DEADLINE_S)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
