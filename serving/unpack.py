"""Unpacks archives before TorchServe starts, whose Java would take two seconds for each gigabyte.

`python -m serving.unpack FILE.mar FOLDER` does it when an image is built, so that no start has to.

Marvec's archives are stored, not deflated, so the kernel can copy an entry as it lies in the file, and on some file
systems share it. Checksums of what was copied so are compared afterwards, while Java starts.
"""

from __future__ import annotations

import lzma
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from serving.errors import ArchiveError, Interrupted

_COPIED_BY_KERNEL_BYTES = 1 << 20
_KERNEL_PART_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 20
_ENCRYPTED = 1
# Signature, and the lengths of the name and the extra field that follow and stand before the content.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_SIGNATURE = b"PK\3\4"
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError)


@dataclass(frozen=True)
class Copied:
    """A file that the kernel copied.

    Attributes:
        file: Where it is.
        archive: Where it came from.
        crc: What zlib.crc32 must give.
    """

    file: Path
    archive: Path
    crc: int


def unpack(archive: Path, folder: Path, stop: Callable[[], bool] = lambda: False) -> list[Copied]:
    """Unpacks one archive.

    Args:
        archive: A .mar.
        folder: Where to; made by this.
        stop: Whether to stop; asked some times a second.

    Returns:
        The files whose checksums were not looked at yet.

    Raises:
        OSError: The disk is full, or a file cannot be read or written.
        ArchiveError: An entry is damaged, or wants to be written elsewhere.
        Interrupted: It was to stop.
    """
    folder.mkdir(parents=True)
    copied: list[Copied] = []
    try:
        with zipfile.ZipFile(archive) as content, archive.open("rb") as raw:
            for entry in content.infolist():
                target = _target(entry, folder)
                if entry.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                if _copied(raw, entry, target, stop):
                    copied.append(Copied(target, archive, entry.CRC))
                else:
                    _inflate(content, entry, target, stop)
    except _DAMAGE as err:
        raise _damaged(archive, str(err)) from err
    return copied


def require_whole(files: Iterable[Copied], stop: Callable[[], bool] = lambda: False) -> None:
    """Compares checksums: a second for each gigabyte.

    Args:
        files: As `unpack` gives them.
        stop: Whether to stop; asked some times a second.

    Raises:
        ArchiveError: A file is not what was packed.
    """
    for one in files:
        crc = 0
        with one.file.open("rb") as content:
            while chunk := content.read(_CHUNK_BYTES):
                crc = zlib.crc32(chunk, crc)
                if stop():
                    return
        if crc != one.crc:
            raise _damaged(one.archive, f"the checksum of {one.file.name} is wrong")


def _damaged(archive: Path, why: str) -> ArchiveError:
    return ArchiveError(f"{archive} is damaged ({why}): pack or copy it again")


def _target(entry: zipfile.ZipInfo, folder: Path) -> Path:
    target = folder / entry.filename
    if ".." in target.parts or folder not in target.parents:
        raise zipfile.BadZipFile(f"an entry would be written elsewhere: {entry.filename}")
    return target


def _inflate(content: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, stop: Callable[[], bool]) -> None:
    with content.open(entry) as source, target.open("wb") as output:
        while chunk := source.read(_CHUNK_BYTES):
            output.write(chunk)
            if stop():
                raise Interrupted


def _copied(raw: BinaryIO, entry: zipfile.ZipInfo, target: Path, stop: Callable[[], bool]) -> bool:
    """Has the kernel copy a large stored entry; False where there is none or it cannot between these two files."""
    stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & _ENCRYPTED
    if not stored or entry.file_size < _COPIED_BY_KERNEL_BYTES:
        return False
    raw.seek(entry.header_offset)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(raw.read(_LOCAL_HEADER.size))
    if signature != _SIGNATURE:
        raise zipfile.BadZipFile(f"no entry where there should be one: {entry.filename}")
    start = entry.header_offset + _LOCAL_HEADER.size + name_length + extra_length
    with target.open("wb") as output:
        done = 0
        while done < entry.file_size:
            try:
                part = min(entry.file_size - done, _KERNEL_PART_BYTES)
                count = os.copy_file_range(raw.fileno(), output.fileno(), part, start + done)
            except (AttributeError, OSError):  # not Linux, or file systems that do not do this: the usual way may work
                return False
            if count == 0:
                raise zipfile.BadZipFile(f"cut short: {entry.filename}")
            done += count
            if stop():
                raise Interrupted
    return True


if __name__ == "__main__":
    require_whole(unpack(Path(sys.argv[1]), Path(sys.argv[2])))
