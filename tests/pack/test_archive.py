"""What a written archive holds, and that nothing else changed: neither the model's files nor the model store."""

from __future__ import annotations

import json
import re
import stat
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
import torch
import yaml
from sentence_transformers import SentenceTransformer

import marvec
from archiver.options import PackOptions
from marvec.settings import read_settings
from tests.models.tiny import TinyModels
from tests.pack.conftest import Packer, Result

PROMPTS = {"query": "query: ", "日本": "検索: "}
LIBRARY = Path(marvec.__file__).parent


@dataclass(frozen=True)
class Case:
    """A packed model: its folder, that folder's state before, and what pack returned."""

    model: Path
    before: dict[str, tuple[str, int]]
    result: Result


def state(folder: Path) -> dict[str, tuple[str, int]]:
    """Return path -> (digest, time of change) of all files below a folder."""
    return {
        str(file.relative_to(folder)): (sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture(scope="module")
def case(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Case:
    model = tiny_models("bert", pooling="mean", dense=16, normalize=True, max_seq_length=48, prompts=PROMPTS)
    (model / "README.md").write_text("# Tiny\n")
    (model / "pytorch_model.bin").write_bytes(b"not looked at: safetensors are there")
    before = state(model)
    options = PackOptions(
        model=str(model),
        prompts={"passage": "passage: "},
        default_prompt="query",
        batch_size=8,
        workers=2,
        max_instances=100,
        max_request_tokens=5000,
        max_batch_tokens=256,
        version="2.1",
    )
    return Case(model, before, Packer(tmp_path_factory.mktemp("store"))(model, options))


@pytest.fixture(scope="module")
def unpacked(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(case.result.packed.file) as archive:
        archive.extractall(folder)
    return folder


def test_the_archive_holds_the_handler_the_library_and_the_model_and_nothing_else(case: Case) -> None:
    library = {f"marvec/{file.relative_to(LIBRARY)}" for file in LIBRARY.rglob("*.py")}
    with zipfile.ZipFile(case.result.packed.file) as archive:
        names = archive.namelist()

    assert sorted(names) == sorted(
        library
        | {
            "MAR-INF/MANIFEST.json",
            "embedding_handler.py",
            "marvec_handler.py",
            "drift.json",
            "golden.json",
            "model-config.yaml",
            "model/README.md",
            "model/config.json",
            "model/tokenizer.json",
            "model/openvino_model.bin",
            "model/openvino_model.xml",
            "model/2_Dense/config.json",
            "model/2_Dense/model.safetensors",
        }
    )


def test_files_are_stored_as_they_are(case: Case, unpacked: Path) -> None:
    with zipfile.ZipFile(case.result.packed.file) as archive:
        assert {item.compress_type for item in archive.infolist()} == {zipfile.ZIP_STORED}
    for name in ("2_Dense/model.safetensors", "2_Dense/config.json", "README.md"):
        assert (unpacked / "model" / name).read_bytes() == (case.model / name).read_bytes()
    for name in ("embedding_handler.py", "marvec_handler.py"):
        assert (unpacked / name).read_bytes() == (LIBRARY.parent / name).read_bytes()


def test_the_manifest_names_model_version_handler_and_settings(unpacked: Path) -> None:
    manifest = json.loads((unpacked / "MAR-INF" / "MANIFEST.json").read_text())

    assert manifest["model"] == {
        "modelName": "tiny",
        "modelVersion": "2.1",
        "handler": "embedding_handler.py",
        "configFile": "model-config.yaml",
    }


def test_the_settings_say_everything_that_a_worker_must_not_guess(case: Case, unpacked: Path) -> None:
    config = yaml.safe_load((unpacked / "model-config.yaml").read_text(encoding="utf-8"))

    assert config == {
        "minWorkers": 2,
        "maxWorkers": 2,
        "batchSize": 8,
        "maxBatchDelay": 1,
        "responseTimeout": 120,
        "startupTimeout": 600,
        "maxRetryTimeoutInSec": 30,
        "jobQueueSize": 100,
        "handler": {
            "task": "embedding",
            "model": {
                "id": case.model.name,
                "revision": None,
                "dimension": 16,
                "default_dimension": None,
                "max_length": 48,
                "pooling": ["mean"],
                "dense": ["2_Dense"],
                "normalize": True,
                "prompts": {"query": "query: ", "日本": "検索: ", "passage": "passage: "},
                "default_prompt": "query",
            },
            "engine": {"encoder": "openvino", "dtype": "float32", "max_batch_tokens": 256},
            "limits": {
                "max_instances": 100,
                "max_request_tokens": 5000,
                "max_response_bytes": 64_000_000,
                "openai_token_ids": False,
            },
        },
    }
    assert read_settings(config["handler"]) == case.result.packed.settings


def test_every_choice_is_told_with_its_source(case: Case) -> None:
    notes = [re.sub(r"\d\.\de-0[78]", "1.2e-07", note) for note in case.result.notes]
    assert notes == [
        "served for embedding",
        "pooling mean, from the directory's modules.json",
        "prompts query='query: ', 日本='検索: ', from the directory's config_sentence_transformers.json",
        "prompts passage='passage: ', from --prompt",
        "prompt 'query' stands before every text that names none",
        "checking the weights against config.json",
        "recording golden answers",
        "exporting the model to OpenVINO",
        "exported: largest difference to PyTorch 1.2e-07 on 27 inputs",
        "loading the archive as a TorchServe worker does",
    ]


def test_the_tokenizer_neither_cuts_nor_pads(unpacked: Path) -> None:
    content = json.loads((unpacked / "model" / "tokenizer.json").read_text(encoding="utf-8"))

    assert content["truncation"] is None
    assert content["padding"] is None


def test_the_golden_vectors_are_those_of_sentence_transformers(case: Case, unpacked: Path) -> None:
    golden = json.loads((unpacked / "golden.json").read_text(encoding="utf-8"))
    expected = torch.from_numpy(SentenceTransformer(str(case.model), device="cpu").encode(golden["texts"], prompt=""))

    assert torch.tensor(golden["answers"]).shape == (len(golden["texts"]), 16)
    assert torch.allclose(torch.tensor(golden["answers"]), expected, atol=1e-5)


def test_the_drift_of_the_graph_is_written_down(unpacked: Path) -> None:
    drift = json.loads((unpacked / "drift.json").read_text(encoding="utf-8"))

    assert drift.pop("largest_difference") < 1e-6
    assert drift == {
        "inputs": 27,
        "mean_cosine": 1.0,
        "worst_cosine": 1.0,
        "rank_correlation": 1.0,
        "dtype": "float32",
    }


def test_the_models_own_files_are_untouched_and_not_shared_for_writing(case: Case) -> None:
    assert state(case.model) == case.before
    assert (case.model / "model.safetensors").stat().st_nlink == 1


def test_the_model_store_holds_the_archive_alone_readable_by_the_server(case: Case) -> None:
    file = case.result.packed.file

    assert [path.name for path in file.parent.iterdir()] == ["tiny.mar"]
    assert case.result.packed.size_bytes == file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) & 0o444 == 0o444


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_real_model_in_half_precision_is_held_to_float32(dtype: str, minilm_dir: Path, packer: Packer) -> None:
    packed = packer(minilm_dir, PackOptions(model="minilm", dtype=dtype), name="minilm").packed

    assert packed.settings.engine.dtype == dtype
    with zipfile.ZipFile(packed.file) as archive:
        assert yaml.safe_load(archive.read("model-config.yaml"))["handler"]["engine"]["dtype"] == dtype
        golden = torch.tensor(json.loads(archive.read("golden.json"))["answers"])
    assert torch.allclose(golden.norm(dim=1), torch.ones(len(golden)), atol=1e-6)
