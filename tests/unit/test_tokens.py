"""Tokenizing: truncation as the tokenizer itself would do it, flags, and ids from a caller."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from marvec.errors import ModelDirError, RequestError
from marvec.tokens import TextTokenizer

WORDS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, **{chr(97 + i): 3 + i for i in range(26)}}


def tokenizer(template: str = "[CLS] $A [SEP]") -> Tokenizer:
    made = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    used = [(name, WORDS[name]) for name in ("[CLS]", "[SEP]") if name in template]
    made.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    made.enable_truncation(3)  # what a file bakes in must not count
    made.enable_padding(length=12)
    return made


@pytest.mark.parametrize("template", ["[CLS] $A [SEP]", "[CLS] $A", "$A [SEP]", "$A"])
@pytest.mark.parametrize("words", [0, 1, 5, 6, 7, 8, 9, 40])
def test_truncation_equals_the_tokenizers_own(template: str, words: int) -> None:
    text = " ".join("abcdefg"[i % 7] for i in range(words))
    own = tokenizer(template)
    own.no_padding()
    own.no_truncation()
    whole = len(own.encode(text).ids)
    own.enable_truncation(8)
    result = TextTokenizer(tokenizer(template), 8).encode([text])[0]
    assert list(result.ids) == own.encode(text).ids
    assert (result.full_count, result.whole, result.truncated) == (whole, True, whole > 8)


def test_texts_keep_their_order_and_lengths() -> None:
    results = TextTokenizer(tokenizer(), 8).encode(["a", "", "a b c"])
    assert [list(item.ids) for item in results] == [[1, 3, 2], [1, 2], [1, 3, 4, 5, 2]]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a " * 1_000_000, [1, 3, 3, 3, 3, 3, 3, 2]),
        ("a" * 130_000, [1, 0, 2]),
        ("a" + " " * 900_000 + "b", [1, 3, 4, 2]),
        ("a\n" * 1_000_000, [1, 3, 3, 3, 3, 3, 3, 2]),
    ],
)
def test_very_long_texts_give_the_tokens_of_the_whole(text: str, ids: list[int]) -> None:
    result = TextTokenizer(tokenizer(), 8).encode([text])[0]
    assert list(result.ids) == ids
    assert result.truncated == (len(ids) == 8)


def test_many_long_texts_keep_their_order() -> None:
    texts = ["a " * 300_000, "b", "c" * 400_000, "", "d " * 3, "e " * 600_000]
    results = TextTokenizer(tokenizer(), 8).encode(texts)
    assert [list(item.ids)[1] for item in results] == [3, 4, 0, 2, 6, 7]


def test_a_text_without_white_space_is_looked_at_a_million_characters_far() -> None:
    by_letter = tokenizer()
    by_letter.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    assert TextTokenizer(by_letter, 8).encode(["a" * 1_500_000])[0].full_count == 1_000_002
    unseen = TextTokenizer(tokenizer(), 8).encode(["a" * 1_000_001])[0]
    assert (list(unseen.ids), unseen.full_count, unseen.whole, unseen.truncated) == ([1, 0, 2], 3, False, True)
    assert not TextTokenizer(tokenizer(), 8).encode(["a" * 1_000_000])[0].truncated


@pytest.mark.parametrize(
    ("ids", "taken"),
    [
        ([1, 3, 2], [1, 3, 2]),
        ([1, 3, 3, 3, 3, 3, 3, 3, 3, 2], [1, 3, 3, 3, 3, 3, 3, 2]),
        ([3] * 10, [3] * 8),
    ],
)
def test_ids_of_a_caller_are_cut_like_a_text(ids: list[int], taken: list[int]) -> None:
    result = TextTokenizer(tokenizer(), 8).take_ids(ids, "x")
    assert (list(result.ids), result.full_count) == (taken, len(ids))


@pytest.mark.parametrize("wrong", [-1, 29, 10**30])
def test_an_id_out_of_range_is_named(wrong: int) -> None:
    with pytest.raises(RequestError) as caught:
        TextTokenizer(tokenizer(), 8).take_ids([1, wrong], "instances[0].input_ids")
    assert str(caught.value) == (
        f"instances[0].input_ids[1]: {wrong} is not a token id of this model; allowed are 0 to 28"
    )


def test_ids_with_gaps_are_allowed_up_to_the_highest() -> None:
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 7}, unk_token="[UNK]"))
    assert list(TextTokenizer(made, 8).take_ids([7], "x").ids) == [7]
    with pytest.raises(RequestError, match="allowed are 0 to 7"):
        TextTokenizer(made, 8).take_ids([8], "x")


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    with pytest.raises(ModelDirError, match=r"tokenizer\.json: cannot be read as a tokenizer"):
        TextTokenizer.load(file, 8)
    file.write_text("{}")
    with pytest.raises(ModelDirError, match=r"tokenizer\.json: cannot be read as a tokenizer"):
        TextTokenizer.load(file, 8)
    tokenizer().save(str(file))
    assert list(TextTokenizer.load(file, 8).encode(["a"])[0].ids) == [1, 3, 2]
