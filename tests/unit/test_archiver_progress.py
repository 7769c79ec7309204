"""A bar for large files on a terminal, and silence for small ones or without a terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from archiver.progress import watched

LARGE = 400_000_000


def grow(file: Path, size_bytes: int) -> None:
    with file.open("wb") as output:
        output.truncate(size_bytes)
    time.sleep(0.5)


def test_a_terminal_sees_how_far_a_large_file_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")

    with watched("weights model.bin", tmp_path / "model", LARGE):
        grow(tmp_path / "model", LARGE // 2)

    shown = capsys.readouterr().err
    assert "weights model.bin" in shown
    assert "200.0/400.0 MB" in shown


@pytest.mark.parametrize(("size_bytes", "terminal"), [(1000, "1"), (LARGE, "")])
def test_otherwise_nothing_is_shown(
    size_bytes: int, terminal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", terminal)

    with watched("weights", tmp_path / "model", size_bytes):
        (tmp_path / "model").write_bytes(b"weights")

    assert capsys.readouterr().err == ""


def test_an_error_goes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    with pytest.raises(OSError, match="full"), watched("weights", tmp_path, LARGE):
        raise OSError("full")
