"""Pairs of texts as tokens: cut as the tokenizers library cuts them, with the type of each token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from marvec import pairs
from marvec.tokens import TextTokenizer

WORDS = ["[PAD]", "[CLS]", "[SEP]", *"abcdefgh"]


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[PAD]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


@given(st.integers(0, 30), st.integers(0, 30), st.integers(3, 40))
def test_cuts_as_the_library_does(first: int, second: int, max_length: int) -> None:
    pair = ("a " * first, "b " * second)
    library = tokenizer()
    library.enable_truncation(max_length, strategy="longest_first")
    expected = library.encode(*pair)
    (tokens,) = TextTokenizer(tokenizer(), max_length, token_types=True).encode_pairs([pair])
    assert list(tokens.ids) == expected.ids
    assert list(tokens.type_ids or [0] * len(tokens.ids)) == expected.type_ids
    assert tokens.full_count == first + second + 3
    assert tokens.truncated is (first + second + 3 > max_length)


def test_no_types_for_models_that_do_not_take_them() -> None:
    (tokens,) = TextTokenizer(tokenizer(), 8).encode_pairs([("a", "b")])
    assert (list(tokens.ids), tokens.type_ids) == ([1, 3, 2, 4, 2], None)


def test_no_pairs() -> None:
    assert TextTokenizer(tokenizer(), 8).encode_pairs([]) == []


@pytest.mark.parametrize("blank", ["", " " * 3000])
def test_texts_of_megabytes_are_known_by_their_starts(blank: str) -> None:
    """The first text's start holds too few tokens, or fills the model; the second's fills it either way."""
    pair = ("a" + blank + " b c d e f g h" * 200_000, "b " * 1_000_000)
    (tokens,) = TextTokenizer(tokenizer(), 9, token_types=True).encode_pairs([pair])
    assert list(tokens.ids) == [1, 3, 4, 5, 2, 4, 4, 4, 2]
    assert (tokens.truncated, tokens.whole) == (True, False)


def test_special_tokens_stay_when_nothing_else_fits() -> None:
    assert pairs.kept([None, 0, None, 1, None], 2) == [0, 2, 4]
