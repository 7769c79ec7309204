"""Exporting to OpenVINO: two files that give the model's vectors, or none and the reason."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from archiver import model_dir, openvino_export
from archiver.drift import VectorDrift
from archiver.openvino_export import ExportError
from marvec.embedder import Embedder
from marvec.encoder.openvino_encoder import GRAPH, WEIGHTS
from marvec.encoder.openvino_runtime import openvino
from marvec.encoder.transformers_encoder import TransformersEncoder
from marvec.settings import EmbeddingModel, EmbeddingSettings, EngineSettings
from tests.models.tiny import TinyModels

OTHERS = ["config.json", "model.safetensors", "tokenizer.json"]


@pytest.fixture
def folder(tiny_models: TinyModels, tmp_path: Path) -> Path:
    """Return the `model/` of an archive that is being made."""
    for name in OTHERS:
        (tmp_path / name).write_bytes((tiny_models("bert") / name).read_bytes())
    return tmp_path


@pytest.fixture
def reference(folder: Path) -> Embedder:
    found = model_dir.read(folder)
    settings = EmbeddingSettings(EmbeddingModel("tiny", None, found.max_length, found.hidden_size, ("mean",), False))
    return Embedder.load(folder, settings)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_the_graphs_vectors_are_those_of_the_model(reference: Embedder, folder: Path) -> None:
    found = openvino_export.export(reference, folder)

    assert names(folder) == sorted([*OTHERS, GRAPH, WEIGHTS])
    assert found.inputs == 27  # 22 texts, and inputs of 4, 8, 16, 32 and 64 tokens
    assert found.largest_difference < 1e-6
    assert isinstance(found, VectorDrift)
    assert found.worst_cosine > 1 - 1e-9
    assert found.rank_correlation > 0.9999
    exported = Embedder.load(folder, replace(reference.settings, engine=EngineSettings(encoder="openvino")))
    some = ["", "a rose", "the small farm in japan " * 20]
    torch.testing.assert_close(exported.answer_texts(some), reference.answer_texts(some), rtol=0, atol=1e-5)


def test_weights_are_exported_whole(reference: Embedder, folder: Path) -> None:
    """OpenVINO would store them in float16 if it were not told otherwise."""
    openvino_export.export(reference, folder)

    assert isinstance(reference.encoder, TransformersEncoder)
    embeddings = reference.encoder.model.get_input_embeddings().weight.detach()
    assert embeddings.numpy().tobytes() in (folder / WEIGHTS).read_bytes()


def test_a_graph_that_drifts_is_not_shipped(reference: Embedder, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_export, "MOST_DIFFERENCE", 0.0)

    with pytest.raises(ExportError, match=r"^its vectors differ by \d\.\de-0[78], allowed is 0e\+00$"):
        openvino_export.export(reference, folder)
    assert names(folder) == OTHERS


def test_a_graph_whose_numbers_are_not_finite_is_not_shipped(
    reference: Embedder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = openvino_export._write

    def spoil(reference: Embedder, folder: Path) -> None:
        exported(reference, folder)
        weights = bytearray((folder / WEIGHTS).read_bytes())
        assert isinstance(reference.encoder, TransformersEncoder)
        table = reference.encoder.model.get_input_embeddings().weight.detach().numpy().tobytes()
        place = weights.index(table)
        weights[place : place + len(table)] = b"\xff" * len(table)  # NaN
        (folder / WEIGHTS).write_bytes(weights)

    monkeypatch.setattr(openvino_export, "_write", spoil)

    with pytest.raises(ExportError) as refusal:
        openvino_export.export(reference, folder)
    assert str(refusal.value) == "its vectors differ by nan, allowed is 1e-04"
    assert names(folder) == OTHERS


def test_a_conversion_that_fails_is_told_by_its_first_line(
    reference: Embedder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(graph: object, file: Path, *, compress_to_fp16: bool) -> None:
        file.write_text("half a graph")
        raise RuntimeError("no such operation: aten::strange\nand a page of details")

    monkeypatch.setattr(openvino, "save_model", fail)

    with pytest.raises(ExportError) as refusal:
        openvino_export.export(reference, folder)
    assert str(refusal.value) == "no such operation: aten::strange"
    assert names(folder) == OTHERS


def test_a_full_disk_is_no_fault_of_the_model(
    reference: Embedder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(graph: object, file: Path, *, compress_to_fp16: bool) -> None:
        file.write_text("half a graph")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

    monkeypatch.setattr(openvino, "save_model", fail)

    with pytest.raises(OSError, match="No space left on device"):
        openvino_export.export(reference, folder)
    assert names(folder) == OTHERS


def test_only_a_model_on_pytorch_can_be_exported(reference: Embedder, folder: Path) -> None:
    openvino_export.export(reference, folder)
    exported = Embedder.load(folder, replace(reference.settings, engine=EngineSettings(encoder="openvino")))

    with pytest.raises(ExportError) as refusal:
        openvino_export.export(exported, folder)
    assert str(refusal.value) == "the reference runs on openvino, not on transformers"
