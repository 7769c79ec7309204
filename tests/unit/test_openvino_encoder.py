"""The OpenVINO encoder on a tiny exported BERT: rows laid out, passes in order over lanes, files that are not right."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from archiver import model_dir, openvino_export
from marvec import encoder
from marvec.embedder import Embedder
from marvec.encoder import Rows, openvino_encoder
from marvec.encoder.layout import lay_out
from marvec.encoder.openvino_encoder import GRAPH, WEIGHTS, OpenVinoEncoder
from marvec.encoder.transformers_encoder import TransformersEncoder
from marvec.errors import InternalError, ModelDirError, SettingsError
from marvec.service import Service
from marvec.settings import EmbeddingModel, EmbeddingSettings, EngineSettings
from marvec.tokens import Tokens
from tests.models.tiny import MAX_TOKENS, TinyModels

ROOT = Path(__file__).resolve().parents[2]
THREADS = 2
TASK = EmbeddingSettings.task
SETTINGS = EngineSettings(encoder="openvino")


@pytest.fixture(scope="module")
def reference(tiny_models: TinyModels) -> Embedder:
    """Return the model on PyTorch."""
    folder = tiny_models("bert")
    found = model_dir.read(folder)
    return Embedder.load(
        folder, EmbeddingSettings(EmbeddingModel("tiny", None, MAX_TOKENS, found.hidden_size, ("mean",), True))
    )


@pytest.fixture(scope="module")
def folder(reference: Embedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds the exported graph; export needs its tokenizer.json beside it, an encoder does not."""
    made = tmp_path_factory.mktemp("exported")
    tokenizer = reference.tokenizer._tokenizer
    tokenizer.save(str(made / "tokenizer.json"))
    openvino_export.export(reference, made)
    return made


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def openvino(folder: Path) -> OpenVinoEncoder:
    return OpenVinoEncoder.load(folder, SETTINGS)


def inputs(count: int, seed: int = 0) -> list[Tokens]:
    """Return random inputs of 1 to 64 tokens."""
    draw = random.Random(seed)
    return [Tokens.of([draw.randrange(5, 60) for _ in range(draw.randint(1, MAX_TOKENS))]) for _ in range(count)]


def alone(one: encoder.Encoder, rows: Rows) -> Tensor:
    """Return the states of the inputs of a pass, each computed alone: [tokens, hidden] float32."""
    return torch.cat([hidden for row in rows for item in row for hidden in one.encode([[[item]]])])


def test_inputs_are_laid_out_in_their_rows() -> None:
    ids = [[[7, 8], [9]], [[5, 6, 7, 8, 9]], [[4]]]
    laid_out = lay_out([[Tokens.of(one) for one in row] for row in ids])

    segments = [[1, 1, 2, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]]
    expected = {
        "input_ids": [[7, 8, 9, 0, 0, 0, 0, 0], [5, 6, 7, 8, 9, 0, 0, 0], [4, 0, 0, 0, 0, 0, 0, 0]],
        "position_ids": [[0, 1, 0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 0, 0, 0], [0] * 8],
        "segments": segments,
        "attention_mask": segments,
        "token_type_ids": [[0] * 8] * 3,
    }
    assert {name: values.tolist() for name, values in laid_out.items()} == expected
    assert {values.dtype for values in laid_out.values()} == {np.dtype(np.int64)}


@pytest.mark.parametrize(("tokens", "width"), [(1, 8), (8, 8), (9, 16), (64, 64), (65, 80), (300, 320)])
def test_the_engine_meets_rows_of_few_widths(tokens: int, width: int) -> None:
    """It prepares itself anew for each shape."""
    assert lay_out([[Tokens.of([5] * tokens)], [Tokens.of([6])]])["input_ids"].shape == (2, width)


def test_what_the_encoder_likes(openvino: OpenVinoEncoder, folder: Path) -> None:
    assert (openvino.name, openvino.device, openvino.dtype) == ("openvino", "cpu", "float32")
    assert (openvino.policy.max_tokens, openvino.policy.packs_rows) == (512, True)
    assert (openvino.policy.lanes, openvino.policy.hidden) == (THREADS, 32)
    assert OpenVinoEncoder.load(folder, replace(SETTINGS, max_batch_tokens=77)).policy.max_tokens == 77


def test_a_graph_whose_weights_would_be_in_memory_twice_has_one_lane(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (folder / WEIGHTS).stat().st_size
    monkeypatch.setattr(openvino_encoder, "_LARGEST_WITH_LANES_BYTES", size - 1)
    large = OpenVinoEncoder.load(folder, SETTINGS)
    monkeypatch.setattr(openvino_encoder, "_LARGEST_WITH_LANES_BYTES", size)
    small = OpenVinoEncoder.load(folder, SETTINGS)

    assert (large.policy.lanes, small.policy.lanes) == (1, THREADS)
    passes: list[Rows] = [[[item]] for item in inputs(9)]
    for given, expected in zip(large.encode(passes), small.encode(passes)):
        torch.testing.assert_close(given, expected, rtol=0, atol=1e-5)


def test_the_states_are_those_of_pytorch(openvino: OpenVinoEncoder, reference: Embedder) -> None:
    rows: Rows = [[item] for item in inputs(12)]

    (given,) = openvino.encode([rows])

    assert given.dtype == torch.float32
    torch.testing.assert_close(given, alone(reference.encoder, rows), rtol=0, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2, THREADS + 1, THREADS + 2, 40])
def test_results_come_in_order_however_many_passes_run_side_by_side(count: int, openvino: OpenVinoEncoder) -> None:
    """More passes than requests, each of rows of several inputs, none as long as another."""
    draw = random.Random(count)
    items = inputs(9 * count, seed=count)
    passes: list[Rows] = []
    for i in range(count):
        some, cut = items[9 * i : 9 * i + 9], draw.randint(1, 8)
        passes.append([some[:cut], some[cut:]])

    results = list(openvino.encode(passes))

    assert len(results) == count
    for given, rows in zip(results, passes):
        assert given.shape == (sum(len(item.ids) for row in rows for item in row), 32)
        torch.testing.assert_close(given, alone(openvino, rows), rtol=0, atol=1e-5)


def test_passes_that_nobody_waits_for_do_no_harm_to_the_next(openvino: OpenVinoEncoder) -> None:
    passes: list[Rows] = [[[item]] for item in inputs(20)]
    left = openvino.encode(passes)
    first = next(left)
    del left

    again = list(openvino.encode(passes))

    torch.testing.assert_close(first, again[0], rtol=0, atol=0)
    for given, rows in zip(again, passes):
        torch.testing.assert_close(given, alone(openvino, rows), rtol=0, atol=1e-5)


def test_a_nan_stays_in_its_own_request_though_texts_share_its_row(
    folder: Path, reference: Embedder, tmp_path: Path
) -> None:
    """Attention to a token hides its numbers by a factor of zero, which makes nothing of a NaN."""
    shutil.copytree(folder, tmp_path / "model")
    assert isinstance(reference.encoder, TransformersEncoder)
    table = reference.encoder.model.get_input_embeddings().weight.detach().numpy()
    weights = (folder / WEIGHTS).read_bytes()
    bad_row = table[reference.tokenizer.encode(["japan"])[0].ids[1]].tobytes()
    assert weights.count(bad_row) == 1
    (tmp_path / "model" / WEIGHTS).write_bytes(weights.replace(bad_row, b"\xff" * len(bad_row)))
    poisoned = Embedder.load(tmp_path / "model", replace(reference.settings, engine=SETTINGS))
    service = Service(poisoned, {"golden_cosine": 1.0}, capacity_tokens=1000)
    texts = ["the rose is small and a farm is in the text", "japan", "a", "the rose"]

    long, bad, *short = service.compute([service.read({"instances": [text]}, {}, "") for text in texts])

    assert isinstance(bad, InternalError)
    assert str(bad) == "inputs [0] gave numbers that are not finite"
    for given, text in zip([long, *short], [texts[0], *texts[2:]]):
        assert isinstance(given, Tensor)
        torch.testing.assert_close(given, reference.answer_texts([text]), rtol=0, atol=1e-5)


def cut(name: str, size: int) -> Callable[[Path], object]:
    """Return a change that keeps the start of a file."""
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda folder: (folder / GRAPH).unlink(), "Could not open the file"),
        (lambda folder: (folder / WEIGHTS).unlink(), "Empty weights data in bin file or bin file cannot be found!"),
        (cut(GRAPH, 5000), "Start-end tags mismatch"),
        (cut(GRAPH, 0), "Unable to read the model"),
        (cut(WEIGHTS, 5000), "Incorrect weights in bin file!"),
        (cut(WEIGHTS, -4), "Incorrect weights in bin file!"),
        (cut(WEIGHTS, 0), "Incorrect weights in bin file!"),
    ],
    ids=["no graph", "no weights", "half a graph", "empty graph", "some weights", "weights cut", "empty weights"],
)
def test_a_graph_that_cannot_be_read_is_named(
    damage: Callable[[Path], object], cause: str, folder: Path, tmp_path: Path
) -> None:
    for name in (GRAPH, WEIGHTS):
        shutil.copyfile(folder / name, tmp_path / name)
    damage(tmp_path)

    with pytest.raises(ModelDirError) as refusal:
        encoder.load(tmp_path, SETTINGS, "cpu", TASK)

    told = str(refusal.value)
    assert told.startswith(f"{tmp_path / GRAPH}: OpenVINO cannot load it; pack the model again: ")
    assert cause in told


def test_an_archive_for_cpus_runs_on_the_cpu_of_a_machine_with_a_gpu(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = encoder.load(folder, replace(SETTINGS, dtype="float32"), "cuda:0", TASK)

    assert (loaded.name, loaded.device) == ("openvino", "cpu")
    assert [record.getMessage() for record in caplog.records] == [
        "the GPU stays idle: this archive is for CPUs; pack it with --target gpu or --target any"
    ]
    with pytest.raises(SettingsError) as refusal:
        encoder.load(folder, replace(SETTINGS, dtype="float16"), "cuda:0", TASK)
    assert str(refusal.value) == ("engine.dtype: float16 needs a CUDA device; use auto, float32 or bfloat16 on the CPU")


def run(code: str) -> str:
    """Run Python in a process of its own and return what it prints."""
    paths = os.pathsep.join((str(ROOT / "handler"), str(ROOT)))
    command = [sys.executable, "-W", "ignore", "-c", code]
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout


LOADED = "print(sorted(name for name in sys.modules if name.startswith('openvino_telemetry') and sys.modules[name]))"


@pytest.mark.parametrize(
    "imports",
    [
        "from marvec.encoder import openvino_encoder",
        "import embedding_handler; from marvec.encoder import openvino_encoder",
        "from archiver import pack, openvino_export; openvino_export.openvino.convert_model",
    ],
    ids=["library", "worker", "archiver"],
)
def test_openvinos_telemetry_is_never_imported(imports: str) -> None:
    assert run(f"import sys; {imports}; {LOADED}") == "[]\n"


def test_signals_still_have_a_stack_when_encoders_are_gone(folder: Path) -> None:
    """OpenVINO replaces the main thread's; with two of its cores the second one's end brought back an unmapped one."""
    code = f"""
import gc, os, signal
from pathlib import Path
from marvec.encoder.openvino_encoder import OpenVinoEncoder
from marvec.settings import EngineSettings
from marvec.tokens import Tokens

signal.signal(signal.SIGTERM, lambda number, frame: print("handled", number))
two = [OpenVinoEncoder.load(Path({str(folder)!r}), EngineSettings(encoder="openvino")) for _ in range(2)]
[list(one.encode([[[Tokens.of([2, 5, 3])]]])) for one in two]
del two[0]
two.clear()
gc.collect()
os.kill(os.getpid(), signal.SIGTERM)
"""
    assert run(code) == "handled 15\n"
