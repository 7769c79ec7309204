"""model/model.pt: a traced or scripted transformer, put to the test before it is shipped.

A trace is the recording of one run, and what was a constant in that run stays one: the shape, the mask, the dropout.
So it is run on inputs of several shapes, twice, and on one of them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from archiver import probe_texts
from archiver.errors import PackError
from marvec import loading
from marvec.encoder.torchscript_encoder import TYPES, TorchScriptEncoder
from marvec.errors import ModelDirError
from marvec.model import Model
from marvec.settings import ClassificationSettings, Settings
from marvec.tokens import TextTokenizer, Tokens

_INPUTS = ("input_ids", "attention_mask")
_BATCHES = ((7,), (5, 23, 11), (40, 12))  # tokens of each input; the shortest of the second batch is run alone too
_KNOWN = (*_INPUTS, TYPES, "position_ids")
_WHAT = {1: "logits", 2: "hidden states"}
_LARGEST_ERROR = 1e-3  # of the norm; rounding gives 1e-6, dropout or a mask that is not heeded 1e-2 and more


def load(file: Path, folder: Path, settings: Settings, hidden_size: int) -> Model:
    """Load the file that was staged as model.pt, and check that it is a transformer for any batch and length.

    Args:
        file: As the user named it.
        folder: The archive's `model/`.
        settings: The archive's; the encoder and the dtype do not matter.
        hidden_size: As config.json has it.

    Raises:
        PackError: When it is no TorchScript, or not the one that is expected.
    """
    engine = replace(settings.engine, encoder="torchscript", dtype="float32")
    try:
        encoder = TorchScriptEncoder.load(folder, engine, "cpu")
    except ModelDirError as err:
        reason = str(err.__cause__).split(". ")[0]  # torch goes on with guesses
        raise PackError(f"{file}: not a TorchScript file, as torch.jit.save writes it: {reason}") from err
    _require_inputs(file, encoder, settings)
    tokenizer = TextTokenizer.load(folder / "tokenizer.json", settings.model.max_length)
    batches = [[_input(tokenizer, length) for length in lengths] for lengths in (*_BATCHES, (tokenizer.max_length,))]
    for batch in batches:
        _require_shape(file, encoder, batch, _expected(settings, batch, hidden_size))
    _require_constancy(file, encoder, batches[1])
    return loading.load(folder, replace(settings, engine=engine))


def _require_inputs(file: Path, encoder: TorchScriptEncoder, settings: Settings) -> None:
    names, taken = encoder.inputs, f"{file}: takes forward({', '.join(encoder.inputs)}), expected is "
    misplaced = any(name in _KNOWN and name != wanted for name, wanted in zip(names, _INPUTS, strict=False))
    if len(names) < len(_INPUTS) or encoder.required > len(_INPUTS) + encoder.takes_types or misplaced:
        raise PackError(
            f"{taken}forward({', '.join(_INPUTS)}), both [inputs, length] int64; trace a module that takes these two "
            "and fills in the rest"
        )
    paired = isinstance(settings, ClassificationSettings) and settings.model.pairs and settings.model.token_types
    if paired and not encoder.takes_types:
        raise PackError(
            f"{taken}forward({', '.join((*_INPUTS, TYPES))}), since this model tells the texts of a pair by the third; "
            "trace it so, or pack with --no-pairs"
        )


def _input(tokenizer: TextTokenizer, length: int) -> Tokens:
    return probe_texts.of_length(tokenizer, min(length, tokenizer.max_length))


def _expected(settings: Settings, batch: Sequence[Tokens], hidden_size: int) -> tuple[str, list[int]]:
    """What the graph should give, and in which shape."""
    if isinstance(settings, ClassificationSettings):
        return "logits", [len(batch), len(settings.model.labels)]
    return "hidden states", [*_shape(batch), hidden_size]


def _shape(batch: Sequence[Tokens]) -> list[int]:
    return [len(batch), max(len(item.ids) for item in batch)]


def _require_shape(
    file: Path, encoder: TorchScriptEncoder, batch: Sequence[Tokens], expected: tuple[str, list[int]]
) -> None:
    what, shape = expected
    try:
        output, _ = encoder.run(batch)
    except TypeError as err:
        raise PackError(f"{file}: {err}") from err
    except Exception as err:  # a graph can fail in any way; the interpreter's trace ends with the cause
        cause = (str(err).strip().splitlines() or [type(err).__name__])[-1]
        raise PackError(
            f"{file}: fails on inputs {_shape(batch)}: {cause}; a trace must not hold its example's shape as a constant"
        ) from err
    if list(output.shape) != shape or output.dtype != torch.float32:
        given = f"{list(output.shape)} {str(output.dtype).removeprefix('torch.')}"
        raise PackError(f"{file}: gives {given} for inputs {_shape(batch)}, expected are {what} {shape} float32")


def _require_constancy(file: Path, encoder: TorchScriptEncoder, batch: Sequence[Tokens]) -> None:
    """The first input is not the longest: padding stands behind it."""
    first, again, alone = (_of_first(encoder, inputs) for inputs in (batch, batch, batch[:1]))
    if _error(first, again) > _LARGEST_ERROR:
        raise PackError(f"{file}: gives other numbers each time: it was traced in training mode; call eval() before")
    if _error(first, alone) > _LARGEST_ERROR:
        raise PackError(
            f"{file}: an input's {_WHAT[first.ndim]} change by {_error(first, alone):.1%} beside a longer one: "
            "the graph does not heed attention_mask"
        )


def _of_first(encoder: TorchScriptEncoder, batch: Sequence[Tokens]) -> Tensor:
    """What a batch's first input gets: its hidden states without padding, or its logits."""
    output, real = encoder.run(batch)
    return output[0][real[0]] if output.ndim == 3 else output[0]


def _error(left: Tensor, right: Tensor) -> float:
    return float((left - right).norm() / right.norm())
