"""Archives as the launcher unpacks them: whole, inside their folder, and damage told by the archive's name."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from serving.errors import ArchiveError, Interrupted
from serving.unpack import Copied, require_whole, unpack

LARGE = bytes(range(256)) * 8192  # 2 MiB: the kernel copies it


def write(file: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_every_entry_is_written(tmp_path: Path, compression: int) -> None:
    archive = write(tmp_path / "m.mar", {"a.py": b"small", "model/weights.bin": LARGE, "empty": b""}, compression)

    copied = unpack(archive, tmp_path / "out")

    assert (tmp_path / "out" / "a.py").read_bytes() == b"small"
    assert (tmp_path / "out" / "model" / "weights.bin").read_bytes() == LARGE
    assert (tmp_path / "out" / "empty").read_bytes() == b""
    assert [one.file.name for one in copied] in ([], ["weights.bin"])  # none where the kernel cannot copy
    require_whole(copied)


def test_a_changed_byte_in_a_large_entry_is_found(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(LARGE)
    with pytest.raises(ArchiveError) as caught:
        require_whole([Copied(file, tmp_path / "m.mar", crc=1)])
    assert str(caught.value) == (
        f"{tmp_path}/m.mar is damaged (the checksum of weights.bin is wrong): pack or copy it again"
    )


def test_a_changed_byte_in_a_small_entry_is_found(tmp_path: Path) -> None:
    archive = write(tmp_path / "m.mar", {"a.py": b"unmistakable"})
    archive.write_bytes(archive.read_bytes().replace(b"unmistakable", b"unmistakablx", 1))
    with pytest.raises(ArchiveError, match=r"m\.mar is damaged \(Bad CRC-32 for file 'a\.py'\): pack or copy it again"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("name", ["../outside", "/outside", "in/../../outside"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    archive = write(tmp_path / "m.mar", {name: LARGE})
    with pytest.raises(ArchiveError, match="an entry would be written elsewhere"):
        unpack(archive, tmp_path / "deep" / "out")
    assert sorted(path.name for path in tmp_path.rglob("outside")) == []


def test_a_header_that_is_not_there(tmp_path: Path) -> None:
    archive = write(tmp_path / "m.mar", {"weights.bin": LARGE})
    content = archive.read_bytes()
    archive.write_bytes(b"XX" + content[2:])
    with pytest.raises(ArchiveError, match=r"no entry where there should be one: weights\.bin"):
        unpack(archive, tmp_path / "out")


def test_an_encrypted_entry(tmp_path: Path) -> None:
    archive = write(tmp_path / "m.mar", {"weights.bin": LARGE})
    content = bytearray(archive.read_bytes())
    for signature, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        struct.pack_into("<H", content, content.rindex(signature) + place, 1)
    archive.write_bytes(content)
    with pytest.raises(ArchiveError, match=r"m\.mar is damaged \(File .*weights\.bin.* is encrypted"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_it_stops_between_chunks(tmp_path: Path, compression: int) -> None:
    archive = write(tmp_path / "m.mar", {"model/weights.bin": LARGE}, compression)
    with pytest.raises(Interrupted):
        unpack(archive, tmp_path / "out", lambda: True)


def test_checksums_stop_without_a_verdict(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(LARGE)
    require_whole([Copied(file, tmp_path / "m.mar", crc=1)], lambda: True)
