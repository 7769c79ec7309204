"""Six families of encoders in every pooling: tiny seeded models, every text, every length around the limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.models.tiny import KINDS, MAX_TOKENS, POOLINGS, Kind, Pooling, TinyModels
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.sides import require_parity

OTHER_POOLINGS = ("weightedmean", "mean_sqrt_len_tokens")


def pooling_of(**settings: object) -> Callable[[Path], object]:
    """Return a change that rewrites 1_Pooling/config.json."""
    content = json.dumps({"word_embedding_dimension": 32, **settings})
    return lambda folder: (folder / "1_Pooling" / "config.json").write_text(content)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_in_every_pooling(
    kind: Kind, pooling: Pooling, tiny_models: TinyModels, sides: SidesMaker
) -> None:
    model = sides(tiny_models(kind, pooling=pooling))

    assert model.ours.settings.model.pooling == (pooling,)
    assert model.ours.settings.model.normalize is False
    assert model.ours.settings.model.max_length == MAX_TOKENS
    require_parity(model, texts.ALL)
    require_parity(model, texts.around_limit(model.ours))


@pytest.mark.parametrize("kind", KINDS)
def test_every_length_up_to_the_limit(kind: Kind, tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models(kind, pooling="mean"))

    require_parity(model, [texts.of_length(model.ours, count) for count in range(3, MAX_TOKENS + 3)])


@pytest.mark.parametrize("kind", KINDS)
def test_long_texts(kind: Kind, tiny_models: TinyModels, sides: SidesMaker) -> None:
    require_parity(sides(tiny_models(kind, pooling="mean")), texts.LONG)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dense_layer_and_normalization(kind: Kind, tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models(kind, pooling="mean", dense=24, normalize=True))

    assert (model.ours.settings.model.dimension, model.ours.settings.model.dense) == (24, ("2_Dense",))
    require_parity(model, texts.ALL)
    assert np.allclose(np.linalg.norm(model.ours.vectors(texts.ORDINARY), axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_normalization_after_every_pooling(pooling: Pooling, tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models("bert", pooling=pooling, normalize=True))

    require_parity(model, texts.ALL)


@pytest.mark.parametrize("mode", OTHER_POOLINGS)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_poolings_that_few_models_use(kind: Kind, mode: str, tiny_models: TinyModels, sides: SidesMaker) -> None:
    key = {"weightedmean": "pooling_mode_weightedmean_tokens", "mean_sqrt_len_tokens": f"pooling_mode_{mode}"}[mode]
    change = pooling_of(pooling_mode_mean_tokens=False, **{key: True})
    model = sides(sides.changed(tiny_models(kind, pooling="mean"), change))

    assert model.ours.settings.model.pooling == (mode,)
    require_parity(model, texts.ALL)
    require_parity(model, texts.around_limit(model.ours))


@pytest.mark.parametrize(
    ("settings", "modes"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, ("cls", "mean")),
        ({"pooling_mode": ["mean", "max"]}, ("mean", "max")),
        ({"pooling_mode": ["lasttoken", "weightedmean", "cls"]}, ("lasttoken", "weightedmean", "cls")),
        ({"pooling_mode": "max"}, ("max",)),
        ({}, ("mean",)),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": False}, ("mean",)),
        ({"pooling_mode": "cls", "pooling_mode_mean_tokens": True}, ("cls",)),
    ],
)
def test_several_poolings_are_concatenated_and_old_and_new_keys_are_read(
    settings: dict[str, object], modes: tuple[str, ...], tiny_models: TinyModels, sides: SidesMaker
) -> None:
    model = sides(sides.changed(tiny_models("bert", pooling="mean", normalize=True), pooling_of(**settings)))

    assert model.ours.settings.model.pooling == modes
    assert model.ours.settings.model.dimension == 32 * len(modes)
    require_parity(model, [*texts.ORDINARY, *texts.around_limit(model.ours)])


def test_a_dense_layer_after_concatenated_poolings(tiny_models: TinyModels, sides: SidesMaker) -> None:
    """The layer's weights stay 32 wide: it stands behind the concatenation of two halves as wide as that."""
    wide = tiny_models("distilbert", pooling="mean", dense=24)

    def change(folder: Path) -> None:
        pooling_of(pooling_mode=["cls", "max"])(folder)
        widen_dense(folder / "2_Dense")

    model = sides(sides.changed(wide, change))

    assert model.ours.settings.model.dimension == 24
    require_parity(model, texts.ORDINARY)


def widen_dense(folder: Path) -> None:
    """Double the input of a Dense layer."""
    weights = load_file(folder / "model.safetensors")
    weights["linear.weight"] = np.concatenate([weights["linear.weight"], weights["linear.weight"][:, ::-1]], axis=1)
    save_file(weights, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"in_features": 64}))
