"""`input_ids` instances: the ids of a text give the text's vector."""

from __future__ import annotations

import pytest

from marvec.errors import RequestError
from tests.models.tiny import KINDS, Kind, TinyModels
from tests.parity import texts
from tests.parity.conftest import SidesMaker
from tests.parity.sides import Sides, require_equal

SOME = ("", "a", *texts.ORDINARY, "你好", "a[PAD]b<pad>c")


def test_the_ids_of_transformers_tokenizer_give_the_vectors_of_the_texts(minilm: Sides, e5: Sides) -> None:
    for model in (minilm, e5):
        ids = [[int(token) for token in model.oracle.model.tokenizer(text)["input_ids"]] for text in SOME]

        given = model.ours.vectors([{"input_ids": item} for item in ids])

        require_equal(given, model.oracle.vectors(SOME), SOME)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_in_one_request(kind: Kind, tiny_models: TinyModels, sides: SidesMaker) -> None:
    model = sides(tiny_models(kind, pooling="mean", normalize=True))
    instances: list[object] = []
    for text in SOME:
        instances += [text, {"input_ids": model.ours.token_ids(text)}]

    given = model.ours.vectors(instances)

    expected = model.oracle.vectors(SOME)
    require_equal(given[0::2], expected, SOME)
    require_equal(given[1::2], expected, SOME)


def test_ids_beyond_the_limit_are_cut_like_the_text(minilm: Sides) -> None:
    text = texts.of_length(minilm.ours, 300)
    ids = [int(token) for token in minilm.oracle.model.tokenizer(text, truncation=False)["input_ids"]]
    assert len(ids) == 300

    given = minilm.ours.vectors([{"input_ids": ids}])

    require_equal(given, minilm.oracle.vectors([text]), [text])


def test_the_last_id_of_the_vocabulary_is_allowed_and_the_next_is_not(minilm: Sides) -> None:
    assert minilm.ours.vectors([{"input_ids": [101, 30521, 102]}]).shape == (1, 384)
    with pytest.raises(RequestError) as caught:
        minilm.ours.vectors([{"input_ids": [101, 30522, 102]}])
    assert str(caught.value) == (
        "instances[0].input_ids[1]: 30522 is not a token id of this model; allowed are 0 to 30521"
    )
