"""The smoke test: a deployed version must give the answers that were recorded when its archive was packed."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import yaml

from marvec.errors import SettingsError
from marvec.settings import ClassificationSettings, EmbeddingSettings, Settings, read_settings
from vertex import api_errors, storage
from vertex.errors import OperationError, VertexError
from vertex.golden_scores import GoldenScores
from vertex.golden_vectors import GoldenVectors

if TYPE_CHECKING:
    from vertex.found import Found
    from vertex.golden import Golden
    from vertex.settings import VertexSettings

# At 5 % of the traffic a version is missed by all of them once in five million times.
_TRIES = 300


class Recorded(TypedDict):
    """An archive's golden.json; marvec.golden writes it."""

    texts: list[str]
    token_counts: list[int]
    answers: list[list[float]]


def golden(settings: VertexSettings, archive: str) -> Golden:
    """Read what an archive recorded, and no more of it.

    Args:
        settings: The model's name on the server, which is the archive's.
        archive: The folder that holds it, `gs://BUCKET/FOLDER`.

    Raises:
        VertexError: It is not there, is no archive, or is one of another task than the schemas that were uploaded.
    """
    uri = f"{archive.rstrip('/')}/{settings.model.served_as or settings.model.name}.mar"
    try:
        with storage.opened(uri) as content, zipfile.ZipFile(content) as files:
            recorded = json.loads(files.read("golden.json"))
            packed = read_settings(yaml.safe_load(files.read("model-config.yaml"))["handler"])
        found = golden_of(packed, recorded)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, yaml.YAMLError, SettingsError) as err:
        raise VertexError(f"{uri} is no archive of marvec pack: {err}") from err
    if settings.model.schema_folder is not None and settings.model.task != packed.task:
        raise VertexError(
            f"model.task is {settings.model.task}, so the schemas are of that, and {uri} is for {packed.task}"
        )
    return found


def golden_of(packed: Settings, recorded: Recorded) -> Golden:
    """Return what an archive recorded, of the kind that its task has.

    Args:
        packed: The settings in its model-config.yaml.
        recorded: Its golden.json.

    Raises:
        KeyError: Something is missing.
        ValueError: Its answers are no table of numbers, or not of these texts and labels.
    """
    from marvec.agreement import LEAST_COSINE, MOST_DIFFERENCE  # torch stands behind it

    texts, answers, dtype = recorded["texts"], np.array(recorded["answers"], dtype=np.float32), packed.engine.dtype
    if isinstance(packed, ClassificationSettings):
        model = packed.model
        if answers.shape != (len(texts), len(model.labels)):
            raise ValueError(f"golden answers of shape {list(answers.shape)}")
        return GoldenScores(texts, model.labels, answers, model.regression, MOST_DIFFERENCE[dtype])
    if not isinstance(packed, EmbeddingSettings):
        raise ValueError(f"no such task is known here: {packed.task}")
    return GoldenVectors(texts, recorded["token_counts"], answers, packed.model.normalize, LEAST_COSINE[dtype])


def check(settings: VertexSettings, found: Found, expected: Golden) -> float:
    """Ask the endpoint until the newest version answers, and compare.

    Args:
        settings: Which endpoint.
        found: What there is.
        expected: Of the newest version's archive.

    Returns:
        How near the answers are.

    Raises:
        VertexError: It is not deployed, has no traffic, or gives other answers.
    """
    version = found.version(None).version_id
    deployed = found.deployed_as(version).id
    if not found.split[deployed]:
        raise VertexError(
            f"version {version} has no traffic, so it cannot be asked: marvec vertex traffic gives it some"
        )
    return expected.require(_predictions(settings, deployed, expected))


def _predictions(settings: VertexSettings, deployed: str, expected: Golden) -> list[object]:
    from google.cloud import aiplatform  # seconds

    with api_errors.explained(settings):
        aiplatform.init(project=settings.project, location=settings.region, api_transport=settings.api_transport)
        endpoint = aiplatform.Endpoint(settings.endpoint_name)
        for _ in range(_TRIES):
            try:
                answer = endpoint.predict(instances=expected.instances, parameters=dict(expected.parameters))
            except ValueError as err:  # all that the SDK says of an endpoint with an address of its own
                raise OperationError(api_errors.one_line(str(err))) from err
            if answer.deployed_model_id == deployed:
                return list(answer.predictions)
    raise OperationError(f"of {_TRIES} requests none was answered by the version that was just deployed")
