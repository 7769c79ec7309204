"""Unpacks archives before TorchServe starts: its Java would take two seconds for each gigabyte.

Marvec's archives are stored, not deflated, so the kernel can copy an entry as it lies in the file, and on some file
systems share it. Copied so, an entry's checksum is not looked at; damaged weights fail the worker's self-test.
"""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import BinaryIO

_COPIED_BY_KERNEL_BYTES = 1 << 20
_LOCAL_HEADER = struct.Struct("<26xHH")  # its last fields: the lengths of the name and the extra field that follow it


def unpack(archive: Path, folder: Path) -> None:
    """Unpacks one archive.

    Args:
        archive: A .mar.
        folder: Where to; made by this.

    Raises:
        OSError: The disk is full, or a file cannot be read or written.
        zipfile.BadZipFile: An entry is damaged, or wants to be written elsewhere.
    """
    folder.mkdir(parents=True)
    with zipfile.ZipFile(archive) as content, archive.open("rb") as raw:
        for entry in content.infolist():
            stored = entry.compress_type == zipfile.ZIP_STORED and entry.file_size >= _COPIED_BY_KERNEL_BYTES
            if not (stored and _copied(raw, entry, folder)):
                content.extract(entry, folder)


def _copied(raw: BinaryIO, entry: zipfile.ZipInfo, folder: Path) -> bool:
    """Has the kernel copy an entry; False where it cannot between these two files."""
    target = folder / entry.filename
    if ".." in target.parts or folder not in target.parents:
        raise zipfile.BadZipFile(f"an entry would be written elsewhere: {entry.filename}")
    target.parent.mkdir(parents=True, exist_ok=True)
    raw.seek(entry.header_offset)
    name_length, extra_length = _LOCAL_HEADER.unpack(raw.read(_LOCAL_HEADER.size))
    start = entry.header_offset + _LOCAL_HEADER.size + name_length + extra_length
    with target.open("wb") as output:
        done = 0
        while done < entry.file_size:
            try:
                count = os.copy_file_range(raw.fileno(), output.fileno(), entry.file_size - done, start + done)
            except (AttributeError, OSError):  # not Linux, or file systems that do not do this: the usual way may work
                return False
            if count == 0:
                raise zipfile.BadZipFile(f"cut short: {entry.filename}")
            done += count
    return True
