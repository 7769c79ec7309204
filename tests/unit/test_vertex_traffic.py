"""Shares of traffic: whole per cent, 100 in all, in the proportions that were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex.errors import AbsentError, VertexError
from vertex.traffic import NEW, back_from, named, with_share, without

SHARES = st.integers(0, 100)


@st.composite
def splits(draw: st.DrawFn, least: int = 1) -> dict[str, int]:
    """Return a split that sums to 100, with models that have no traffic among the others."""
    cuts = sorted(draw(st.lists(SHARES, min_size=least - 1, max_size=7)))
    bounds = [0, *cuts, 100]
    return {f"m{place}": bounds[place + 1] - bounds[place] for place in range(len(bounds) - 1)}


def require_split(split: dict[str, int], ids: set[str]) -> None:
    """Make sure that Google takes it."""
    assert sum(split.values()) == 100
    assert all(share > 0 for share in split.values())
    assert split.keys() <= ids


def require_proportions(before: dict[str, int], after: dict[str, int], left: int) -> None:
    """Make sure that each has its part of what is left, to within the rounding."""
    whole = sum(before.values())
    for one, share in before.items():
        assert abs(after.get(one, 0) - share * left / whole) < 1


@pytest.mark.parametrize(
    ("split", "model", "share", "result"),
    [
        ({}, NEW, 100, {"0": 100}),
        ({}, NEW, 10, {"0": 100}),
        ({"a": 100}, NEW, 10, {"a": 90, "0": 10}),
        ({"a": 100}, NEW, 0, {"a": 100}),
        ({"a": 100}, NEW, 100, {"0": 100}),
        ({"a": 100}, "a", 10, {"a": 100}),
        ({"a": 0}, NEW, 100, {"0": 100}),
        ({"a": 90, "b": 10}, "b", 50, {"a": 50, "b": 50}),
        ({"a": 1, "b": 1, "c": 98}, NEW, 98, {"c": 2, "0": 98}),
        ({"a": 33, "b": 33, "c": 34}, NEW, 50, {"a": 17, "b": 16, "c": 17, "0": 50}),
        ({"a": 0, "b": 100}, "a", 25, {"a": 25, "b": 75}),
    ],
)
def test_one_gets_a_share(split: dict[str, int], model: str, share: int, result: dict[str, int]) -> None:
    assert with_share(split, model, share) == result


def test_the_rest_of_a_share_needs_somebody() -> None:
    with pytest.raises(VertexError) as caught:
        with_share({"a": 0, "b": 100}, "b", 30)
    assert str(caught.value) == "30 % leaves 70 % to versions that have no traffic: name their shares"


@given(splits(), st.sampled_from(["m0", "m1", NEW]), SHARES)
def test_shares_are_a_split_in_the_old_proportions(split: dict[str, int], model: str, share: int) -> None:
    others = {one: part for one, part in split.items() if one != model and part > 0}
    if not others:
        return
    result = with_share(split, model, share)
    require_split(result, {*split, model})
    assert result.get(model, 0) == share
    require_proportions(others, result, 100 - share)


@given(splits(), SHARES)
def test_the_same_share_again_changes_nothing(split: dict[str, int], share: int) -> None:
    """What is planned anew after a step must end."""
    once = with_share(split, NEW, share)
    assert with_share({**dict.fromkeys(split, 0), **once}, NEW, share) == once


def test_a_split_that_was_given_is_not_changed() -> None:
    split = {"a": 60, "b": 40}
    with_share(split, NEW, 10)
    without(split, "b")
    back_from(split, "b")
    assert split == {"a": 60, "b": 40}


@pytest.mark.parametrize(
    ("split", "model", "result"),
    [
        ({"a": 100}, "a", {}),
        ({"a": 40, "b": 60}, "a", {"b": 100}),
        ({"a": 0, "b": 0, "c": 100}, "c", {"b": 100}),
        ({"a": 100, "b": 0}, "b", {"a": 100}),
        ({"a": 20, "b": 30, "c": 50}, "c", {"a": 40, "b": 60}),
        ({"a": 1, "b": 98, "c": 1}, "b", {"a": 50, "c": 50}),
    ],
)
def test_one_loses_its_share(split: dict[str, int], model: str, result: dict[str, int]) -> None:
    assert without(split, model) == result


@given(splits(least=2), st.integers(0, 1))
def test_what_is_taken_goes_to_the_others(split: dict[str, int], place: int) -> None:
    model = f"m{place}"
    others = {one: part for one, part in split.items() if one != model}
    result = without(split, model)
    require_split(result, set(others))
    if any(others.values()):
        require_proportions(others, result, 100)


@pytest.mark.parametrize(
    ("split", "model", "result"),
    [
        ({"a": 0, "b": 100}, "b", {"a": 100}),
        ({"a": 90, "b": 10}, "b", {"a": 100}),
        ({"a": 0, "b": 0, "c": 100}, "c", {"b": 100}),
        ({"a": 60, "b": 30, "c": 10}, "c", {"a": 67, "b": 33}),
        ({"a": 0, "b": 100, "c": 0}, "b", {"a": 100}),
    ],
)
def test_the_way_back_leads_to_older_ones(split: dict[str, int], model: str, result: dict[str, int]) -> None:
    assert back_from(split, model) == result


@pytest.mark.parametrize("split", [{"a": 100}, {"a": 100, "b": 0}])
def test_there_is_no_way_back_from_the_oldest(split: dict[str, int]) -> None:
    with pytest.raises(AbsentError) as caught:
        back_from(split, "a")
    assert str(caught.value) == "no older version is deployed on the endpoint: marvec vertex deploy --version N"


@given(splits(least=2))
def test_the_way_back_never_leads_forward(split: dict[str, int]) -> None:
    leaving = [one for one, share in split.items() if share > 0][-1]
    older = set(list(split)[: list(split).index(leaving)])
    if older:
        require_split(back_from(split, leaving), older)


def test_shares_that_are_named_as_they_are() -> None:
    assert named({"a": 30, "b": 0, "c": 70}) == {"a": 30, "c": 70}


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ({"a": 50, "b": 40}, "the shares of traffic sum to 90: expected 100"),
        ({}, "the shares of traffic sum to 0: expected 100"),
        ({"a": 101}, "shares of traffic are whole numbers from 0 to 100"),
        ({"a": 110, "b": -10}, "shares of traffic are whole numbers from 0 to 100"),
    ],
)
def test_shares_that_are_no_split(shares: dict[str, int], reason: str) -> None:
    with pytest.raises(VertexError) as caught:
        named(shares)
    assert str(caught.value) == reason


def test_the_version_before_takes_over_not_one_that_was_rolled_back() -> None:
    assert without({"9": 0, "10": 100, "11": 0}, "10") == {"9": 100}
    assert without({"10": 100, "11": 0}, "10") == {"11": 100}
