"""A transformer as a function that OpenVINO can take: the forms it may have, and the choice of one that is exact.

In the first form several inputs share a row. That takes a mask by which a token sees its own input only, and families
differ in how they count positions and in which of its own tokens a token sees (all, the earlier ones, a window). No
table of families says so here: each likely form is tried on real inputs, and the one that reproduces the model is it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from marvec.encoder.layout import lay_out
from marvec.tokens import Tokens

_LARGEST_ERROR = 1e-4  # of the norm; rounding gives 1e-6, a wrong mask or wrong positions 1e-2 and more
_HIDDEN_FROM = torch.finfo(torch.float32).min

Sees = Callable[[Tensor], Tensor]
"""[length, length] int64, how far the seeing token stands behind the seen one -> [length, length] bool."""


@dataclass(frozen=True)
class Attention:
    """Which tokens of its own input a token sees.

    Attributes:
        everywhere: In layers of full attention.
        sliding: In layers of sliding attention.
        by_layer_type: Whether the model takes a mask for each type of layer.
    """

    everywhere: Sees
    sliding: Sees | None = None
    by_layer_type: bool = False


@dataclass(frozen=True)
class Positions:
    """How a model numbers the tokens of an input.

    Attributes:
        first: The number of the first one.
        uncounted: A token that takes no number and keeps its own id for one: the padding of the roberta families, also
            where a text spells it out. None where every token counts.
    """

    first: int = 0
    uncounted: int | None = None

    def number(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        """Number tokens whose positions count from 0 in each input: all [rows, length] int64."""
        if self.uncounted is None:
            return position_ids + self.first
        bare = (input_ids == self.uncounted).long()
        before = bare.cumsum(1) - bare  # in the whole row, so those before the input are taken off again
        begin = torch.arange(input_ids.shape[1]) - position_ids
        counted = position_ids + self.first - before + before.gather(1, begin)
        return torch.where(bare > 0, self.uncounted, counted)


class PackedRows(nn.Module):
    """Several inputs in a row: `input_ids`, `position_ids`, `segments` -> hidden states."""

    inputs = ("input_ids", "position_ids", "segments")

    def __init__(self, model: PreTrainedModel, attention: Attention, positions: Positions) -> None:
        """Wrap a model.

        Args:
            model: In evaluation mode.
            attention: What a token sees.
            positions: How its tokens are numbered.
        """
        super().__init__()
        self._model = model
        self._attention = attention
        self._positions = positions
        self._parameters_taken = frozenset(inspect.signature(model.forward).parameters)

    def forward(
        self, input_ids: Tensor, position_ids: Tensor, segments: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """All [rows, length] int64 -> [rows, length, hidden] float32; positions count from 0 in each input."""
        same = segments[:, None, :, None] == segments[:, None, None, :]
        place = torch.arange(input_ids.shape[1])
        behind = place[:, None] - place[None, :]
        mask: Tensor | dict[str, Tensor] = _additive(same & self._attention.everywhere(behind))
        if self._attention.sliding is not None:
            sliding = _additive(same & self._attention.everywhere(behind) & self._attention.sliding(behind))
            by_type = {"full_attention": mask, "sliding_attention": sliding}
            mask = by_type if self._attention.by_layer_type else sliding  # type: ignore[assignment]
        further: dict[str, object] = {
            "use_cache": False,
            "position_ids": self._positions.number(input_ids, position_ids),
        }
        if getattr(self._model.config, "type_vocab_size", 0):
            further["token_type_ids"] = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        taken = {name: value for name, value in further.items() if name in self._parameters_taken}
        hidden: Tensor = self._model(input_ids=input_ids, attention_mask=mask, **taken)[0]
        return hidden


class PaddedRows(nn.Module):
    """One input in a row, for models that take no such mask: `input_ids`, `attention_mask` -> hidden states."""

    inputs = ("input_ids", "attention_mask")

    def __init__(self, model: PreTrainedModel) -> None:
        """Wrap a model in evaluation mode."""
        super().__init__()
        self._model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Both [rows, length] int64 -> [rows, length, hidden] float32."""
        hidden: Tensor = self._model(input_ids=input_ids, attention_mask=attention_mask)[0]
        return hidden


def find(model: PreTrainedModel, samples: Sequence[Tokens]) -> PackedRows | PaddedRows:
    """Choose the form of a model.

    Args:
        model: In evaluation mode, float32.
        samples: Some inputs, short ones and one that is longer than any window of attention.

    Returns:
        The form with shared rows that reproduces the hidden states of each input alone, or else the padded one.
    """
    pad = getattr(model.config, "pad_token_id", None)
    if pad is not None:
        ids = samples[0].ids
        samples = [*samples, Tokens.of([*ids, pad, pad, *ids])]  # as of a text that spells it out
    with torch.inference_mode():
        alone = [_alone(model, item.ids) for item in samples]
        for form in _candidates(model):
            if _reproduces(form, samples, alone):
                return form
    return PaddedRows(model)


def _alone(model: PreTrainedModel, ids: Sequence[int]) -> Tensor:
    hidden: Tensor = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)))[0][0]
    return hidden


def window(config: PretrainedConfig) -> int | None:
    """How far a token of a sliding layer sees, in tokens; None for models without such layers."""
    local = getattr(config, "local_attention", None)
    reach = getattr(config, "sliding_window", None) or (local and local // 2)
    types = getattr(config, "layer_types", None)
    return reach if types is None or "sliding_attention" in types else None


def _candidates(model: PreTrainedModel) -> Iterator[PackedRows]:
    numberings = [Positions()]
    if (pad := getattr(model.config, "pad_token_id", None)) is not None:
        numberings += [Positions(pad + 1, uncounted=pad), Positions(pad + 1)]
    for attention in _attentions(model.config):
        for positions in numberings:
            yield PackedRows(model, attention, positions)


def _attentions(config: PretrainedConfig) -> Iterator[Attention]:
    reach = window(config)
    for everywhere in (_all, _earlier):
        if reach is None:
            yield Attention(everywhere)
            continue
        by_layer_type = getattr(config, "layer_types", None) is not None
        for farthest in (reach, reach - 1):  # families differ in whether the window's edge belongs to it
            yield Attention(everywhere, _Near(farthest), by_layer_type)


def _all(behind: Tensor) -> Tensor:
    return torch.ones_like(behind, dtype=torch.bool)


def _earlier(behind: Tensor) -> Tensor:
    return behind >= 0


@dataclass(frozen=True)
class _Near:
    farthest: int

    def __call__(self, behind: Tensor) -> Tensor:
        return behind.abs() <= self.farthest


def _additive(sees: Tensor) -> Tensor:
    return torch.zeros(sees.shape).masked_fill(~sees, _HIDDEN_FROM)


def _reproduces(form: PackedRows, samples: Sequence[Tokens], alone: Sequence[Tensor]) -> bool:
    """Whether inputs that share a row get the hidden states that each has alone."""
    laid_out = lay_out([samples])
    try:
        hidden = form(*(torch.from_numpy(laid_out[name]) for name in form.inputs))[laid_out["segments"] > 0]
    except (RuntimeError, ValueError, TypeError, AttributeError, IndexError):  # the model takes no such mask
        return False
    found = hidden.split([len(item.ids) for item in samples])
    errors = [float((ours - theirs).norm() / theirs.norm()) for ours, theirs in zip(found, alone, strict=True)]
    return max(errors) <= _LARGEST_ERROR
