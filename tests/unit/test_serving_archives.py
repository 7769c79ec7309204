"""Archives: what is found in a store, what is read from a .mar, what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from serving.archives import Archive, find_archives
from serving.errors import ArchiveError


def write(store: Path, file: str, *, name: str = "m", version: str = "1.0", config: str = "", weights: int = 0) -> Path:
    model = {"modelName": name, "modelVersion": version, "handler": "h.py", "configFile": "model-config.yaml"}
    with zipfile.ZipFile(store / file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"model": model}))
        archive.writestr("model-config.yaml", config)
        archive.writestr("model.safetensors", b"\0" * weights)
        archive.writestr("tokenizer.json", "{}" * 50)
    return store / file


def test_every_archive_when_none_is_named(tmp_path: Path) -> None:
    b = write(tmp_path, "b.mar", name="b", weights=1000)
    a = write(tmp_path, "a.mar", name="a", config="minWorkers: 2\nmaxWorkers: 2  # fixed\nhandler:\n  minWorkers: 9\n")
    (tmp_path / "notes.txt").write_text("no archive")
    assert find_archives(tmp_path, []) == [Archive("a", "1.0", a, 0, 2), Archive("b", "1.0", b, 1000, None)]


def test_names_pick_files_and_may_rename(tmp_path: Path) -> None:
    path = write(tmp_path, "minilm-v2.mar", name="minilm")
    write(tmp_path, "other.mar")
    expected = Archive("minilm", "1.0", path, 0, None)
    assert find_archives(tmp_path, ["minilm-v2"]) == [expected]
    assert find_archives(tmp_path, ["minilm-v2.mar"]) == [expected]
    assert find_archives(tmp_path, ["mine=minilm-v2.mar"]) == [Archive("mine", "1.0", path, 0, None)]


@pytest.mark.parametrize(
    "config", ["minWorkers: 2\n", "maxWorkers: 2\n", "minWorkers: 0\nmaxWorkers: 2\n", "minWorkers: x\n"]
)
def test_what_torchserve_drops_pins_nothing(tmp_path: Path, config: str) -> None:
    write(tmp_path, "m.mar", config=config)
    assert find_archives(tmp_path, [])[0].pinned_workers is None


@pytest.mark.parametrize("request_", ["a/b", "../m", "m=../m.mar", "m=a,b.mar", "=m.mar", "m=m.zip", "", "-m"])
def test_names_that_are_no_files_of_the_store(tmp_path: Path, request_: str) -> None:
    write(tmp_path, "m.mar")
    with pytest.raises(ArchiveError):
        find_archives(tmp_path, [request_])


def test_two_archives_of_one_model(tmp_path: Path) -> None:
    write(tmp_path, "a.mar")
    write(tmp_path, "b.mar")
    with pytest.raises(ArchiveError) as caught:
        find_archives(tmp_path, [])
    assert str(caught.value) == (
        "a.mar and b.mar both hold model m 1.0: name the one to serve, or give another name with NAME=b.mar"
    )
    write(tmp_path, "b.mar", version="2.0")
    assert [archive.version for archive in find_archives(tmp_path, [])] == ["1.0", "2.0"]


def test_broken_archives(tmp_path: Path) -> None:
    path = write(tmp_path, "m.mar")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(ArchiveError, match=r"m\.mar is cut short or no zip \(File is not a zip file\): pack or copy"):
        find_archives(tmp_path, [])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("weights.bin", "x")
    with pytest.raises(ArchiveError, match=r"m\.mar has no good MAR-INF/MANIFEST\.json"):
        find_archives(tmp_path, [])
    write(tmp_path, "m.mar", name="a b")
    with pytest.raises(ArchiveError, match="model name 'a b' must match"):
        find_archives(tmp_path, [])


def test_a_folder_in_the_store_is_passed_over_but_cannot_be_served(tmp_path: Path) -> None:
    good = write(tmp_path, "m.mar")
    (tmp_path / "x.mar").mkdir()
    assert [archive.path for archive in find_archives(tmp_path, [])] == [good]
    with pytest.raises(ArchiveError) as caught:
        find_archives(tmp_path, ["x"])
    assert str(caught.value) == (
        f"{tmp_path / 'x.mar'} is a folder without MAR-INF, not an archive: remove it, or name the archives to serve"
    )


def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.mar").symlink_to(tmp_path / "gone")
    with pytest.raises(ArchiveError, match=r"x\.mar is a link to nothing, not an archive"):
        find_archives(tmp_path, [])


def test_a_file_name_that_torchserve_would_split_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a,b.mar")
    with pytest.raises(ArchiveError, match=r"a,b\.mar: expected NAME or NAME=FILE\.mar"):
        find_archives(tmp_path, [])


def test_damage_inside_an_archive_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, "m.mar", config="x" * 5000)
    whole = bytearray(path.read_bytes())
    place = whole.index(b"MANIFEST.json") + len(b"MANIFEST.json") + 3
    whole[place : place + 20] = b"\xff" * 20
    path.write_bytes(whole)
    with pytest.raises(ArchiveError, match=r"m\.mar is cut short or no zip"):
        find_archives(tmp_path, [])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("MAR-INF/MANIFEST.json", "[" * 200_000)
    with pytest.raises(ArchiveError, match=r"m\.mar has no good MAR-INF/MANIFEST\.json \(nested too deeply\)"):
        find_archives(tmp_path, [])


def test_a_worker_count_beyond_reason_pins_nothing(tmp_path: Path) -> None:
    write(tmp_path, "m.mar", config=f"minWorkers: {'9' * 5000}\nmaxWorkers: {'9' * 5000}\n")
    assert find_archives(tmp_path, [])[0].pinned_workers is None
