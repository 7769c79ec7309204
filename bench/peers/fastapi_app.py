"""Sentence embeddings over HTTP, as anyone would write it."""

from __future__ import annotations

import contextlib
import os
import threading

from fastapi import FastAPI  # type: ignore[import-not-found]  # installed in the peer's environment only
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

backend = os.environ["BACKEND"]
app = FastAPI()
model = SentenceTransformer(os.environ["MODEL"], device="cpu", backend=backend)
# The OpenVINO engine fails when two threads ask it at the same moment; torch does not.
turn = threading.Lock() if backend == "openvino" else contextlib.nullcontext()


class EmbedRequest(BaseModel):
    """Some texts."""

    texts: list[str]


class EmbedResponse(BaseModel):
    """Their vectors, in the same order."""

    embeddings: list[list[float]]


@app.post("/embed")  # type: ignore[untyped-decorator]  # see above
def embed(request: EmbedRequest) -> EmbedResponse:
    """Embed the texts of one request."""
    with turn:
        vectors = model.encode(request.texts)
    return EmbedResponse(embeddings=vectors.tolist())
