"""The form of a model's graph: numbers of positions, windows of attention, and the one form that is exact."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel

from archiver import openvino_forms
from archiver.openvino_forms import PackedRows, PaddedRows, Positions
from marvec.encoder.layout import lay_out
from marvec.tokens import Tokens
from tests.models import decoders, families
from tests.models.decoders import DECODERS
from tests.models.families import FAMILIES
from tests.models.tiny import KINDS, Kind, TinyModels

WITHOUT_SHARED_ROWS = ("deberta-v2", "longformer")
ROW = [Tokens.of(ids) for ids in ([7, 8, 9], [5, 1, 6, 1, 7], [1], [9, 9])]


def samples(config: PretrainedConfig, *lengths: int) -> list[Tokens]:
    """Return inputs of random ids that are no padding, of the lengths."""
    draw = random.Random(1)
    ids = [token for token in range(config.vocab_size) if token != config.pad_token_id]
    return [Tokens.of(draw.choices(ids, k=length)) for length in lengths]


def require_exact(model: PreTrainedModel) -> None:
    """Find the form with shared rows, and compare other inputs than it was found by, padding tokens among them."""
    form = openvino_forms.find(model, samples(model.config, 5, 40, 9, 60))
    assert isinstance(form, PackedRows)
    inputs = samples(model.config, 1, 33, 17, 2, 64)
    if model.config.pad_token_id is not None:
        ids = inputs[2].ids
        inputs[2] = Tokens.of([*ids[:3], *[model.config.pad_token_id] * 2, *ids[5:]])
    laid_out = lay_out([inputs[:3], inputs[3:]])
    with torch.inference_mode():
        hidden = form(*(torch.from_numpy(laid_out[name]) for name in form.inputs))
        alone = [
            model(input_ids=torch.tensor([item.ids]), attention_mask=torch.ones(1, len(item.ids)))[0][0]
            for item in inputs
        ]
    real = torch.from_numpy(laid_out["segments"] > 0)
    torch.testing.assert_close(hidden[real], torch.cat(alone), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_usual_families_have_an_exact_form_with_shared_rows(kind: Kind, tiny_models: TinyModels) -> None:
    require_exact(AutoModel.from_pretrained(tiny_models(kind)).eval())


@pytest.mark.parametrize("kind", [family.kind for family in FAMILIES if family.kind not in WITHOUT_SHARED_ROWS])
def test_more_families_have_one(kind: str, tmp_path: Path) -> None:
    [family] = [family for family in FAMILIES if family.kind == kind]
    families.write(tmp_path / kind, family)
    model = AutoModel.from_pretrained(tmp_path / kind).eval()
    require_exact(model.encoder if kind == "t5" else model)


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_decoders_have_one(decoder: decoders.Decoder, tmp_path: Path) -> None:
    decoders.write(tmp_path / "model", decoder)
    require_exact(AutoModel.from_pretrained(tmp_path / "model").eval())


@pytest.mark.parametrize("kind", WITHOUT_SHARED_ROWS)
def test_a_model_that_takes_no_such_mask_gets_one_input_a_row(kind: str, tmp_path: Path) -> None:
    [family] = [family for family in FAMILIES if family.kind == kind]
    families.write(tmp_path / kind, family)
    model = AutoModel.from_pretrained(tmp_path / kind).eval()

    form = openvino_forms.find(model, samples(model.config, 5, 40, 9, 60))

    assert isinstance(form, PaddedRows)
    assert form.inputs == ("input_ids", "attention_mask")


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        (Positions(), [0, 1, 2, 0, 1, 2, 3, 4, 0, 0, 1]),
        (Positions(2), [2, 3, 4, 2, 3, 4, 5, 6, 2, 2, 3]),
        # The padding token 1 keeps its own number, and the tokens after it in its input stand as if it were not there.
        (Positions(2, uncounted=1), [2, 3, 4, 2, 1, 3, 1, 4, 1, 2, 3]),
        (Positions(5, uncounted=9), [5, 6, 9, 5, 6, 7, 8, 9, 5, 9, 9]),
    ],
)
def test_how_tokens_are_numbered(positions: Positions, expected: list[int]) -> None:
    laid_out = {name: torch.from_numpy(values) for name, values in lay_out([ROW]).items()}

    [numbers] = positions.number(laid_out["input_ids"], laid_out["position_ids"]).tolist()
    assert numbers[: len(expected)] == expected  # what follows is padding


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("bert", {}, None),
        ("modernbert", {"local_attention": 16}, 8),
        ("mistral", {"sliding_window": 16}, 16),
        ("mistral", {"sliding_window": None}, None),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}, 16),
        ("qwen3", {"use_sliding_window": False, "sliding_window": 16}, None),
        ("gemma3_text", {"sliding_window": 16, "layer_types": ["sliding_attention"] * 2}, 16),
        ("gemma3_text", {"sliding_window": 16, "layer_types": ["full_attention"] * 2}, None),
    ],
)
def test_how_far_a_token_of_a_sliding_layer_sees(kind: str, settings: dict[str, object], expected: int | None) -> None:
    config = AutoConfig.for_model(kind, num_hidden_layers=2, **settings)

    assert openvino_forms.window(config) == expected
