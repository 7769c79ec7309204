"""Any transformers text encoder or classifier, on the CPU or on CUDA: what faster encoders are checked against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import transformers
from torch import Tensor

from marvec.encoder import padding
from marvec.errors import ModelDirError
from marvec.settings import ClassificationSettings, EngineSettings

if TYPE_CHECKING:
    from marvec.encoder import Rows
    from marvec.tokens import Tokens

# Encoder-decoders whose encoder transformers can load alone.
ENCODER_HALVES = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}
_ALONE = 1  # a budget of one token gives each input a pass of its own
_UNUSED_WEIGHTS = "pooler."  # BERT's pooler serves next-sentence prediction; many embedding models lack its weights


class TransformersEncoder:
    """A PyTorch model of the transformers library, fed with padded batches."""

    name = "transformers"

    def __init__(self, model: transformers.PreTrainedModel, settings: EngineSettings, device: str) -> None:
        """Wrap a loaded model.

        Args:
            model: On `device`, in evaluation mode.
            settings: For the dtype and the batch budget.
            device: "cpu" or "cuda:N".
        """
        self.model = model
        self._pad_id = int(getattr(model.config, "pad_token_id", None) or 0)
        self.device = device
        self.dtype = settings.dtype
        self.threads = torch.get_num_threads()
        budget = _ALONE if _reads_end_tokens(model) else settings.max_batch_tokens
        self.policy = padding.policy(device, budget, int(model.config.hidden_size))

    @classmethod
    def load(cls, folder: Path, settings: EngineSettings, device: str, task: str) -> TransformersEncoder:
        """Load config.json and safetensors from a folder; nothing is fetched.

        Args:
            folder: The archive's `model/`.
            settings: For the dtype and the batch budget.
            device: "cpu" or "cuda:N".
            task: "embedding", or "classification" for the model with its head.

        Raises:
            ModelDirError: When the weights do not fit config.json, or transformers does not know the architecture.
        """
        transformers.utils.logging.set_verbosity_error()  # it reports the unused pooler as a fault
        transformers.utils.logging.disable_progress_bar()
        try:
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            kind = getattr(transformers, _auto_class(config.model_type, task))
            model, info = kind.from_pretrained(
                folder,
                config=config,
                dtype=getattr(torch, settings.dtype),  # not the checkpoint's: some are saved in float16
                local_files_only=True,
                use_safetensors=True,
                output_loading_info=True,
            )
        except (OSError, ValueError, KeyError, RuntimeError) as err:
            raise ModelDirError(f"{folder}: transformers cannot load it: {err}") from err
        unused = () if task == ClassificationSettings.task else (_UNUSED_WEIGHTS,)  # heads may read it
        missing = sorted(key for key in info["missing_keys"] if not key.startswith(unused))
        wrong = sorted(str(item[0]) for item in info["mismatched_keys"])
        if missing or wrong:
            counts = f"{len(missing)} missing, {len(wrong)} of another shape"
            raise ModelDirError(
                f"{folder}: the weights do not fit config.json: {counts} ({', '.join((missing + wrong)[:3])})"
            )
        return cls(model.eval().to(device), settings, device)

    def encode(self, passes: Sequence[Rows]) -> Iterator[Tensor]:
        """Run one pass after another."""
        for rows in passes:
            yield self._forward([item for (item,) in rows])

    @torch.inference_mode()
    def _forward(self, batch: Sequence[Tokens]) -> Tensor:
        """Pad, encode, and drop the padding again: [tokens, hidden] or [inputs, labels] float32 on `device`."""
        ids, real, types = (part.to(self.device) for part in padding.pad(batch, self._pad_id))
        further = {"token_type_ids": types} if any(item.type_ids is not None for item in batch) else {}
        output = self.model(input_ids=ids, attention_mask=real.long(), **further)
        result: Tensor = output.logits if "logits" in output else output.last_hidden_state[real]
        return result.float()


def _reads_end_tokens(model: transformers.PreTrainedModel) -> bool:
    """Whether a classifier takes the state of the last end token, of which all inputs of a pass must have as many.

    Those are the encoder-decoders (bart, t5): a pair has more end tokens than a text, and a text may spell one out.
    """
    return model.config.is_encoder_decoder is True and type(model).__name__.endswith("ForSequenceClassification")


def _auto_class(model_type: str, task: str) -> str:
    if task == ClassificationSettings.task:
        return "AutoModelForSequenceClassification"
    return ENCODER_HALVES.get(model_type, "AutoModel")
