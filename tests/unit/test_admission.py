"""What is refused before any forward pass, with the limit and the count."""

from __future__ import annotations

import pytest

from marvec.admission import Admission
from marvec.embedding_parameters import EmbeddingParameters
from marvec.embedding_request import EmbeddingRequest
from marvec.errors import MarvecError
from marvec.instances import Input
from marvec.settings import LimitSettings
from marvec.tokens import TextTokenizer
from tests.unit.test_tokens import tokenizer

GATE = Admission(TextTokenizer(tokenizer(), 8), LimitSettings(max_request_tokens=16, max_response_bytes=3000))


def asked(*inputs: Input, auto_truncate: bool = True, dimension: int = 4, encoding: str = "float") -> EmbeddingRequest:
    return EmbeddingRequest(inputs, EmbeddingParameters(dimension, auto_truncate, True, "", False, encoding))


def test_texts_and_ids_keep_their_order() -> None:
    inputs = (Input("0", "a b"), Input("1", "", [1, 5, 2]), Input("2", "c"))
    assert [list(item.ids) for item in GATE.admit(asked(*inputs))] == [[1, 3, 4, 2], [1, 5, 2], [1, 5, 2]]


@pytest.mark.parametrize(
    ("request_", "status", "message"),
    [
        (
            asked(*[Input("x", "a a a a a a a a a")] * 3),
            413,
            "the request has 24 tokens, the limit is 16; send it in parts",
        ),
        (
            asked(Input("0", "a"), Input("instances[1]", "a a a a a a a a a"), auto_truncate=False),
            400,
            "instances[1]: 11 tokens, the limit is 8; shorten it, or leave autoTruncate on",
        ),
        (
            asked(Input("0", ""), dimension=400),
            413,
            "the response could have 5700 bytes, the limit is 3000; send fewer inputs, or ask for base64 or fewer "
            "dimensions",
        ),
        (
            asked(Input("instances[0].input_ids", "", [99])),
            400,
            "instances[0].input_ids[0]: 99 is not a token id of this model; allowed are 0 to 28",
        ),
    ],
)
def test_refusals(request_: EmbeddingRequest, status: int, message: str) -> None:
    with pytest.raises(MarvecError) as caught:
        GATE.admit(request_)
    assert (caught.value.status, str(caught.value)) == (status, message)


def test_a_text_of_which_only_the_start_was_looked_at_has_at_least_so_many_tokens() -> None:
    with pytest.raises(MarvecError) as caught:
        GATE.admit(asked(Input("instances[0]", "a " * 1000), auto_truncate=False))
    assert str(caught.value) == (
        "instances[0]: at least 258 tokens, the limit is 8; shorten it, or leave autoTruncate on"
    )


def test_nothing_has_no_vector_where_the_tokenizer_adds_no_special_tokens() -> None:
    gate = Admission(TextTokenizer(tokenizer("$A"), 8), LimitSettings())
    assert [list(item.ids) for item in gate.admit(asked(Input("0", "a")))] == [[3]]
    with pytest.raises(MarvecError) as caught:
        gate.admit(asked(Input("instances[0]", "a"), Input("instances[1]", " ")))
    assert (caught.value.status, str(caught.value)) == (
        400,
        "instances[1]: has no tokens in this model; send a text that is not empty",
    )


def test_base64_makes_room() -> None:
    assert len(GATE.admit(asked(Input("0", ""), dimension=400, encoding="base64"))) == 1


def test_a_text_at_the_limit_is_whole() -> None:
    assert not GATE.admit(asked(Input("0", "a a a a a a"), auto_truncate=False))[0].truncated
