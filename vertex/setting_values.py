"""Values of the settings file: what each may be, and what is said of another one."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from vertex import regions
from vertex.errors import VertexError

# Google takes 64; some are ours.
_MOST_LABELS = 60
_OWN_LABELS = ("made-with", "marvec-")
_MOST_VARIABLES = 100


def _matching(pattern: str, expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text, flags=re.ASCII):
            raise ValueError(f"expected {expected}, got {text!r}")
        return text

    return AfterValidator(check)


def _region(region: str) -> str:
    try:
        regions.check(region)
    except VertexError as err:
        raise ValueError(str(err)) from err
    return region


def _environment(variables: dict[str, str]) -> dict[str, str]:
    if len(variables) > _MOST_VARIABLES:
        raise ValueError(f"at most {_MOST_VARIABLES} variables, got {len(variables)}")
    for name, value in variables.items():
        if "\0" in value:
            raise ValueError(f"{name}: a variable cannot hold the character NUL")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith("AIP_"):
            raise ValueError(f"{name}: expected a variable's name; those that begin with AIP_ are Vertex AI's own")
    return variables


def _labels(labels: dict[str, str]) -> dict[str, str]:
    if len(labels) > _MOST_LABELS:
        raise ValueError(f"at most {_MOST_LABELS} labels, got {len(labels)}")
    for key, value in labels.items():
        if key.startswith(_OWN_LABELS):
            raise ValueError(f"{key}: made-with and what begins with marvec- are marvec's own labels")
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) or not re.fullmatch(r"[a-z0-9_-]{0,63}", value):
            expected = "lower-case letters, digits, '_' and '-', at most 63, a letter first in a key"
            raise ValueError(f"{key}: {value!r}: expected {expected}")
    return labels


# What an archive is for, as its `handler:` section says.
Task = Literal["embedding", "classification"]
Project = Annotated[str, _matching(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", "a project's id, such as my-project-1")]
Region = Annotated[str, AfterValidator(_region)]
Id = Annotated[
    str,
    _matching(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "lower-case letters, digits and '-', at most 63, a letter first"),
]
ServedName = Annotated[str, _matching(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "a model's name on the server")]
Image = Annotated[
    str,
    _matching(
        r"[a-z0-9.-]+\.[a-z]+/[^\s@:]+(:[\w.-]+(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})", "HOST/PATH/NAME:TAG"
    ),
]
Folder = Annotated[str, _matching(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/\S*)?", "gs://BUCKET/FOLDER")]
Table = Annotated[str, _matching(r"bq://[^\s.]+\.[^\s.]+(\.[^\s.]+)?", "bq://PROJECT.DATASET.TABLE")]
Account = Annotated[
    str, _matching(r"[^\s@]+@[^\s@]+\.iam\.gserviceaccount\.com", "NAME@PROJECT.iam.gserviceaccount.com")
]
Alias = Annotated[
    str,
    _matching(r"(?!default$)[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]", "letters, digits and '-', a letter first, not default"),
]
Key = Annotated[
    str,
    _matching(
        r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
]
Environment = Annotated[dict[str, str], AfterValidator(_environment)]
Labels = Annotated[dict[str, str], AfterValidator(_labels)]
Replicas = Annotated[int, Field(ge=1, le=10_000)]
PerCent = Annotated[int, Field(ge=1, le=100)]
