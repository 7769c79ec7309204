"""The encoder of GPUs and of what does not convert, PyTorch on padded batches: the same vectors as the oracle's."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.options import PackOptions
from tests.models.decoders import DECODERS
from tests.models.families import FAMILIES
from tests.models.tiny import KINDS, Kind, TinyModels
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.sides import Sides, require_parity

FOR_GPUS = PackOptions("-", target="gpu")


def require_pytorch(model: Sides) -> None:
    """Compare all texts in one request, which need padding beside each other."""
    encoder = model.ours.embedder.encoder
    assert model.ours.settings.engine.encoder == encoder.name == "transformers"
    assert not encoder.policy.packs_rows
    require_parity(model, texts.ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_the_usual_families(kind: Kind, tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models(kind, pooling="mean", normalize=True), FOR_GPUS)

    require_pytorch(model)
    require_parity(model, texts.around_limit(model.ours))


@pytest.mark.parametrize("kind", [family.kind for family in FAMILIES])
def test_more_families(kind: str, family_dirs: dict[str, Path], sides: SidesMaker) -> None:
    require_pytorch(sides(family_dirs[kind], FOR_GPUS))


@pytest.mark.parametrize("name", [decoder.name for decoder in DECODERS])
def test_decoders(name: str, decoder_dirs: dict[str, Path], sides: SidesMaker) -> None:
    require_pytorch(sides(decoder_dirs[name], FOR_GPUS))


def test_the_real_model(minilm_dir: Path, sides: SidesMaker) -> None:
    model = sides(minilm_dir, FOR_GPUS)

    require_pytorch(model)
    require_parity(model, texts.around_limit(model.ours))
