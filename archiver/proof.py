"""An archive is proved before anybody sees it: unpacked, loaded and asked in a fresh process, as a worker would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml

from archiver.errors import PackError
from archiver.probe import Probe
from archiver.progress import watched
from archiver.staging import CONFIG
from marvec.encoder import precision
from marvec.errors import SettingsError
from marvec.settings import Settings

_SCRIPT = Path(__file__).with_name("worker_check.py")
_TIMEOUT_S = 900
_TAIL_LINES = 5


@dataclass(frozen=True)
class Worker:
    """How a worker differs from one of `marvec serve` in this environment.

    Attributes:
        envelope: TorchServe's service_envelope; "" for none.
        absent: Packages that are installed here and not there: the archive's own are found, or none.
        prepare: Makes an archive for another interpreter loadable by this one; gets the unpacked folder.
    """

    envelope: str = ""
    absent: tuple[str, ...] = ()
    prepare: Callable[[Path], None] | None = None


def prove(
    archive: Path, folder: Path, name: str, settings: Settings, probe: Probe, worker: Worker | None = None
) -> None:
    """Load an archive as TorchServe's worker does, ask it, and compare.

    Args:
        archive: The .mar.
        folder: An empty folder to unpack it in.
        name: The model's name on the server.
        settings: As in the archive's model-config.yaml.
        probe: What to ask, and what to expect.
        worker: What is special about the worker.

    Raises:
        PackError: When the archive is damaged, does not load, or gives another answer; with the first real cause.
    """
    worker = worker or Worker()
    size_bytes = archive.stat().st_size
    try:
        with watched("unpack", folder, size_bytes), zipfile.ZipFile(archive) as content:
            content.extractall(folder)
    except zipfile.BadZipFile as err:
        raise PackError(f"{archive.name}: damaged as it was written: {err}") from err
    if worker.prepare is not None:
        worker.prepare(folder)
    dtype = dtype_here(settings.engine.dtype)
    _set_dtype(folder, dtype)
    gpu_id = 0 if torch.cuda.is_available() else None
    report = _run(folder, name, gpu_id, worker, {"instances": [probe.text]})
    if "error" in report:
        raise PackError(f"{archive.name}: does not load as TorchServe would load it: {report['error']}")
    if report["status"] != 200:
        raise PackError(f"{archive.name}: answers a text with {report['status']}: {report['body']}")
    try:
        probe.require(str(report["body"]), settings, dtype)
    except PackError as err:
        raise PackError(f"{archive.name}: {err}") from err


def dtype_here(dtype: str) -> str:
    """The dtype to prove an archive in: its own, or float32 where this machine would have to emulate that."""
    try:
        precision.settle(dtype, "cuda:0" if torch.cuda.is_available() else "cpu")
    except SettingsError:
        return "float32"
    return dtype


def _set_dtype(folder: Path, dtype: str) -> None:
    file = folder / CONFIG
    config = yaml.safe_load(file.read_text(encoding="utf-8"))
    config["handler"]["engine"]["dtype"] = dtype
    file.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _run(
    folder: Path, name: str, gpu_id: int | None, worker: Worker, request: dict[str, list[str]]
) -> dict[str, object]:
    """Start the worker's script as TorchServe's frontend starts a worker: its folder, its search path, no network."""
    report, log = folder.with_name("report.json"), folder.with_name("worker.log")
    # TorchServe puts its own PYTHONPATH first; the one of whoever packs is not the server's, so it comes last here.
    search_path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {
        "PYTHONPATH": search_path,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, str(_SCRIPT), str(folder), name, "" if gpu_id is None else str(gpu_id), str(report)]
    command += [worker.envelope, *worker.absent]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            process.communicate(json.dumps(request, ensure_ascii=False).encode(), timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired as err:
            raise PackError(f"{name}: not loaded after {_TIMEOUT_S} s") from err
        finally:
            process.kill()
            process.wait()
    if not report.is_file():
        tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_TAIL_LINES:]
        raise PackError(f"{name}: the loading process ended with {process.returncode}: {' | '.join(tail)}")
    result: dict[str, object] = json.loads(report.read_text(encoding="utf-8"))
    return result
