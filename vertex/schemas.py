"""What instances, parameters and predictions look like: files for Vertex AI, which only takes them from Cloud Storage.

They are OpenAPI 3.0.2 Schema Objects, a folder of them for each task. A model's version keeps the addresses that it
was uploaded with, so a folder's name there holds a digest of what lies in it, and what lies there is never written
again.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from vertex import storage
from vertex.setting_values import Task

FILES = ("instance.yaml", "parameters.yaml", "prediction.yaml")
_FOLDER = Path(__file__).resolve().with_name("schemas")


class SchemaUris(NamedTuple):
    """Addresses in the order of Vertex AI's PredictSchemata.

    Attributes:
        instance: Of the schema of one instance.
        parameters: Of the schema of a request's parameters.
        prediction: Of the schema of one prediction.
    """

    instance: str
    parameters: str
    prediction: str


def path(task: Task, name: str) -> Path:
    """Return where one of FILES lies here."""
    return _FOLDER / task / name


def read(task: Task, name: str) -> bytes:
    """Return the content of one of FILES."""
    return path(task, name).read_bytes()


def uris(folder: str, task: Task) -> SchemaUris:
    """Return where `put` puts the files; nothing is sent.

    Args:
        folder: `gs://BUCKET` or `gs://BUCKET/FOLDER`.
        task: Of the model.
    """
    digest = sha256(b"".join(read(task, name) for name in FILES)).hexdigest()[:12]
    return SchemaUris(*(f"{folder.rstrip('/')}/marvec-{digest}/{name}" for name in FILES))


def put(folder: str, task: Task) -> None:
    """Write the files where `uris` says, unless they are there.

    Args:
        folder: `gs://BUCKET` or `gs://BUCKET/FOLDER`.
        task: Of the model.

    Raises:
        VertexError: They cannot be written; one line that says what to do.
    """
    for name, place in zip(FILES, uris(folder, task), strict=True):
        storage.put(read(task, name), place, "application/yaml")
