"""A traced classifier in the place of the weights: logits, and token types where pairs need them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from archiver.errors import PackError
from tests.sentiment.asked import Asked
from tests.sentiment.oracle import Oracle, require_equal

TEXTS = ("a rose", "the farm is small " * 9, "")
PAIRS = [{"text": "a rose", "text_pair": "the farm"}, {"text": "the farm", "text_pair": "a rose"}]
EXAMPLE = (torch.tensor([[2, 10, 11, 3], [2, 12, 3, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]))


class TwoInputs(torch.nn.Module):
    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.model(input_ids=input_ids, attention_mask=attention_mask).logits}


class ThreeInputs(TwoInputs):
    def forward(  # type: ignore[override]
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        logits: torch.Tensor = self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).logits
        return logits


class Transformer(TwoInputs):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        hidden: torch.Tensor = self.model.base_model(input_ids=input_ids, attention_mask=attention_mask)[0]
        return hidden


@pytest.fixture(scope="module")
def directory(classifier_dirs: Callable[..., Path]) -> Path:
    return classifier_dirs("bert")


@pytest.fixture
def trace(directory: Path, tmp_path: Path) -> Callable[..., Path]:
    def make(kind: type[TwoInputs], *further: torch.Tensor) -> Path:
        model = AutoModelForSequenceClassification.from_pretrained(directory).eval()
        file = tmp_path / "traced.pt"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch would rather have it exported anew
            traced = torch.jit.trace(kind(model), (*EXAMPLE, *further), strict=False)  # type: ignore[no-untyped-call]
            traced.save(file)
        return file

    return make


def test_three_inputs_serve_pairs(directory: Path, trace: Callable[..., Path], asked: Callable[..., Asked]) -> None:
    ours = asked(directory, torchscript=trace(ThreeInputs, torch.zeros_like(EXAMPLE[0])))
    require_equal(ours.scores([*TEXTS, *PAIRS]), Oracle(directory).scores([*TEXTS, *PAIRS]))
    assert ours.notes[-1] == "largest difference to the directory's weights 0.0e+00 on 51 inputs"


def test_two_inputs_serve_texts(directory: Path, trace: Callable[..., Path], asked: Callable[..., Asked]) -> None:
    file = trace(TwoInputs)
    ours = asked(directory, torchscript=file, pairs=False)
    require_equal(ours.scores(TEXTS), Oracle(directory).scores(TEXTS))
    with pytest.raises(PackError) as caught:
        asked(directory, torchscript=file)
    assert str(caught.value) == (
        f"{file}: takes forward(input_ids, attention_mask), expected is forward(input_ids, attention_mask, "
        "token_type_ids), since this model tells the texts of a pair by the third; trace it so, or pack with --no-pairs"
    )


def test_hidden_states_are_no_logits(directory: Path, trace: Callable[..., Path], asked: Callable[..., Asked]) -> None:
    file = trace(Transformer)
    with pytest.raises(PackError) as caught:
        asked(directory, torchscript=file, pairs=False)
    assert str(caught.value) == (
        f"{file}: gives [1, 7, 32] float32 for inputs [1, 7], expected are logits [1, 3] float32"
    )
