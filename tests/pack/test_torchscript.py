"""A TorchScript file in the place of the weights: what of it is checked, and what the archive then holds."""

from __future__ import annotations

import json
import re
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from torch import Tensor, nn
from transformers import AutoModel

from archiver.errors import PackError
from archiver.options import PackOptions
from marvec.embedder import Embedder
from marvec.golden import Golden
from marvec.settings import EmbeddingSettings, read_settings
from tests.models.tiny import HIDDEN, TinyModels
from tests.pack.conftest import Packer, marvec

EXAMPLE = (torch.tensor([[5, 6, 7, 8], [5, 6, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]))


class Transformer(nn.Module):
    """What people wrap a model in before they trace it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.model = AutoModel.from_pretrained(folder)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return hidden


class WithTypes(Transformer):
    """As a model takes it that can tell the texts of a pair from each other."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:  # type: ignore[override]
        hidden: Tensor = self.model(input_ids, attention_mask, token_type_ids).last_hidden_state
        return hidden


def save(module: nn.Module, file: Path, example: tuple[Tensor, ...] = EXAMPLE, *, training: bool = False) -> Path:
    """Trace a module as its users would."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(module.train(training), example, check_trace=False)  # type: ignore[no-untyped-call]
        torch.jit.save(traced, file)
    return file


def save_script(module: nn.Module, file: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(module), file)
    return file


def pack(packer: Packer, model: Path, file: Path) -> tuple[str, ...]:
    return packer(model, PackOptions(model=str(model), torchscript=file)).notes


@pytest.fixture
def bare(tiny_models: TinyModels, tmp_path: Path) -> Path:
    """Return a model directory with Dense layers, but without the transformer's weights."""
    folder = tmp_path / "bare"
    shutil.copytree(tiny_models("bert", pooling="mean", dense=16, normalize=True), folder)
    (folder / "model.safetensors").unlink()
    return folder


def test_a_directory_without_weights_is_packed_to_the_vectors_of_the_file(
    bare: Path, tiny_models: TinyModels, packer: Packer, tmp_path: Path
) -> None:
    whole = tiny_models("bert", pooling="mean", dense=16, normalize=True)
    file = save(Transformer(whole), tmp_path / "traced.pt")

    notes = pack(packer, bare, file)

    assert notes[-4:] == (
        "checking the TorchScript file on inputs of several shapes",
        "nothing to compare it with: the directory has no weights",
        "recording golden answers",
        "loading the archive as a TorchServe worker does",
    )
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(packer.store / "tiny.mar") as archive:
        archive.extractall(unpacked)
    assert sorted(str(path.relative_to(unpacked)) for path in (unpacked / "model").rglob("*.*")) == [
        "model/2_Dense/config.json",
        "model/2_Dense/model.safetensors",
        "model/config.json",
        "model/model.pt",
        "model/tokenizer.json",
    ]
    assert (unpacked / "model" / "model.pt").read_bytes() == file.read_bytes()
    assert not (unpacked / "drift.json").exists()
    settings = read_settings(yaml.safe_load((unpacked / "model-config.yaml").read_text())["handler"])
    assert isinstance(settings, EmbeddingSettings)
    assert (settings.engine.encoder, settings.engine.dtype) == ("torchscript", "float32")
    packer(whole)  # from its weights, by OpenVINO
    with zipfile.ZipFile(packer.store / "tiny.mar") as archive:
        expected = Golden(**json.loads(archive.read("golden.json")))
    served = Embedder.load(unpacked / "model", settings).answer_texts(expected.texts)
    assert torch.allclose(served, torch.tensor(expected.answers), atol=1e-6)


def test_weights_beside_the_file_are_compared_with_it_and_stay_behind(tiny_models: TinyModels, tmp_path: Path) -> None:
    model, store = tiny_models("bert"), tmp_path / "store"
    file = save(Transformer(model), tmp_path / "traced.pt")

    done = marvec(
        *("pack", str(model), "--torchscript", str(file), "--name", "tiny", "--model-store", str(store)),
        PYTHONWARNINGS="always::DeprecationWarning",  # such as torch has for TorchScript
    )

    lines = [re.sub(r"\d\.\de[+-]\d\d", "X", line) for line in done.stderr.splitlines()]
    assert lines == [
        "served for embedding",
        "pooling mean, the default: a plain directory does not say (change it with --pooling)",
        "vectors not normalized: a plain directory does not ask for it (change it with --normalize)",
        "checking the weights against config.json",
        "checking the TorchScript file on inputs of several shapes",
        "largest difference to the directory's weights X on 27 inputs",
        "recording golden answers",
        "loading the archive as a TorchServe worker does",
    ]
    assert "encoder     torchscript, float32" in done.stdout
    with zipfile.ZipFile(store / "tiny.mar") as archive:
        drift = json.loads(archive.read("drift.json"))
        assert not [name for name in archive.namelist() if name.endswith((".safetensors", ".xml"))]
    assert drift["inputs"] == 27
    assert drift["largest_difference"] < 1e-6
    assert (model / "model.safetensors").is_file()


def test_a_file_that_takes_token_types_too_is_told_that_all_are_of_one_text(
    tiny_models: TinyModels, packer: Packer, tmp_path: Path
) -> None:
    model = tiny_models("bert")
    file = save(WithTypes(model), tmp_path / "traced.pt", (*EXAMPLE, torch.tensor([[0, 0, 1, 1], [0, 1, 0, 0]])))

    notes = pack(packer, model, file)

    told = next(note for note in notes if note.startswith("largest difference to the directory's weights "))
    difference, inputs = told.removeprefix("largest difference to the directory's weights ").split(" on ")
    assert float(difference) < 1e-6
    assert inputs == "27 inputs"
    with zipfile.ZipFile(packer.store / "tiny.mar") as archive:
        assert archive.read("model/model.pt") == file.read_bytes()


def test_a_file_of_another_model_than_the_weights(tiny_models: TinyModels, packer: Packer, tmp_path: Path) -> None:
    model, other = tiny_models("bert"), tiny_models("bert", seed=1)
    file = save(Transformer(other), tmp_path / "traced.pt")

    with pytest.raises(PackError) as refusal:
        pack(packer, model, file)

    assert re.sub(r"by \d\.\de[+-]\d\d", "by X", str(refusal.value)) == (
        f"{file}: its vectors differ by X from those of the weights in {model}, allowed is 1e-03; drop --torchscript "
        "to serve the weights, or take them out of the directory to serve the file"
    )
    assert not list(packer.store.iterdir())


class Table(nn.Module):
    """The simplest encoder: a vector for each token, whatever stands beside it."""

    def __init__(self, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.table = nn.Embedding(200, hidden)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden: Tensor = self.table(input_ids) * attention_mask[:, :, None]
        return hidden


class Dropped(Table):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return nn.functional.dropout(super().forward(input_ids, attention_mask), 0.1, self.training)


class Mixing(Table):
    """Each token sees the others, padding or not."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden: Tensor = self.table(input_ids)
        return hidden + hidden.mean(dim=1, keepdim=True)


class FixedLength(Table):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids, attention_mask) + torch.ones(4, HIDDEN)


class FiftyPositions(Table):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", torch.ones(50, HIDDEN))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids, attention_mask) + self.get_buffer("places")[: input_ids.shape[1]]


class FixedBatch(Table):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        hidden = super().forward(input_ids, attention_mask)
        return torch.stack([hidden[0], hidden[1]])


class FirstOnly(Table):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids, attention_mask)[:1]


class Pooled(Table):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids, attention_mask).mean(dim=1)


class Half(Table):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids, attention_mask).half()


class WithPositions(nn.Module):
    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor) -> Tensor:
        return torch.stack([input_ids, attention_mask, position_ids], dim=2).float()


class TypesSecond(nn.Module):
    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        return torch.stack([input_ids, token_type_ids], dim=2).float()


class Swapped(nn.Module):
    def forward(self, attention_mask: Tensor, input_ids: Tensor) -> Tensor:
        return torch.stack([input_ids, attention_mask], dim=2).float()


class IdsOnly(nn.Module):
    def forward(self, input_ids: Tensor) -> Tensor:
        return input_ids[:, :, None].float()


class Counting(nn.Module):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> int:
        return int(attention_mask.sum())


INPUTS = (
    "expected is forward(input_ids, attention_mask), both [inputs, length] int64; trace a module that takes these two "
    "and fills in the rest"
)
CONSTANT = "a trace must not hold its example's shape as a constant"
REFUSALS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a text": (
        lambda file: file.write_text("no zip"),
        "not a TorchScript file, as torch.jit.save writes it: "
        "PytorchStreamReader failed reading zip archive: not a ZIP archive",
    ),
    "a state dict": (
        lambda file: torch.save({"weight": torch.ones(3)}, file),
        "not a TorchScript file, as torch.jit.save writes it: "
        "PytorchStreamReader failed locating file constants.pkl: file not found",
    ),
    "position_ids": (
        lambda file: save(WithPositions(), file, (*EXAMPLE, torch.zeros_like(EXAMPLE[0]))),
        f"takes forward(input_ids, attention_mask, position_ids), {INPUTS}",
    ),
    "token_type_ids for the mask": (
        lambda file: save(TypesSecond(), file),
        f"takes forward(input_ids, token_type_ids), {INPUTS}",
    ),
    "the mask first": (
        lambda file: save(Swapped(), file, EXAMPLE[::-1]),
        f"takes forward(attention_mask, input_ids), {INPUTS}",
    ),
    "no mask": (lambda file: save(IdsOnly(), file, EXAMPLE[:1]), f"takes forward(input_ids), {INPUTS}"),
    "a fixed length": (
        lambda file: save(FixedLength(), file),
        "fails on inputs [1, 7]: RuntimeError: The size of tensor a (7) must match the size of tensor b (4) at "
        f"non-singleton dimension 1; {CONSTANT}",
    ),
    "fewer positions than the longest input": (
        lambda file: save(FiftyPositions(), file),
        "fails on inputs [1, 64]: RuntimeError: The size of tensor a (64) must match the size of tensor b (50) at "
        f"non-singleton dimension 1; {CONSTANT}",
    ),
    "a fixed batch": (
        lambda file: save(FixedBatch(), file),
        "fails on inputs [1, 7]: RuntimeError: select(): index 1 out of range for tensor of size [1, 7, 32] at "
        f"dimension 0; {CONSTANT}",
    ),
    "one input for all": (
        lambda file: save(FirstOnly(), file),
        "gives [1, 23, 32] float32 for inputs [3, 23], expected are hidden states [3, 23, 32] float32",
    ),
    "a pooled output": (
        lambda file: save(Pooled(), file),
        "gives [1, 32] float32 for inputs [1, 7], expected are hidden states [1, 7, 32] float32",
    ),
    "another hidden size": (
        lambda file: save(Table(hidden=24), file),
        "gives [1, 7, 24] float32 for inputs [1, 7], expected are hidden states [1, 7, 32] float32",
    ),
    "no tensor": (
        lambda file: save_script(Counting(), file),
        "the graph gives int where a tensor should be",
    ),
    "half precision": (
        lambda file: save(Half(), file),
        "gives [1, 7, 32] float16 for inputs [1, 7], expected are hidden states [1, 7, 32] float32",
    ),
    "dropout": (
        lambda file: save(Dropped(), file, training=True),
        "gives other numbers each time: it was traced in training mode; call eval() before",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_file_that_is_no_transformer_for_any_batch(case: str, bare: Path, packer: Packer, tmp_path: Path) -> None:
    make, expected = REFUSALS[case]
    file = tmp_path / "model.pt"
    make(file)

    with pytest.raises(PackError) as refusal:
        pack(packer, bare, file)

    assert str(refusal.value) == f"{file}: {expected}"
    assert not list(packer.store.iterdir())


def test_a_graph_that_does_not_heed_the_mask(bare: Path, packer: Packer, tmp_path: Path) -> None:
    torch.manual_seed(0)
    file = save(Mixing(), tmp_path / "model.pt")

    with pytest.raises(PackError) as refusal:
        pack(packer, bare, file)

    assert re.fullmatch(
        rf"{re.escape(str(file))}: an input's hidden states change by \d\d\.\d% beside a longer one: "
        "the graph does not heed attention_mask",
        str(refusal.value),
    )


def test_options_that_do_not_go_together(bare: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    with pytest.raises(PackError) as refusal:
        PackOptions(model=str(bare), torchscript=file)
    assert str(refusal.value) == f"--torchscript: {file} is not a file"

    file.touch()
    with pytest.raises(PackError) as refusal:
        PackOptions(model=str(bare), torchscript=file, dtype="bfloat16")
    assert str(refusal.value) == (
        "--dtype: bfloat16 cannot be had with --torchscript: the file computes as it was traced, and is served in "
        "float32 only"
    )
