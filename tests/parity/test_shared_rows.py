"""Which families run on OpenVINO, and that texts which share a row of it do not see each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marvec.tokens import Tokens
from tests.models.decoders import DECODERS
from tests.models.families import FAMILIES
from tests.models.tiny import KINDS, Kind, TinyModels
from tests.parity.conftest import SidesMaker
from tests.parity.sides import MOST_DIFFERENCE, Ours

# One token each, many equal, longer than a window of attention, a spelt-out padding token, and the longest.
SOME = ("a", "the rose", "the rose", "日本の薔薇農家", "small farm " * 9, "a[PAD]b<pad>c", "in of is", "text " * 100)
WITHOUT_SHARED_ROWS = {"deberta-v2", "longformer"}
SHARING = [family.kind for family in FAMILIES if family.kind not in WITHOUT_SHARED_ROWS]


def require_shared_rows(ours: Ours) -> None:
    """Compare the states of each token in shared rows with those of its text alone."""
    encoder = ours.embedder.encoder
    assert ours.settings.engine.encoder == encoder.name == "openvino"
    assert encoder.policy.packs_rows
    inputs = [Tokens.of(ours.token_ids(text)) for text in SOME]
    alone = [hidden for item in inputs for hidden in encoder.encode([[[item]]])]
    (together,) = encoder.encode([[inputs]])  # all in one row
    (in_rows,) = encoder.encode([[inputs[:1], inputs[1:4], inputs[4:]]])
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=MOST_DIFFERENCE)
    torch.testing.assert_close(in_rows, torch.cat(alone), rtol=0, atol=MOST_DIFFERENCE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_usual_families_share_rows(kind: Kind, tiny_models: TinyModels, sides: SidesMaker) -> None:
    require_shared_rows(sides(tiny_models(kind, pooling="mean")).ours)


@pytest.mark.parametrize("kind", SHARING)
def test_more_families_share_rows(kind: str, family_dirs: dict[str, Path], sides: SidesMaker) -> None:
    require_shared_rows(sides(family_dirs[kind]).ours)


@pytest.mark.parametrize("name", [decoder.name for decoder in DECODERS])
def test_decoders_share_rows(name: str, decoder_dirs: dict[str, Path], sides: SidesMaker) -> None:
    require_shared_rows(sides(decoder_dirs[name]).ours)


def test_deberta_takes_no_mask_for_shared_rows(family_dirs: dict[str, Path], sides: SidesMaker) -> None:
    ours = sides(family_dirs["deberta-v2"]).ours

    assert ours.settings.engine.encoder == ours.embedder.encoder.name == "openvino"
    assert not ours.embedder.encoder.policy.packs_rows


def test_what_does_not_convert_faithfully_stays_on_pytorch_and_is_told(
    family_dirs: dict[str, Path], sides: SidesMaker
) -> None:
    """Tracing fixes the windows of Longformer at those of the example."""
    ours = sides(family_dirs["longformer"]).ours

    assert ours.settings.engine.encoder == ours.embedder.encoder.name == "transformers"
    assert ours.notes[-2] == "exporting the model to OpenVINO"
    assert ours.notes[-1] == (
        "not exported, so it runs on PyTorch, slower on CPUs: its vectors differ by 6.1e-01, allowed is 1e-04"
    )
