"""Sentence embeddings over HTTP, as anyone would write it."""

from __future__ import annotations

import os

from fastapi import FastAPI  # type: ignore[import-not-found]  # installed in the peer's environment only
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

app = FastAPI()
model = SentenceTransformer(os.environ["MODEL"], device="cpu", backend=os.environ["BACKEND"])


class EmbedRequest(BaseModel):
    """Some texts."""

    texts: list[str]


class EmbedResponse(BaseModel):
    """Their vectors, in the same order."""

    embeddings: list[list[float]]


@app.post("/embed")  # type: ignore[untyped-decorator]  # see above
def embed(request: EmbedRequest) -> EmbedResponse:
    """Embed the texts of one request."""
    return EmbedResponse(embeddings=model.encode(request.texts).tolist())
