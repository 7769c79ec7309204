"""What is let in: tokenizes a request, and refuses before any forward pass what cannot be served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marvec.errors import RequestError, TooLargeError
from marvec.instances import Input
from marvec.request import Request
from marvec.settings import LimitSettings
from marvec.tokens import TextTokenizer, Tokens


@dataclass(frozen=True)
class Admission:
    """The gate before an encoder.

    Attributes:
        tokenizer: The model's.
        limits: The archive's, with max_request_tokens lowered to what the worker can compute in time.
    """

    tokenizer: TextTokenizer
    limits: LimitSettings

    def admit(self, request: Request) -> list[Tokens]:
        """Tokenize the inputs of a request.

        Returns:
            The tokens of each input, in order.

        Raises:
            TooLargeError: When the response or the work would be larger than the limits allow.
            RequestError: When an input has no tokens, is too long and must not be truncated, or has an id out of range.
        """
        self._require_small_response(request)
        tokens = self._tokenize(request.inputs)
        self._require_tokens(request.inputs, tokens)
        if not request.auto_truncate:
            self._require_whole(request.inputs, tokens)
        total = sum(len(item.ids) for item in tokens)
        if total > self.limits.max_request_tokens:
            raise TooLargeError(
                f"the request has {total} tokens, the limit is {self.limits.max_request_tokens}; send it in parts"
            )
        return tokens

    def _require_small_response(self, request: Request) -> None:
        size = request.answer_bytes
        if size > self.limits.max_response_bytes:
            raise TooLargeError(
                f"the response could have {size} bytes, the limit is {self.limits.max_response_bytes}; send fewer "
                f"inputs, or {request.for_less}"
            )

    def _tokenize(self, inputs: Sequence[Input]) -> list[Tokens]:
        lone = iter(self.tokenizer.encode([item.text for item in inputs if item.ids is None and item.pair is None]))
        pairs = [(item.text, item.pair) for item in inputs if item.pair is not None]
        paired = iter(self.tokenizer.encode_pairs(pairs))
        tokens: list[Tokens] = []
        for item in inputs:
            if item.ids is not None:
                tokens.append(self.tokenizer.take_ids(item.ids, item.where))
            else:
                tokens.append(next(lone if item.pair is None else paired))
        return tokens

    def _require_tokens(self, inputs: Sequence[Input], tokens: Sequence[Tokens]) -> None:
        """A tokenizer that adds no special tokens makes nothing of an empty text, and nothing has no answer."""
        for item, result in zip(inputs, tokens):
            if not result.ids:
                raise RequestError(f"{item.where}: has no tokens in this model; send a text that is not empty")

    def _require_whole(self, inputs: Sequence[Input], tokens: Sequence[Tokens]) -> None:
        for item, result in zip(inputs, tokens):
            if result.truncated:
                count = f"{result.full_count} tokens" if result.whole else f"at least {result.full_count} tokens"
                raise RequestError(
                    f"{item.where}: {count}, the limit is {self.tokenizer.max_length}; shorten it, or leave "
                    "autoTruncate on"
                )
