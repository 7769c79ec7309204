"""Settings, and Google's own messages with a little in them, for the tests of vertex/."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import datetime, timezone
from io import StringIO

from google.cloud import aiplatform_v1
from rich.console import Console

from vertex.found import Found
from vertex.progress import Progress
from vertex.settings import VertexSettings, from_mapping

LOCATION = "projects/my-project/locations/europe-west1"
MODEL = f"{LOCATION}/models/minilm"
ENDPOINT = f"{LOCATION}/endpoints/search"
IMAGE = "europe-west1-docker.pkg.dev/my-project/models/minilm:1.0"
KEY = "projects/my-project/locations/europe-west1/keyRings/r/cryptoKeys/k"
MADE_HERE = {"made-with": "marvec"}
_LEAST: Mapping[str, object] = {
    "project": "my-project",
    "region": "europe-west1",
    "model": {"name": "minilm", "image": IMAGE},
    "endpoint": {"name": "search"},
}


def settings(**changes: object) -> VertexSettings:
    """Return the least settings with changes; a mapping changes what it names of its section.

    Args:
        changes: `kms_key="…"`, or `deployment={"machine": "n1-standard-8"}`.
    """
    content = copy.deepcopy(dict(_LEAST))
    for key, value in changes.items():
        before = content.get(key)
        content[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return from_mapping(content, "vertex.yaml")


def version(number: int, *aliases: str, labels: Mapping[str, str] = MADE_HERE) -> aiplatform_v1.Model:
    """Return a version of the model, uploaded in its number's minute of 2026."""
    return aiplatform_v1.Model(
        name=MODEL,
        version_id=str(number),
        version_aliases=aliases,
        labels=labels,
        container_spec={"image_uri": IMAGE},
        version_create_time=minute(number),
    )


def deployed(
    one: str, number: int, at: int = 0, machine: str = "n1-standard-4", replicas: int = 1
) -> aiplatform_v1.DeployedModel:
    """Return a version on the endpoint.

    Args:
        one: The deployed model's id.
        number: The version's.
        at: The minute of its creation; 0 for the version's number.
        machine: What it runs on.
        replicas: How many, at least and at most.
    """
    return aiplatform_v1.DeployedModel(
        id=one,
        model=f"{MODEL}@{number}",
        display_name=f"minilm-{number}",
        model_version_id=str(number),
        create_time=minute(at or number),
        dedicated_resources={
            "machine_spec": {"machine_type": machine},
            "min_replica_count": replicas,
            "max_replica_count": replicas,
        },
    )


def endpoint(
    *there: aiplatform_v1.DeployedModel,
    split: Mapping[str, int] | None = None,
    dedicated: bool = False,
    labels: Mapping[str, str] = MADE_HERE,
) -> aiplatform_v1.Endpoint:
    """Return the endpoint with what is deployed on it."""
    return aiplatform_v1.Endpoint(
        name=ENDPOINT,
        deployed_models=there,
        traffic_split=split or {},
        dedicated_endpoint_enabled=dedicated,
        dedicated_endpoint_dns="1.europe-west1-2.prediction.vertexai.goog" if dedicated else "",
        labels=labels,
    )


def two_versions(split: Mapping[str, int]) -> Found:
    """Return versions 1 and 2, deployed as 11 and 22."""
    return Found((version(1), version(2, "default")), endpoint(deployed("11", 1), deployed("22", 2), split=split))


def minute(number: int) -> datetime:
    """Return a minute of the first hour of 2026."""
    return datetime(2026, 1, 1, 0, number, tzinfo=timezone.utc)


class Told:
    """Progress whose lines can be read."""

    def __init__(self) -> None:
        self._written = StringIO()
        self.progress = Progress(Console(file=self._written, highlight=False))

    @property
    def lines(self) -> list[str]:
        """What was told."""
        return self._written.getvalue().splitlines()
