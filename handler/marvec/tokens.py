"""Texts -> ragged token ids, cut to the model's length, with a flag that says so."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tokenizers import Encoding, Tokenizer

from marvec import pairs
from marvec.errors import ModelDirError, RequestError

# A longer text is first tried by its start: usually that fills the model, and the rest of a text of megabytes is never
# looked at. The start ends at white space, across which tokenizers join nothing, so its tokens are exact.
_TRIAL_CHARS_PER_TOKEN = 64
# No text is looked at further than this, even without white space: a megabyte of kanji takes a second and 400 MB.
_LONGEST_CHARS = 1_000_000
# Characters that are tokenized at a time, for the same reason.
_PART_CHARS = 1_000_000


@dataclass(frozen=True)
class Tokens:
    """One input, ready for an encoder.

    Attributes:
        ids: Token ids, special tokens included, no padding.
        full_count: Tokens before truncation, as far as the input was looked at.
        whole: Whether all of the input was looked at; else it has at least `full_count` tokens.
        type_ids: Which text of a pair each token is of, for models that tell them so; None for all 0.
    """

    ids: Sequence[int]
    full_count: int
    whole: bool = True
    type_ids: Sequence[int] | None = None

    @classmethod
    def of(cls, ids: Sequence[int]) -> Tokens:
        """An input of which nothing was cut."""
        return cls(ids, len(ids))

    @property
    def truncated(self) -> bool:
        """Whether the end of the input was cut off."""
        return self.full_count > len(self.ids) or not self.whole


class TextTokenizer:
    """A model's tokenizer with its limit. What tokenizer.json says of truncation and padding is switched off."""

    def __init__(self, tokenizer: Tokenizer, max_length: int, token_types: bool = False) -> None:
        """Wrap a tokenizer.

        Args:
            tokenizer: Changed: its truncation and padding are switched off.
            max_length: Longest result in tokens, special tokens included.
            token_types: Whether the model is told which text of a pair each token is of.
        """
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self.max_length = max_length
        self._token_types = token_types
        self._suffix = _special_suffix(tokenizer)

    @classmethod
    def load(cls, file: Path, max_length: int, token_types: bool = False) -> TextTokenizer:
        """Read a tokenizer.json.

        Raises:
            ModelDirError: When the file is missing or is not a tokenizer.
        """
        try:
            return cls(Tokenizer.from_file(str(file)), max_length, token_types)
        except Exception as err:  # the library raises bare Exception
            raise ModelDirError(f"{file}: cannot be read as a tokenizer: {err}") from err

    @cached_property
    def vocab_size(self) -> int:
        """The largest token id, and 1; made when it is first asked for, since that takes half a second."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1  # ids may have gaps

    def limited_to(self, max_length: int) -> TextTokenizer:
        """The same tokenizer with another limit."""
        other = copy.copy(self)
        other.max_length = max_length
        return other

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenize and truncate texts, in order."""
        results: list[Tokens] = []
        for part in _parts([len(text) for text in texts]):
            starts = [_start(text, self.max_length * _TRIAL_CHARS_PER_TOKEN) for text in texts[part]]
            results += [
                self._with_rest(text, start, tokens)
                for text, start, tokens in zip(texts[part], starts, self._encode_part(starts))
            ]
        return results

    def take_ids(self, ids: Sequence[int], where: str) -> Tokens:
        """Check and truncate ids that a caller tokenized.

        Args:
            ids: Token ids, special tokens included, no padding.
            where: What an error calls them, such as "instances[0].input_ids".

        Raises:
            RequestError: When there are none, or one is not in the vocabulary.
        """
        if not ids:
            raise RequestError(f"{where}: expected at least one token id")
        for position, token in enumerate(ids):
            if not 0 <= token < self.vocab_size:
                allowed = f"allowed are 0 to {self.vocab_size - 1}"
                raise RequestError(f"{where}[{position}]: {token} is not a token id of this model; {allowed}")
        return self._cut(ids)

    def encode_pairs(self, texts: Sequence[tuple[str, str]]) -> list[Tokens]:
        """Tokenize pairs of texts; of a pair that is too long, the longer text is cut first."""
        results: list[Tokens] = []
        for part in _parts([len(first) + len(second) for first, second in texts]):
            starts = [self._starts(pair) for pair in texts[part]]
            encodings = self._tokenizer.encode_batch_fast(starts)
            results += [self._pair(*one) for one in zip(texts[part], starts, encodings)]
        return results

    def _starts(self, pair: tuple[str, str]) -> tuple[str, str]:
        chars = self.max_length * _TRIAL_CHARS_PER_TOKEN
        return _start(pair[0], chars), _start(pair[1], chars)

    def _pair(self, pair: tuple[str, str], starts: tuple[str, str], encoding: Encoding) -> Tokens:
        """The tokens of a pair: those of its starts, if these say which tokens stay."""
        fills = [encoding.sequence_ids.count(text) >= self.max_length for text in range(2)]
        cut = [len(start) < len(text) for start, text in zip(starts, pair)]
        # Of two texts that each fill the model, the longer one keeps the odd token.
        if any(cut) and (all(fills) or any(c and not f for c, f in zip(cut, fills))):
            starts = pair[0][:_LONGEST_CHARS], pair[1][:_LONGEST_CHARS]
            encoding = self._tokenizer.encode_batch_fast([starts])[0]
        places = pairs.kept(encoding.sequence_ids, self.max_length)
        types = self._types(encoding)
        return Tokens(
            [encoding.ids[place] for place in places],
            len(encoding.ids),
            whole=starts == pair,
            type_ids=None if types is None else [types[place] for place in places],
        )

    def _types(self, encoding: Encoding) -> Sequence[int] | None:
        types: Sequence[int] = encoding.type_ids if self._token_types else ()
        return types if any(types) else None

    def _encode_part(self, texts: Sequence[str]) -> list[Tokens]:
        return [
            self._cut(encoding.ids, self._types(encoding))
            for encoding in self._tokenizer.encode_batch_fast(list(texts))
        ]

    def _with_rest(self, text: str, start: str, tokens: Tokens) -> Tokens:
        """The tokens of a text, of whose start the tokens are known."""
        if not tokens.truncated and len(start) < min(len(text), _LONGEST_CHARS):
            start = text[:_LONGEST_CHARS]
            tokens = self._encode_part([start])[0]
        return replace(tokens, whole=len(start) == len(text))

    def _cut(self, ids: Sequence[int], types: Sequence[int] | None = None) -> Tokens:
        """Cut the content, and keep the special tokens that end every input, as the tokenizer itself would."""
        if len(ids) <= self.max_length:
            return Tokens(ids, len(ids), type_ids=types)
        ended = tuple(ids[len(ids) - len(self._suffix) :]) == self._suffix
        kept = slice(self.max_length - (len(self._suffix) if ended else 0))
        end = slice(len(ids) - len(self._suffix), None) if ended else slice(0)
        return Tokens(
            [*ids[kept], *ids[end]],
            len(ids),
            type_ids=None if types is None else [*types[kept], *types[end]],
        )


def _parts(sizes: Sequence[int]) -> Iterator[slice]:
    """Consecutive texts of together at most _PART_CHARS characters; a longer one stands alone."""
    first, chars = 0, 0
    for i, size in enumerate(sizes):
        if i > first and chars + size > _PART_CHARS:
            yield slice(first, i)
            first, chars = i, 0
        chars += size
    if first < len(sizes):
        yield slice(first, len(sizes))


def _start(text: str, chars: int) -> str:
    """About the first `chars` characters, up to white space; where there is none, as much as is ever looked at."""
    if len(text) <= chars:
        return text
    end = max(text.rfind(" ", 0, chars), text.rfind("\n", 0, chars))
    return text[: end if end > 0 else _LONGEST_CHARS]


def _special_suffix(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The special tokens after the content: what an empty text has beyond the start it shares with another text."""
    empty, other = tokenizer.encode("").ids, tokenizer.encode("a").ids
    shared = 0
    while shared < min(len(empty), len(other)) and empty[shared] == other[shared]:
        shared += 1
    return tuple(empty[shared:])
