"""What takes long is made once, and never served half made."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cache import cache_folder, digest, made_once


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    made: list[Path] = []
    for _ in range(2):
        assert made_once(tmp_path / "a" / "b", made.append) == tmp_path / "a" / "b"
    assert made == [tmp_path / "a" / "b"]


def test_one_that_failed_is_made_again_from_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match=r"^the disk is full$"):
        made_once(tmp_path / "a", fail)
    made_once(tmp_path / "a", lambda folder: (folder / "whole").touch())
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["whole"]


def test_the_cache_is_where_xdg_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "marvec" / "bench"


def test_a_digest_tells_where_one_part_ends_and_the_next_begins() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab", b"c") == digest(b"ab", "c")
    assert len(digest("")) == 16
