"""How a file of texts becomes those that int8 is fitted to and those that are held out."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver import calibration
from archiver.errors import PackError


def write(tmp_path: Path, content: str | bytes) -> Path:
    file = tmp_path / "texts.txt"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def lines(count: int) -> list[str]:
    return [f"text {number}" for number in range(1, count + 1)]


def test_every_fifth_text_is_held_out(tmp_path: Path) -> None:
    read = calibration.read(write(tmp_path, "\n".join(lines(32))))

    assert read.held_out == ("text 5", "text 10", "text 15", "text 20", "text 25", "text 30")
    assert read.fitted == tuple(line for line in lines(32) if line not in read.held_out)


def test_blank_lines_and_repeated_texts_do_not_count(tmp_path: Path) -> None:
    content = "\ufeff" + "\r\n".join(["", " ", *lines(32), "text 1", "\t"]) + "\r\n"

    assert calibration.read(write(tmp_path, content)) == calibration.read(write(tmp_path, "\n".join(lines(32))))


def test_a_text_keeps_its_blanks_and_may_hold_any_letter(tmp_path: Path) -> None:
    odd = ["  薔薇\u2028を  ", *lines(31)]

    assert calibration.read(write(tmp_path, "\n".join(odd))).fitted[0] == "  薔薇\u2028を  "


def test_of_very_many_texts_some_from_everywhere_are_taken(tmp_path: Path) -> None:
    read = calibration.read(write(tmp_path, "\n".join(lines(6400))))

    assert (len(read.fitted), len(read.held_out)) == (512, 128)
    assert read.fitted[:5] == ("text 1", "text 11", "text 21", "text 31", "text 51")
    assert read.held_out[-1] == "text 6391"


def test_too_few_texts(tmp_path: Path) -> None:
    file = write(tmp_path, "\n".join(lines(31) + lines(31)))

    with pytest.raises(PackError) as refusal:
        calibration.read(file)

    assert str(refusal.value) == (
        f"--calibration: {file} has 31 different texts, expected are at least 32, one a line; some hundreds of the "
        "kind that will be embedded are best"
    )


def test_another_encoding(tmp_path: Path) -> None:
    file = write(tmp_path, "Größe".encode("latin-1"))

    with pytest.raises(PackError) as refusal:
        calibration.read(file)

    assert str(refusal.value) == f"--calibration: {file} is not UTF-8: invalid start byte at byte 2"


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(PackError) as refusal:
        calibration.read(tmp_path)

    assert str(refusal.value) == f"--calibration: {tmp_path}: Is a directory"
