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
from marvec.embedder import Embedder
from marvec.encoder.torchscript_encoder import TorchScriptEncoder
from marvec.errors import ModelDirError
from marvec.settings import Settings
from marvec.tokens import TextTokenizer

_INPUTS = ("input_ids", "attention_mask")
_FURTHER_INPUTS = ("token_type_ids", "position_ids")
_BATCHES = ((7,), (5, 23, 11), (40, 12))  # tokens of each input; the shortest of the second batch is run alone too
_LARGEST_ERROR = 1e-3  # of the norm; rounding gives 1e-6, dropout or a mask that is not heeded 1e-2 and more


def load(file: Path, folder: Path, settings: Settings, hidden_size: int) -> Embedder:
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
    _require_inputs(file, encoder.graph)
    tokenizer = TextTokenizer.load(folder / "tokenizer.json", settings.model.max_length)
    batches = [[_input(tokenizer, length) for length in lengths] for lengths in (*_BATCHES, (tokenizer.max_length,))]
    for batch in batches:
        _require_hidden_states(file, encoder, batch, hidden_size)
    _require_constancy(file, encoder, batches[1])
    return Embedder.load(folder, replace(settings, engine=engine))


def _require_inputs(file: Path, graph: torch.jit.ScriptModule) -> None:
    schema = getattr(graph.forward, "schema", None)
    arguments = [] if schema is None else schema.arguments[1:]  # the first one is self
    names = [argument.name for argument in arguments]
    required = [argument.name for argument in arguments if not argument.has_default_value()]
    misplaced = [
        name
        for name, expected in zip(names, _INPUTS, strict=False)
        if name in (*_INPUTS, *_FURTHER_INPUTS) and name != expected
    ]
    if len(names) < len(_INPUTS) or len(required) > len(_INPUTS) or misplaced:
        raise PackError(
            f"{file}: takes forward({', '.join(names)}), expected is forward({', '.join(_INPUTS)}), both "
            "[inputs, length] int64; trace a module that takes these two and fills in the rest"
        )


def _input(tokenizer: TextTokenizer, length: int) -> Sequence[int]:
    return probe_texts.of_length(tokenizer, min(length, tokenizer.max_length)).ids


def _require_hidden_states(
    file: Path, encoder: TorchScriptEncoder, batch: Sequence[Sequence[int]], hidden_size: int
) -> None:
    shape = [len(batch), max(map(len, batch))]
    try:
        hidden, _ = encoder.run(batch)
    except TypeError as err:
        raise PackError(f"{file}: {err}") from err
    except Exception as err:  # a graph can fail in any way; the interpreter's trace ends with the cause
        cause = (str(err).strip().splitlines() or [type(err).__name__])[-1]
        raise PackError(
            f"{file}: fails on inputs {shape}: {cause}; a trace must not hold its example's shape as a constant"
        ) from err
    if list(hidden.shape) != [*shape, hidden_size] or hidden.dtype != torch.float32:
        given = f"{list(hidden.shape)} {str(hidden.dtype).removeprefix('torch.')}"
        expected = f"{[*shape, hidden_size]} float32"
        raise PackError(f"{file}: gives {given} for inputs {shape}, expected are hidden states {expected}")


def _require_constancy(file: Path, encoder: TorchScriptEncoder, batch: Sequence[Sequence[int]]) -> None:
    """The first input is not the longest: padding stands behind it."""
    first, again, alone = (encoder.run(inputs)[0][0, : len(batch[0])] for inputs in (batch, batch, batch[:1]))
    if _error(first, again) > _LARGEST_ERROR:
        raise PackError(f"{file}: gives other numbers each time: it was traced in training mode; call eval() before")
    if _error(first, alone) > _LARGEST_ERROR:
        raise PackError(
            f"{file}: an input's hidden states change by {_error(first, alone):.1%} beside a longer one: "
            "the graph does not heed attention_mask"
        )


def _error(left: Tensor, right: Tensor) -> float:
    return float((left - right).norm() / right.norm())
