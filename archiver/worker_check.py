"""A script, not a module: loads an unpacked archive and asks it once, as TorchServe's worker process does.

    python worker_check.py MODEL_FOLDER NAME GPU REPORT ENVELOPE [ABSENT_PACKAGE...] < REQUEST_BODY

It runs in a process of its own with the worker's working folder and module search path (the folder of TorchServe's
package first, then the archive's), through TorchServe's own loader and service, and with its envelope where one is
named. An absent package is one that is found in the archive or nowhere. REPORT gets one JSON object:
{"status": 200, "body": "..."} or {"error": "..."}.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import struct
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_BATCH_SIZE = 1
_LIBRARY = "marvec"


class _Absent(MetaPathFinder):
    """Finds some packages in the archive alone, whatever else is installed."""

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self._names = names
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        inside = [place for place in sys.path if self._folder in (Path(place), *Path(place).parents)]
        spec = PathFinder.find_spec(fullname, inside, target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {fullname!r} in the archive", name=fullname)
        return spec


def main(folder: Path, name: str, gpu_id: int | None, report: Path, envelope: str, absent: Sequence[str]) -> None:
    """Load, ask, and write the report."""
    sys.meta_path.insert(0, _Absent(absent, folder))
    try:
        result = _ask(folder, name, gpu_id, envelope, sys.stdin.buffer.read())
    except Exception as err:
        traceback.print_exc()
        result = {"error": _told(err, folder)}
    report.write_text(json.dumps(result), encoding="utf-8")


def _ask(folder: Path, name: str, gpu_id: int | None, envelope: str, body: bytes) -> dict[str, object]:
    package = importlib.util.find_spec("ts")
    if package is None or not package.submodule_search_locations:
        raise ImportError("TorchServe (the package torchserve) is not installed here")
    server = package.submodule_search_locations[0]
    sys.path[0] = server  # the worker is a script in that folder

    from ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl
    from ts.model_loader import ModelLoaderFactory

    manifest = json.loads((folder / "MAR-INF" / "MANIFEST.json").read_text(encoding="utf-8"))
    handler = manifest["model"]["handler"]
    # TorchServe's loader answers an ImportError in a handler with "No module named 'ts.torch_handler...'".
    importlib.import_module(handler.removesuffix(".py"))
    library = Path(str(importlib.import_module(_LIBRARY).__file__))
    if folder not in library.parents:
        raise ImportError(f"{_LIBRARY} was imported from {library}, not from the archive")
    metrics = MetricsCacheYamlImpl(config_file_path=str(Path(server, "configs", "metrics.yaml")))
    metrics.initialize_cache()
    metrics.model_name = name
    service = ModelLoaderFactory.get_model_loader().load(
        name, str(folder), handler, gpu_id, _BATCH_SIZE, envelope or None, True, metrics
    )
    service.set_cl_socket(None)
    value = json.loads(body) if envelope else bytearray(body)  # an envelope needs JSON that TorchServe has decoded
    parameter = {"name": "body", "contentType": "application/json", "value": value}
    request = {"requestId": b"marvec-pack", "parameters": [parameter], "headers": []}
    return _parse(bytes(service.predict([request])))


def _parse(message: bytes) -> dict[str, object]:
    """Read TorchServe's answer to its frontend, for a batch of one request."""
    position = 0

    def number() -> int:
        nonlocal position
        position += 4
        return int(struct.unpack_from("!i", message, position - 4)[0])

    def text() -> bytes:
        nonlocal position
        length = number()
        position += length
        return message[position - length : position]

    number(), text()  # of the whole batch
    text(), text()  # request id and content type
    status = number()
    text()  # phrase
    for _ in range(number()):
        text(), text()  # a header's name and value
    return {"status": status, "body": text().decode("utf-8")}


def _told(err: BaseException, folder: Path) -> str:
    """The error and the place in the archive that it comes from."""
    frames = traceback.extract_tb(err.__traceback__)
    inside = [frame for frame in frames if folder in Path(frame.filename).parents]
    place = f" ({Path(inside[-1].filename).relative_to(folder)}, line {inside[-1].lineno})" if inside else ""
    return f"{type(err).__name__}: {err}{place}"


if __name__ == "__main__":
    folder, name, gpu, report, envelope, *absent = sys.argv[1:]
    main(Path(folder), name, int(gpu) if gpu else None, Path(report), envelope, absent)
