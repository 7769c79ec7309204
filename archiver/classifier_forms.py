"""A classifier with its head as a function that OpenVINO can take, for inputs that share rows or have one each.

What shares rows is the transformer. Its hidden states are then dealt out, a row for each input, and the model's own
head runs on them: the model is called as usual, but finds them in its transformer's place.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from archiver import openvino_forms
from archiver.openvino_forms import PackedRows
from marvec.encoder import openvino_encoder
from marvec.tokens import Tokens

_LARGEST_ERROR = 1e-4  # of the norm of all logits
_TYPES = "token_type_ids"


class PackedLabels(nn.Module):
    """Several inputs in a row: what PackedRows takes, and `places`, [inputs, length] int64 -> logits."""

    def __init__(self, model: PreTrainedModel, rows: PackedRows, token_types: bool) -> None:
        """Wrap a classifier.

        Args:
            model: In evaluation mode.
            rows: The form of its transformer.
            token_types: Whether it is told which text of a pair a token is of.
        """
        super().__init__()
        self.inputs = (*PackedRows.inputs, "places", *((_TYPES,) if token_types else ()))
        self._rows = rows
        self._given = _Given(model.base_model)
        self._head = copy.copy(model)
        self._head._modules = {**model._modules, model.base_model_prefix: self._given}
        self._pad_id = _pad_id(model)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        segments: Tensor,
        places: Tensor,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """[rows, length] int64 and [inputs, length] int64 -> [inputs, labels] float32."""
        hidden = self._rows(input_ids, position_ids, segments, token_type_ids)
        index, real = places.clamp(min=0), places >= 0
        self._given.hidden = embedding(index, hidden.flatten(0, 1))
        ids = embedding(index, input_ids.reshape(-1, 1)).squeeze(-1).masked_fill(~real, self._pad_id)
        logits: Tensor = self._head(input_ids=ids, attention_mask=real.long()).logits
        return logits


class PaddedLabels(nn.Module):
    """One input in a row: `input_ids`, `attention_mask`, perhaps `token_type_ids` -> logits."""

    def __init__(self, model: PreTrainedModel, token_types: bool) -> None:
        """Wrap a classifier.

        Args:
            model: In evaluation mode.
            token_types: Whether it is told which text of a pair a token is of.
        """
        super().__init__()
        self.inputs = ("input_ids", "attention_mask", *((_TYPES,) if token_types else ()))
        self._model = model
        self._pad_id = _pad_id(model)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """All [inputs, length] int64 -> [inputs, labels] float32."""
        types = {} if token_type_ids is None else {_TYPES: token_type_ids}
        ids = input_ids.masked_fill(attention_mask == 0, self._pad_id)  # heads of decoders look for the last real one
        logits: Tensor = self._model(input_ids=ids, attention_mask=attention_mask, **types).logits
        return logits


def _pad_id(model: PreTrainedModel) -> int:
    return int(getattr(model.config, "pad_token_id", None) or 0)


class _Output(BaseModelOutputWithPooling):  # type: ignore[misc]  # transformers is untyped
    """What a transformer gives; of its cache and the like, which heads only hand on, nothing is there."""

    def __getattr__(self, name: str) -> None:
        return None


class _Given(nn.Module):
    """Stands in a transformer's place, and gives what it was given."""

    hidden: Tensor

    def __init__(self, transformer: PreTrainedModel) -> None:
        super().__init__()
        self._pooler = getattr(transformer, "pooler", None)
        self._activation = getattr(transformer, "pooler_activation", None)

    def forward(self, *args: object, **further: object) -> BaseModelOutputWithPooling:
        return _Output(last_hidden_state=self.hidden, pooler_output=self._pooled())

    def _pooled(self) -> Tensor | None:
        if self._pooler is None:
            return None
        if self._activation is None:
            pooled: Tensor = self._pooler(self.hidden)
            return pooled
        activated: Tensor = self._activation(self._pooler(self.hidden[:, 0]))  # albert keeps the two apart
        return activated


def find(
    model: PreTrainedModel, samples: Sequence[Tokens], pairs: Sequence[Tokens], token_types: bool
) -> PackedLabels | PaddedLabels:
    """Choose the form of a classifier.

    Args:
        model: In evaluation mode, float32.
        samples: Some inputs, as openvino_forms.find wants them.
        pairs: Some pairs of texts.
        token_types: Whether the model is told which text of a pair a token is of.

    Returns:
        The form with shared rows where it gives the logits of each input alone, else the padded one.
    """
    padded = PaddedLabels(model, token_types)
    if model.config.is_encoder_decoder or model.base_model is model:
        return padded
    rows = openvino_forms.find(model.base_model, samples)
    if not isinstance(rows, PackedRows):
        return padded
    packed = PackedLabels(model, rows, token_types)
    return packed if _reproduces(packed, padded, [*samples, *pairs]) else padded


def _reproduces(packed: PackedLabels, padded: PaddedLabels, samples: Sequence[Tokens]) -> bool:
    with torch.inference_mode():
        alone = torch.cat([_run(padded, [[item]]) for item in samples])
        try:
            together = _run(packed, [samples])
        except (RuntimeError, ValueError, TypeError, AttributeError, IndexError):  # the head looks for more than those
            return False
    return together.shape == alone.shape and bool((together - alone).norm() <= _LARGEST_ERROR * alone.norm())


def _run(form: PackedLabels | PaddedLabels, rows: Sequence[Sequence[Tokens]]) -> Tensor:
    laid_out = openvino_encoder.inputs(rows, form.inputs)
    logits: Tensor = form(**{name: torch.from_numpy(laid_out[name]) for name in form.inputs})
    return logits
