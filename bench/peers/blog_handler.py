"""A TorchServe handler as articles show it: every text padded to one length, and computed alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer
from ts.context import Context
from ts.torch_handler.base_handler import BaseHandler


class BlogHandler(BaseHandler):  # type: ignore[misc]  # TorchServe is untyped
    """Sentence embeddings by mean pooling."""

    def initialize(self, context: Context) -> None:
        """Load the model from the folder of the unpacked archive."""
        folder = context.system_properties["model_dir"]
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()
        self.initialized = True

    def handle(self, data: Sequence[Mapping[str, Mapping[str, Sequence[str]]]], context: Context) -> list[object]:
        """Answer the requests of a batch: a list of vectors each."""
        return [[self.embed(text) for text in (row.get("data") or row["body"])["inputs"]] for row in data]

    def embed(self, text: str) -> list[float]:
        """The vector of one text, of unit length."""
        encoded = self.tokenizer(text, padding="max_length", truncation=True, max_length=128, return_tensors="pt")
        with torch.no_grad():
            hidden = self.model(**encoded).last_hidden_state
        mask = encoded["attention_mask"].unsqueeze(-1)
        mean: Tensor = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
        vector: list[float] = torch.nn.functional.normalize(mean)[0].tolist()
        return vector
