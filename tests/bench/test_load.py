"""Loads: their names, and which texts their requests hold."""

from __future__ import annotations

import pytest

from bench.corpora import Corpus
from bench.load import LOADS, Load


def test_a_load_is_written_as_clients_x_texts() -> None:
    assert Load.parse("16x1") == Load(clients=16, texts=1)
    assert Load(4, 32).name == "4x32"
    assert [load.name for load in LOADS] == ["1x1", "16x1", "4x32", "1x256"]


@pytest.mark.parametrize("name", ["", "16", "16x", "x1", "0x1", "1x0", "1x-1", "16X1", "1x1x1", "1x10000"])
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r": expected CLIENTSxTEXTS, such as 16x1$") as raised:
        Load.parse(name)
    assert str(raised.value).startswith(f"load {name!r}")


def test_shrinking_keeps_the_clients_and_at_least_one_text() -> None:
    assert Load(4, 32).shrunk(8) == Load(4, 4)
    assert Load(16, 1).shrunk(64) == Load(16, 1)


def test_the_requests_of_a_load_hold_the_whole_corpus_and_are_all_of_one_size() -> None:
    corpus = Corpus("abc", ["a", "b", "c"])
    assert Load(1, 1).batches(corpus) == [["a"], ["b"], ["c"]]
    assert Load(9, 2).batches(corpus) == [["a", "b"], ["c", "a"]]
    assert Load(1, 4).batches(corpus) == [["a", "b", "c", "a"]]
