"""Families with something of their own: shared or factorized layers, relative distances, other keys, odd positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.families import FAMILIES, Family
from tests.models.tiny import MAX_TOKENS
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.edits import edit
from tests.parity.sides import require_parity

SOME = ("", "a", *texts.ORDINARY, "<pad>", "[PAD]", "hello " * 300)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_a_plain_directory(family: Family, sides: SidesMaker, family_dirs: dict[str, Path]) -> None:
    model = sides(family_dirs[family.kind])

    assert model.ours.settings.model.max_length == MAX_TOKENS
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_a_tokenizer_without_a_maximum(family: Family, sides: SidesMaker, family_dirs: dict[str, Path]) -> None:
    """The positions are the limit; a family without any gets 512, where the oracle would take a text of any length."""
    unlimited = edit("tokenizer_config.json", model_max_length=None)
    model = sides(sides.changed(family_dirs[family.kind], unlimited))
    limit = MAX_TOKENS if family.positions else 512

    assert model.ours.settings.model.max_length == limit
    model.oracle.model.max_seq_length = limit
    require_parity(model, [*SOME, *texts.around_limit(model.ours)])
