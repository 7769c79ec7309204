"""What every served model has: a tokenizer, an encoder, and passes filled by length."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from marvec import batching, encoder
from marvec.encoder import Encoder
from marvec.errors import ModelDirError
from marvec.request import Request
from marvec.settings import Settings
from marvec.tokens import TextTokenizer, Tokens

_SPEED_PROBE_TOKENS = 128
_SPEED_PROBES = 3  # fewer of a large model: its self-test has warmed it up
_SPEED_PROBE_BUDGET_S = 0.3


@dataclass(frozen=True)
class Model(ABC):
    """A loaded model."""

    settings: Settings
    tokenizer: TextTokenizer
    encoder: Encoder

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers that it gives for an input."""

    @abstractmethod
    def parse(self, body: object, query: Mapping[str, str], path: str) -> Request:
        """Read a request, as `request.py` of the task does.

        Raises:
            RequestError: When the caller must send something else.
        """

    @abstractmethod
    def numbers_of(self, output: Tensor, counts: Sequence[int]) -> Tensor:
        """Make an input's numbers of what the encoder gives.

        Args:
            output: Of one pass: [tokens, hidden], or [inputs, width] where the encoder has a head.
            counts: Tokens of each input.

        Returns:
            [inputs, width] float32.
        """

    @abstractmethod
    def finished(self, numbers: Tensor) -> Tensor:
        """The answers, as the settings say: [inputs, width] float32 -> [inputs, numbers] float32."""

    def compute(self, inputs: Sequence[Tokens]) -> Tensor:
        """Run some inputs, batched by length.

        Returns:
            [inputs, width] float32 on the CPU, in the order of the inputs, not finished.
        """
        counts = [len(item.ids) for item in inputs]
        passes = batching.plan(counts, self.encoder.policy)
        rows = [[[inputs[i] for i in row] for row in one] for one in passes]
        numbers = torch.empty(len(inputs), self.width)
        for one, output in zip(passes, self.encoder.encode(rows)):
            order = [i for row in one for i in row]
            numbers[order] = self.numbers_of(output, [counts[i] for i in order]).cpu()
        return numbers

    def answer_texts(self, texts: Sequence[str]) -> Tensor:
        """Tokenize texts, without a prompt, and answer them as the settings say: [texts, numbers] float32."""
        return self.finished(self.compute(self.tokenizer.encode(texts)))

    def tokens_per_s(self) -> float:
        """The speed on inputs of the greatest length, from a few passes over a shorter one.

        Attention costs more per token the longer an input is: of a layer's operations per token, about 24 hidden^2 do
        not depend on the length, and 4 hidden * length do (arXiv:2001.08361, section 2.1).
        """
        length = min(self.tokenizer.max_length, _SPEED_PROBE_TOKENS)
        probe = self.tokenizer.encode(["a " * length])[0]
        seconds: list[float] = []
        while len(seconds) < _SPEED_PROBES and sum(seconds) < _SPEED_PROBE_BUDGET_S:
            started = time.perf_counter()
            (output,) = self.encoder.encode([[[probe]]])
            output[0, 0].item()  # waits for a GPU
            seconds.append(time.perf_counter() - started)
        width = self.encoder.policy.hidden
        dearer = (6 * width + self.tokenizer.max_length) / (6 * width + len(probe.ids))
        return len(probe.ids) / min(seconds) / dearer

    def require_width(self, folder: Path, said: str) -> None:
        """Run one input, and compare what comes out with the settings.

        Args:
            folder: For the error.
            said: What the settings call the width.

        Raises:
            ModelDirError: When the model gives another count of numbers.
        """
        (probe,) = self.tokenizer.encode(["a"])
        (output,) = self.encoder.encode([[[probe]]])
        width = self.numbers_of(output, [len(probe.ids)]).shape[1]
        if width != self.width:
            raise ModelDirError(f"{folder}: gives {width} numbers, {said} says {self.width}")


def load_parts(folder: Path, settings: Settings, device: str) -> tuple[TextTokenizer, Encoder]:
    """Load a model's tokenizer and encoder, side by side: tokenizers of many languages take as long as encoders.

    Args:
        folder: Holds config.json, tokenizer.json and the weights or a graph.
        settings: From model-config.yaml.
        device: "cpu" or "cuda:N".

    Raises:
        ConfigurationError: When a file is missing or does not fit the others.
    """
    with ThreadPoolExecutor(1) as other:
        loading = other.submit(encoder.load, folder, settings.engine, device, settings.task)
        tokenizer = TextTokenizer.load(folder / "tokenizer.json", settings.model.max_length, settings.token_types)
    return tokenizer, loading.result()
