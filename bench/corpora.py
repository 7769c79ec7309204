"""The texts of the benchmark: made from the sentences in sentences/, the same ones in every run.

A corpus is first a list of lengths in tokens, then a text of each length. The order is stratified: any 16 texts from a
multiple of 16 on have the corpus's whole spread of lengths, so a short run has seen a fair share of it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from tokenizers import Tokenizer

SENTENCES = Path(__file__).resolve().parent / "sentences"
STRATA = 16
_LONG_SENTENCE_TOKENS = 24  # few have more, so little is counted in vain
NAMES = ("queries", "mixed", "documents")


@dataclass(frozen=True)
class Corpus:
    """Some texts.

    Attributes:
        name: As on the command line.
        texts: In the order in which they are sent.
        shrink: By how much a request holds fewer texts than its load says, for texts that are long.
    """

    name: str
    texts: Sequence[str]
    shrink: int = 1


def build(name: str, language: str, tokenizer: Path, seed: int = 0) -> Corpus:
    """Make a corpus.

    Args:
        name: One of NAMES, or "length-N" for texts of N tokens.
        language: A file of sentences/, without its ending.
        tokenizer: The model's tokenizer.json; lengths are counted with it.
        seed: Another one gives other texts of the same lengths.

    Returns:
        The texts; the same arguments give the same ones.
    """
    sentences = (SENTENCES / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    counter = _counter(tokenizer)
    draw = random.Random(f"{name} {language} {seed}")
    targets = stratified(lengths(name), draw)
    return Corpus(name, [_text(tokens, sentences, counter, draw) for tokens in targets], shrink_of(name))


def lengths(name: str) -> list[int]:
    """The lengths of a corpus's texts in tokens, special tokens included, in ascending order.

    queries: 256 of 7 to 16 tokens, which is 5 to 12 words. mixed: 256 of 3 to 250, a log-normal distribution: half of
    them under 21, a mean of 35, one in twenty over 117. documents: 64 of 512.

    Raises:
        ValueError: There is no such corpus.
    """
    if name == "queries":
        return [7 + 10 * i // 256 for i in range(256)]
    if name == "mixed":
        bell = NormalDist(math.log(20.5), 1.08)
        return [min(250, max(3, round(math.exp(bell.inv_cdf((i + 0.5) / 256))))) for i in range(256)]
    if name == "documents":
        return [512] * 64
    kind, _, tokens = name.partition("-")
    if kind == "length" and tokens.isdigit() and int(tokens) >= 3:
        return [int(tokens)] * 64
    raise ValueError(f"corpus {name!r} is unknown; the known ones are {', '.join(NAMES)} and length-N")


def shrink_of(name: str) -> int:
    """By how much requests of this corpus hold fewer texts: 8 for documents."""
    return 8 if name == "documents" else 1


def stratified(ordered: Sequence[int], draw: random.Random) -> list[int]:
    """Order lengths so that each block of STRATA holds one of every stratum; `ordered` is a multiple of STRATA long."""
    size = len(ordered) // STRATA
    strata = [draw.sample(list(ordered[i * size : (i + 1) * size]), size) for i in range(STRATA)]
    return [length for row in zip(*strata, strict=True) for length in draw.sample(row, STRATA)]


def _counter(tokenizer: Path) -> Tokenizer:
    counter = Tokenizer.from_file(str(tokenizer))
    counter.no_truncation()
    counter.no_padding()
    return counter


def _text(tokens: int, sentences: Sequence[str], counter: Tokenizer, draw: random.Random) -> str:
    """Sentences at random, cut where the wanted number of tokens is reached."""
    text = ""
    while (missing := tokens - len((encoded := counter.encode(text)).ids)) > 0:
        several = draw.choices(sentences, k=1 + missing // _LONG_SENTENCE_TOKENS)
        text = " ".join([text, *several]).lstrip()
    special = sum(encoded.special_tokens_mask)
    return text[: encoded.offsets[tokens - special][1]]
