"""`--target`: what an archive carries for CPUs, for GPUs or for both, and what it carries where there is no graph."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from archiver import openvino_export
from archiver.options import PackOptions
from marvec.service import Service
from marvec.settings import read_settings
from tests.models.tiny import TinyModels
from tests.pack.conftest import Packer, Result, marvec

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
WEIGHTS = {*SHARDS, "model.safetensors.index.json"}
GRAPH = {"openvino_model.bin", "openvino_model.xml"}
ALWAYS = {"config.json", "tokenizer.json", "2_Dense/config.json", "2_Dense/model.safetensors"}
HELD = {"cpu": ALWAYS | GRAPH, "gpu": ALWAYS | WEIGHTS, "any": ALWAYS | GRAPH | WEIGHTS}
ENCODERS = {"cpu": "openvino", "gpu": "transformers", "any": "openvino"}


@pytest.fixture(scope="module")
def sharded(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model whose weights lie in two shards, with a Dense layer."""
    folder = tmp_path_factory.mktemp("model") / "sharded"
    shutil.copytree(tiny_models("bert", pooling="mean", dense=16, normalize=True), folder)
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(state)
    parts = dict(zip(SHARDS, (names[:20], names[20:]), strict=True))
    for file, part in parts.items():
        save_file({name: state[name] for name in part}, folder / file, metadata={"format": "pt"})
    weight_map = {name: file for file, part in parts.items() for name in part}
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.fixture(scope="module")
def packed(sharded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Return the model packed for each target."""
    packer = Packer(tmp_path_factory.mktemp("store"))
    return {target: packer(sharded, PackOptions("-", target=target), name=target) for target in HELD}


def names(result: Result) -> set[str]:
    with zipfile.ZipFile(result.packed.file) as archive:
        return set(archive.namelist())


def model_files(result: Result) -> set[str]:
    """Return what is below model/."""
    return {name.removeprefix("model/") for name in names(result) if name.startswith("model/")}


def engine(result: Result) -> dict[str, object]:
    """Return the engine's settings as the archive has them."""
    with zipfile.ZipFile(result.packed.file) as archive:
        found: dict[str, object] = yaml.safe_load(archive.read("model-config.yaml"))["handler"]["engine"]
    return found


def unpack(result: Result, folder: Path) -> Service:
    """Load an archive on the CPU, as a worker does."""
    with zipfile.ZipFile(result.packed.file) as archive:
        archive.extractall(folder)
    config = yaml.safe_load((folder / "model-config.yaml").read_text(encoding="utf-8"))
    return Service.load(folder, read_settings(config["handler"]), "cpu", response_timeout_s=120)


@pytest.mark.parametrize("target", HELD)
def test_an_archive_holds_what_its_target_needs(target: str, packed: dict[str, Result]) -> None:
    assert model_files(packed[target]) == HELD[target]
    assert ("drift.json" in names(packed[target])) is (target != "gpu")
    assert engine(packed[target]) == {"encoder": ENCODERS[target], "dtype": "float32", "max_batch_tokens": None}
    assert packed[target].packed.settings.engine.encoder == ENCODERS[target]


@pytest.mark.parametrize("target", HELD)
def test_what_is_exported_is_told(target: str, packed: dict[str, Result]) -> None:
    exported = [note.split(":")[0] for note in packed[target].notes if "export" in note]

    assert exported == ([] if target == "gpu" else ["exporting the model to OpenVINO", "exported"])


def test_without_a_target_an_archive_is_for_cpus(tiny_models: TinyModels, packer: Packer) -> None:
    result = packer(tiny_models("bert"))

    assert model_files(result) == {"config.json", "tokenizer.json", *GRAPH}


@pytest.mark.parametrize("target", HELD)
def test_a_worker_tells_its_encoder_and_its_drift(target: str, packed: dict[str, Result], tmp_path: Path) -> None:
    told = unpack(packed[target], tmp_path).describe()

    on_openvino = target != "gpu"
    assert told["engine"] == {
        "encoder": ENCODERS[target],
        "device": "cpu",
        "dtype": "float32",
        "max_batch_tokens": 512 if on_openvino else 1024,
        "lanes": torch.get_num_threads() if on_openvino else 1,
        "threads": torch.get_num_threads(),
    }
    assert told["drift"] == (json.loads((tmp_path / "drift.json").read_text()) if on_openvino else None)


def test_all_targets_give_the_same_vectors(packed: dict[str, Result], tmp_path: Path) -> None:
    vectors = []
    for target, result in packed.items():
        service = unpack(result, tmp_path / target)
        job = service.read(json.dumps({"instances": ["", "a rose", "the small farm " * 30]}).encode(), {}, "")
        [answer] = service.compute([job])
        assert isinstance(answer, torch.Tensor)
        vectors.append(answer)

    for other in vectors[1:]:
        torch.testing.assert_close(other, vectors[0], rtol=0, atol=1e-5)


def test_a_graph_that_drifts_is_not_shipped(
    tiny_models: TinyModels, packer: Packer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_export, "MOST_DIFFERENCE", 0.0)

    result = packer(tiny_models("bert"))

    assert model_files(result) == {"config.json", "tokenizer.json", "model.safetensors"}
    assert "drift.json" not in names(result)
    assert result.packed.settings.engine.encoder == engine(result)["encoder"] == "transformers"
    told = next(note for note in result.notes if note.startswith("not exported"))
    assert told.startswith("not exported, so it runs on PyTorch, slower on CPUs: its vectors differ by ")
    assert told.endswith(", allowed is 0e+00")


def test_the_summary_names_the_encoder(tiny_models: TinyModels, tmp_path: Path) -> None:
    store = tmp_path / "store"
    result = marvec("pack", str(tiny_models("bert")), "--name", "tiny", "--model-store", str(store), "--dtype", "auto")

    assert result.returncode == 0, result.stderr
    lines = [line.rstrip().split(maxsplit=1) for line in result.stdout.splitlines()]
    assert ["name", "tiny, version 1.0"] in lines
    assert ["encoder", "openvino, auto"] in lines
    assert result.stdout.endswith(f"\nnext: marvec serve tiny --model-store {store}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "tpu"), "--target: expected one of cpu, gpu, any, got 'tpu'"),
        (
            ("--target", "cpu", "--dtype", "float16"),
            "--dtype: float16 is for GPUs only; use --target gpu, or auto with --target cpu",
        ),
    ],
)
def test_a_target_that_cannot_be_had_is_refused(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = marvec("pack", "model", "--model-store", str(tmp_path / "store"), *arguments)

    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"error: {message}\n")
    assert not (tmp_path / "store").exists()
