"""The demonstration that this project began with: three texts, a real multilingual model, curl."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.contract.endpoint import Endpoint
from tests.contract.oracle import assert_same

TEXTS = (
    "query: dummy",
    "query: 食べられる薔薇を育てている農家は日本に数件しかありません。",
    "query: 日本の薔薇農家",
)


def test_the_two_texts_on_rose_farms_are_the_closest(multilingual: Endpoint) -> None:
    body = json.dumps({"instances": TEXTS}, ensure_ascii=False)
    answer = multilingual.curl("--header", "Content-Type: application/json", "--data", body)
    vectors = answer.vectors()
    assert vectors.shape == (3, 384)
    cosines = vectors @ vectors.T
    np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-6)
    assert cosines[1, 2] == pytest.approx(0.95, abs=0.01)
    assert cosines[1, 2] > max(cosines[0, 1], cosines[0, 2]) + 0.1


def test_prompts_of_the_family_stand_for_what_callers_write(multilingual: Endpoint) -> None:
    """e5's prompts came into the archive by its name: by name, by Google's task types, or written out."""
    bare = [text.removeprefix("query: ") for text in TEXTS]
    written = multilingual.ask(*TEXTS).vectors()
    assert_same(multilingual.ask(*bare, promptName="query").vectors(), written)
    assert_same(multilingual.ask(*bare, taskType="RETRIEVAL_QUERY").vectors(), written)
    passages = multilingual.ask(*(f"passage: {text}" for text in bare)).vectors()
    assert_same(multilingual.ask(*bare, taskType="RETRIEVAL_DOCUMENT").vectors(), passages)
    assert np.abs(passages - written).max() > 0.01


@pytest.mark.parametrize(
    "text",
    [
        "Я помню чудное мгновенье:\nПередо мной явилась ты,\nКак мимолетное виденье,\nКак гений чистой красоты.",
        "你好",
        "Let me read the InputArea file in sections and look for more bang command information:",
        "importance of the third strand",
        "5.2",
        "日" * 130_000,
        "a" * 130_000,
    ],
    ids=["russian", "chinese", "ordinary", "importance", "number", "kanji", "letters"],
)
def test_texts_that_broke_others_have_a_vector(multilingual: Endpoint, text: str) -> None:
    """A9 to A11, A15, A16, A19: finite, of unit length, the same alone and beside another."""
    [alone] = multilingual.ask(text).vectors()
    assert np.isfinite(alone).all()
    assert np.linalg.norm(alone) == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(multilingual.ask("short", text).vectors()[1], alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("words", [510, 511, 512, 513, 600])
def test_lengths_around_the_limit(multilingual: Endpoint, words: int) -> None:
    """A4: 512 tokens are the most, whatever the positions of the model's family begin with."""
    [prediction] = multilingual.ask({"content": "a " * words}).predictions()
    assert isinstance(prediction, dict)
    counted = prediction["embeddings"]["statistics"]
    assert counted == {"token_count": 512, "truncated": words > 510}
