"""The archives to serve: found in the model store and checked before any Java starts.

NAME.mar may be a folder with an archive's content, as it is in an image: TorchServe then reads it where it lies.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serving.errors import ArchiveError

MANIFEST = "MAR-INF/MANIFEST.json"
# The rule of torch-model-archiver; a name becomes a part of the URL.
LEGAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".onnx", ".ckpt")


@dataclass(frozen=True)
class Archive:
    """One .mar as this server will serve it.

    Attributes:
        name: The model's name in the URL.
        version: From the manifest.
        path: The file or folder, in the model store.
        weight_bytes: Size of the weights once loaded, from the listing.
        pinned_workers: The worker count that the archive's own model-config.yaml fixes, if it does.
    """

    name: str
    version: str
    path: Path
    weight_bytes: int
    pinned_workers: int | None


def find_archives(store: Path, requests: Sequence[str]) -> list[Archive]:
    """Finds and checks what to serve.

    Args:
        store: The model store, a folder.
        requests: `NAME` (for NAME.mar, under the name in its manifest) or `NAME=FILE.mar`; none means every .mar.

    Returns:
        At least one archive; no two answer to the same URL.

    Raises:
        ArchiveError: One line that says which archive is wrong, and the fix.
    """
    if not store.is_dir():
        raise ArchiveError(f"no model store at {store}: give its folder with --model-store")
    if requests:
        wanted = [_parse(request) for request in requests]
    else:
        wanted = [_parse(path.name) for path in sorted(store.glob("*.mar")) if not path.is_dir() or _is_unpacked(path)]
    if not wanted:
        raise ArchiveError(
            f"no .mar in {store}: pack a model first (marvec pack MODEL --name NAME), or set AIP_STORAGE_URI"
        )
    archives = [read_archive(store, file, name) for name, file in wanted]
    seen: dict[tuple[str, str], Archive] = {}
    for archive in archives:
        other = seen.setdefault((archive.name, archive.version), archive)
        if other is not archive:
            raise ArchiveError(
                f"{other.path.name} and {archive.path.name} both hold model {archive.name} {archive.version}: "
                f"name the one to serve, or give another name with NAME={archive.path.name}"
            )
    return archives


def requested_files(requests: Sequence[str]) -> list[str]:
    """Reads which files are asked for.

    Args:
        requests: As `find_archives` takes them.

    Returns:
        File names in a model store.

    Raises:
        ArchiveError: A request is malformed.
    """
    return [_parse(request)[1] for request in requests]


def read_archive(store: Path, file: str, name: str | None) -> Archive:
    """Checks one archive and reads what the launcher needs of it.

    Args:
        store: The model store.
        file: The archive's file name in the store.
        name: The name to serve it under; None for the one in its manifest.

    Returns:
        The archive.

    Raises:
        ArchiveError: The file is missing, broken, not an archive, or misnamed.
    """
    path = store / file
    if "," in str(path.absolute()):  # TorchServe's list of models is split there
        raise ArchiveError(f"{path} has a comma in its path: move the model store to one without")
    try:
        with _content(path) as (sizes, read):
            manifest = json.loads(read(MANIFEST))
            model = manifest["model"]
            in_manifest, version = str(model["modelName"]), str(model["modelVersion"])
            config_file = model.get("configFile")
            config = read(config_file).decode("utf-8") if config_file in sizes else ""
    except (zipfile.BadZipFile, EOFError, zlib.error) as err:
        raise ArchiveError(f"{path} is cut short or no zip ({err}): pack or copy it again") from err
    except RecursionError as err:
        raise ArchiveError(f"{path} has no good {MANIFEST} (nested too deeply): pack it again") from err
    except RuntimeError as err:  # zipfile's word for an encrypted entry
        raise ArchiveError(f"{path} cannot be unpacked ({err}): pack it again") from err
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise ArchiveError(f"{path} has no good {MANIFEST} ({err}): pack it again") from err
    except OSError as err:
        raise ArchiveError(f"{path} cannot be read ({err.strerror or err}): mend its permissions") from err
    served_as = name or in_manifest
    if not LEGAL_NAME.fullmatch(served_as):
        raise ArchiveError(f"{path}: model name {served_as!r} must match {LEGAL_NAME.pattern}: pack it under another")
    return Archive(
        name=served_as,
        version=version,
        path=path,
        weight_bytes=_weight_bytes(sizes),
        pinned_workers=_pinned_workers(config),
    )


@contextmanager
def _content(path: Path) -> Iterator[tuple[dict[str, int], Callable[[str], bytes]]]:
    """The sizes of an archive's files by their names, and what reads one."""
    if _is_unpacked(path):
        files = [file for file in path.rglob("*") if file.is_file()]
        yield (
            {file.relative_to(path).as_posix(): file.stat().st_size for file in files},
            lambda name: (path / name).read_bytes(),
        )
        return
    _require_file(path)
    with zipfile.ZipFile(path) as archive:
        yield {entry.filename: entry.file_size for entry in archive.infolist()}, archive.read


def _is_unpacked(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _require_file(path: Path) -> None:
    if path.is_dir() or (path.is_symlink() and not path.exists()):
        what = "a folder without MAR-INF" if path.is_dir() else "a link to nothing"
        raise ArchiveError(f"{path} is {what}, not an archive: remove it, or name the archives to serve")
    if not path.is_file():
        present = ", ".join(sorted(one.name for one in path.parent.glob("*.mar"))) or "no .mar"
        raise ArchiveError(f"{path} does not exist (the store has {present}): pack it, or name another")


def _parse(request: str) -> tuple[str | None, str]:
    name, equals, file = request.partition("=")
    if not equals:
        # "minilm.mar" is what a user types after `ls model_store`.
        name, file = "", name if name.endswith(".mar") else f"{name}.mar"
    elif not LEGAL_NAME.fullmatch(name):
        raise ArchiveError(f"{request}: model name {name!r} must match {LEGAL_NAME.pattern}")
    # A store has no folders, and the name is part of a path that TorchServe splits at commas.
    if not LEGAL_NAME.fullmatch(file) or not file.endswith(".mar"):
        raise ArchiveError(f"{request}: expected NAME or NAME=FILE.mar, FILE.mar directly in the model store")
    return name or None, file


def _weight_bytes(sizes: dict[str, int]) -> int:
    """All weights together: an archive with an IR and safetensors may load either, so this is the upper bound."""
    return sum(size for name, size in sizes.items() if name.endswith(WEIGHT_SUFFIXES))


def _pinned_workers(config: str) -> int | None:
    """The worker count of a model-config.yaml.

    The standard library reads no YAML; two integers at the top level need none. TorchServe wants both (minWorkers
    alone makes it drop the pair), so one alone pins nothing.
    """
    found = dict(re.findall(r"^(minWorkers|maxWorkers)\s*:\s*(\d{1,6})\s*(?:#.*)?$", config, flags=re.MULTILINE))
    return int(found["minWorkers"]) if len(found) == 2 and int(found["minWorkers"]) > 0 else None
