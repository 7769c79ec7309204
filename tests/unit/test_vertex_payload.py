"""Large predicts divided among requests: in order, nothing lost, each within the limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex.errors import VertexError
from vertex.payload import SHARED_BYTES, fitting


def split(
    instances: list[object], parameters: dict[str, object] | None, limit_bytes: int, most_instances: int
) -> list[list[object]]:
    """Divide instances as `predict` does."""
    batches: list[list[object]] = []
    done = 0
    while done < len(instances):
        batches.append(fitting(instances, done, parameters, limit_bytes, most_instances))
        done += len(batches[-1])
    return batches


def test_what_fits_goes_in_one_request() -> None:
    assert split(["a", {"text": "b"}], None, SHARED_BYTES, 2048) == [["a", {"text": "b"}]]


def test_a_count_that_the_server_takes() -> None:
    assert split(list("abcde"), None, SHARED_BYTES, 2) == [["a", "b"], ["c", "d"], ["e"]]


def test_letters_beyond_ascii_count_as_they_are_sent() -> None:
    sizes = [len(batch) for batch in split(["薔" * 1000] * 600, None, SHARED_BYTES, 2048)]
    assert sizes == [249, 249, 102]


def test_what_is_too_large_for_any_request_is_named() -> None:
    with pytest.raises(VertexError) as caught:
        split(["a", "b" * 1000], None, 500, 2048)
    assert str(caught.value) == (
        "instances[1]: 1,002 bytes as JSON, and a request to this endpoint holds 463: shorten it"
    )


@given(
    st.lists(st.text(max_size=40), max_size=60),
    st.none() | st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    st.integers(400, 900),
    st.integers(1, 9),
)
def test_every_request_is_within_the_limits(
    instances: list[object], parameters: dict[str, object] | None, limit: int, most: int
) -> None:
    batches = split(instances, parameters, limit, most)
    assert [one for batch in batches for one in batch] == instances
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len(json.dumps({"instances": batch, "parameters": parameters})) <= limit
