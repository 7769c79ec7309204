"""The texts: their lengths, their order, and that they are the same in every run."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import fmean, median

import pytest
from tokenizers import Tokenizer

from bench import corpora


def token_counts(texts: list[str], tokenizer_file: Path) -> list[int]:
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return [len(tokenizer.encode(text).ids) for text in texts]


def test_mixed_texts_are_mostly_short_with_a_long_tail() -> None:
    lengths = corpora.lengths("mixed")
    assert lengths == sorted(lengths)
    assert (len(lengths), lengths[0], lengths[-1]) == (256, 3, 250)
    assert (fmean(lengths), median(lengths)) == (35.3515625, 20.5)
    assert sum(length >= 64 for length in lengths) == 38


def test_the_other_corpora_have_the_lengths_that_their_names_say() -> None:
    queries = corpora.lengths("queries")
    assert (len(queries), queries[0], queries[-1], fmean(queries)) == (256, 7, 16, 11.484375)
    assert corpora.lengths("documents") == [512] * 64
    assert corpora.lengths("length-12") == [12] * 64


@pytest.mark.parametrize("name", ["poems", "length-", "length-2", "length-x"])
def test_an_unknown_corpus_is_named_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=r"the known ones are queries, mixed, documents and length-N$") as raised:
        corpora.lengths(name)
    assert str(raised.value).startswith(f"corpus '{name}' is unknown")


def test_each_block_of_texts_has_one_of_each_stratum() -> None:
    ordered = list(range(64))
    order = corpora.stratified(ordered, random.Random(0))
    assert sorted(order) == ordered
    assert order != ordered
    for start in range(0, 64, corpora.STRATA):
        assert sorted(item // 4 for item in order[start : start + corpora.STRATA]) == list(range(16))


@pytest.mark.parametrize("name", ["queries", "mixed", "documents", "length-31"])
def test_english_texts_have_exactly_the_lengths_of_their_corpus(name: str, minilm_dir: Path) -> None:
    corpus = corpora.build(name, "english", minilm_dir / "tokenizer.json")
    assert sorted(token_counts(list(corpus.texts), minilm_dir / "tokenizer.json")) == corpora.lengths(name)


def test_the_same_arguments_give_the_same_texts_and_another_seed_others(minilm_dir: Path) -> None:
    tokenizer = minilm_dir / "tokenizer.json"
    first = corpora.build("mixed", "english", tokenizer)
    assert first == corpora.build("mixed", "english", tokenizer)
    assert first.texts[3] == "The court found that the contract had been signed under pressure and was void"
    other = corpora.build("mixed", "english", tokenizer, seed=1)
    assert len(set(first.texts) & set(other.texts)) < 30  # only very short ones meet


def test_a_request_holds_fewer_documents() -> None:
    assert [corpora.shrink_of(name) for name in corpora.NAMES] == [1, 1, 8]
