"""The smoke test: a deployed version must give the vectors that were recorded when its archive was packed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import yaml

from vertex import api_errors, storage
from vertex.errors import OperationError, VertexError

if TYPE_CHECKING:
    from vertex.found import Found
    from vertex.settings import VertexSettings

# "" names no prompt, since the golden texts are embedded without one; the form with `content` tells token counts too.
_PARAMETERS = {"promptName": ""}
_LONGEST_DIFFERENCE_OF_NORM = 1e-3
# At 5 % of the traffic a version is missed by all of them once in five million times.
_TRIES = 300


@dataclass(frozen=True)
class Golden:
    """What an archive recorded, and how exactly it is to be met.

    Attributes:
        texts: What is asked.
        token_counts: Tokens of each.
        vectors: [texts, dimension] float32.
        normalized: Whether they have unit length.
        least_cosine: Of a vector to its twin.
    """

    texts: Sequence[str]
    token_counts: Sequence[int]
    vectors: npt.NDArray[np.float32]
    normalized: bool
    least_cosine: float

    @property
    def instances(self) -> list[dict[str, str]]:
        """The texts as a request has them."""
        return [{"content": text} for text in self.texts]

    def require(self, predictions: Sequence[object]) -> float:
        """Compare predictions.

        Args:
            predictions: One for each of `instances`.

        Returns:
            The smallest cosine.

        Raises:
            OperationError: They are others; the message says by how much.
        """
        vectors, counts = _read(predictions)
        if list(self.token_counts) != counts:
            raise OperationError(
                f"the golden texts have {list(self.token_counts)} tokens, and the endpoint says {counts}"
            )
        if vectors.shape != self.vectors.shape:
            shape = list(self.vectors.shape)
            raise OperationError(f"the golden vectors have the shape {shape}, the endpoint's {list(vectors.shape)}")
        lengths = np.linalg.norm(vectors, axis=1)
        if self.normalized and not np.abs(lengths - 1).max() <= _LONGEST_DIFFERENCE_OF_NORM:
            raise OperationError(f"vectors have lengths from {lengths.min():.4f} to {lengths.max():.4f}: expected 1")
        cosine = float((np.sum(vectors * self.vectors, axis=1) / lengths / np.linalg.norm(self.vectors, axis=1)).min())
        if not cosine >= self.least_cosine:  # a NaN is neither
            raise OperationError(
                f"the smallest cosine to the golden vectors is {cosine:.6f}, allowed is {self.least_cosine} and above"
            )
        return cosine


def golden(settings: VertexSettings, archive: str) -> Golden:
    """Read what an archive recorded, and no more of it.

    Args:
        settings: The model's name on the server, which is the archive's.
        archive: The folder that holds it, `gs://BUCKET/FOLDER`.

    Raises:
        VertexError: It is not there, or is no archive.
    """
    from marvec.agreement import LEAST_COSINE  # torch stands behind it

    uri = f"{archive.rstrip('/')}/{settings.model.served_as or settings.model.name}.mar"
    try:
        with storage.opened(uri) as content, zipfile.ZipFile(content) as files:
            recorded = json.loads(files.read("golden.json"))
            handler = yaml.safe_load(files.read("model-config.yaml"))["handler"]
        return Golden(
            texts=recorded["texts"],
            token_counts=recorded["token_counts"],
            vectors=np.array(recorded["answers"], dtype=np.float32),
            normalized=handler["model"]["normalize"],
            least_cosine=LEAST_COSINE[handler["engine"]["dtype"]],
        )
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, yaml.YAMLError) as err:
        raise VertexError(f"{uri} is no archive of marvec pack: {err}") from err


def check(settings: VertexSettings, found: Found, expected: Golden) -> float:
    """Ask the endpoint until the newest version answers, and compare.

    Args:
        settings: Which endpoint.
        found: What there is.
        expected: Of the newest version's archive.

    Returns:
        The smallest cosine.

    Raises:
        VertexError: It is not deployed, has no traffic, or gives other vectors.
    """
    version = found.version(None).version_id
    deployed = found.deployed_as(version).id
    if not found.split[deployed]:
        raise VertexError(
            f"version {version} has no traffic, so it cannot be asked: marvec vertex traffic gives it some"
        )
    return expected.require(_predictions(settings, deployed, expected.instances))


def _predictions(settings: VertexSettings, deployed: str, instances: list[dict[str, str]]) -> list[object]:
    from google.cloud import aiplatform  # seconds

    with api_errors.explained(settings):
        aiplatform.init(project=settings.project, location=settings.region, api_transport=settings.api_transport)
        endpoint = aiplatform.Endpoint(settings.endpoint_name)
        for _ in range(_TRIES):
            try:
                answer = endpoint.predict(instances=instances, parameters=_PARAMETERS)
            except ValueError as err:  # all that the SDK says of an endpoint with an address of its own
                raise OperationError(api_errors.one_line(str(err))) from err
            if answer.deployed_model_id == deployed:
                return list(answer.predictions)
    raise OperationError(f"of {_TRIES} requests none was answered by the version that was just deployed")


def _read(predictions: Sequence[object]) -> tuple[npt.NDArray[np.float32], list[int]]:
    vectors: list[list[float]] = []
    counts: list[int] = []
    try:
        for prediction in predictions:
            if not isinstance(prediction, Mapping):
                raise TypeError(f"expected an object, got {type(prediction).__name__}")
            embeddings = prediction["embeddings"]
            vectors.append(embeddings["values"])
            counts.append(int(embeddings["statistics"]["token_count"]))
        return np.array(vectors, dtype=np.float32), counts
    except (KeyError, TypeError, ValueError) as err:
        raise OperationError(
            f"the endpoint's predictions are no embeddings ({err}): is it a model of marvec's?"
        ) from err
