"""The two real models: every text, every length around the limit, prompts, fewer dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from tests.parity import texts
from tests.parity.sides import Oracle, Sides, require_equal, require_parity

MODELS = ("minilm", "e5")


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Sides:
    """Return both sides of each of the real models."""
    found: Sides = request.getfixturevalue(request.param)
    return found


def test_the_settings_are_those_of_the_directories(minilm: Sides, e5: Sides) -> None:
    assert (minilm.ours.settings.model.max_length, e5.ours.settings.model.max_length) == (256, 512)
    assert (minilm.oracle.model.max_seq_length, e5.oracle.model.max_seq_length) == (256, 512)
    for model in (minilm, e5):
        assert model.ours.settings.model.pooling == ("mean",)
        assert model.ours.settings.model.normalize is True
        assert model.ours.settings.model.dimension == 384


def test_every_text_in_one_request(model: Sides) -> None:
    require_parity(model, texts.ALL)


def test_every_length_around_the_limit(model: Sides) -> None:
    require_parity(model, texts.around_limit(model.ours))


def test_long_texts(model: Sides) -> None:
    require_parity(model, texts.LONG)


def test_a_lone_surrogate_counts_as_the_replacement_character(model: Sides) -> None:
    given = model.ours.vectors(["\udbc0", "a\ud83d b", "\ufffd", "a\ufffd b"])

    require_equal(given[:2], given[2:], ["lone", "inside"])
    require_equal(given[2:], model.oracle.vectors(["\ufffd", "a\ufffd b"]), ["lone", "inside"])


def test_the_limit_is_that_of_sentence_transformers(minilm: Sides) -> None:
    """huggingface/text-embeddings-inference#146: neither the 512 of the positions nor the 128 of tokenizer.json."""
    text, start = (("Hello world, " * 3000)[:size] for size in (1200, 1100))
    tokens, whole = minilm.ours.embedder.tokenizer.encode([text, start])

    assert (len(tokens.ids), tokens.truncated) == (256, True)
    assert (len(whole.ids), whole.truncated) == (256, False)


def test_short_texts_cost_no_padding(minilm: Sides) -> None:
    """qdrant/fastembed#689: the directory's own tokenizer.json truncates and pads to 128 tokens."""
    short, long = minilm.ours.embedder.tokenizer.encode(["hi", "hello " * 300])

    assert list(short.ids) == [101, 7632, 102]
    assert (len(long.ids), long.full_count) == (256, 302)


def test_emoji_outside_the_vocabulary_fall_together(minilm: Sides) -> None:
    given = minilm.ours.vectors(["😀", "💣"])

    assert np.array_equal(given[0], given[1])


def test_composed_and_decomposed_letters_are_one_text_to_an_uncased_model(minilm: Sides) -> None:
    given = minilm.ours.vectors(["caf\u00e9", "cafe\u0301"])

    assert minilm.ours.token_ids("caf\u00e9") == minilm.ours.token_ids("cafe\u0301")
    assert np.array_equal(given[0], given[1])


@pytest.mark.parametrize("dimension", [1, 2, 128, 256, 383, 384])
def test_fewer_dimensions_are_cut_then_normalized(dimension: int, model: Sides) -> None:
    some = [*texts.ORDINARY, ""]

    given = model.ours.vectors(some, outputDimensionality=dimension)

    require_equal(given, model.oracle.vectors(some, dimension=dimension, normalize=True), some)
    assert np.allclose(np.linalg.norm(given.astype(np.float64), axis=1), 1, atol=1e-6)


def test_vectors_without_normalization_have_the_scale_of_the_pooling(model: Sides) -> None:
    """huggingface/text-embeddings-inference#278: normalize=false gives what comes before the Normalize module."""
    some = list(texts.ORDINARY)
    before_normalize = Oracle(SentenceTransformer(modules=list(model.oracle.model)[:2], device="cpu"))

    given = model.ours.vectors(some, normalize=False)

    require_equal(given, before_normalize.vectors(some), some)
    assert (np.abs(np.linalg.norm(given, axis=1) - 1) > 0.1).all()


def test_prompts_of_the_model_card_go_before_the_text(e5: Sides) -> None:
    some = ["日本の薔薇農家", "", "a rose"]

    query = e5.ours.vectors(some, promptName="query")
    passage = e5.ours.vectors(some, taskType="RETRIEVAL_DOCUMENT")
    plain = e5.ours.vectors(some)

    require_equal(query, e5.oracle.vectors([f"query: {text}" for text in some]), some)
    require_equal(passage, e5.oracle.vectors([f"passage: {text}" for text in some]), some)
    require_equal(plain, e5.oracle.vectors(some), some)


def test_the_seed_texts_rank_as_they_should(e5: Sides) -> None:
    given = e5.ours.vectors(texts.ORDINARY[:3])
    cosines = given @ given.T

    assert cosines[1, 2] == pytest.approx(0.95, abs=0.01)
    assert cosines[1, 2] > max(cosines[0, 1], cosines[0, 2]) + 0.05
