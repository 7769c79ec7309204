"""Which golden answers an archive's files make, by its task."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import yaml

from marvec.settings import ClassificationModel, ClassificationSettings, EmbeddingModel, EmbeddingSettings, Settings
from tests.unit.vertex_samples import settings
from vertex import smoke, storage
from vertex.errors import VertexError
from vertex.golden_scores import GoldenScores
from vertex.golden_vectors import GoldenVectors

VECTORS = EmbeddingSettings(EmbeddingModel("m", None, 64, 2, ("mean",), normalize=True))
SCORES = ClassificationSettings(ClassificationModel("m", None, 64, ("bad", "good"), "single_label_classification"))
STARS = ClassificationSettings(ClassificationModel("m", None, 64, ("a", "b"), "regression"))
RECORDED = {"texts": ["", "a"], "token_counts": [2, 3], "answers": [[0.25, 0.75], [0.5, 0.5]]}
URI = "gs://bucket/run/minilm.mar"
Put = Callable[[object, object], None]


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Return what makes the archive of a handler's section and a golden.json."""

    def write(section: object, recorded: object) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("golden.json", json.dumps(recorded))
            archive.writestr("model-config.yaml", yaml.safe_dump({"handler": section}))

        @contextmanager
        def opened(uri: str) -> Iterator[io.BytesIO]:
            assert uri == URI
            yield content

        monkeypatch.setattr(storage, "opened", opened)

    return write


def test_an_embedding_models_are_vectors(put: Put) -> None:
    put(VECTORS.to_mapping(), RECORDED)
    found = smoke.golden(settings(), "gs://bucket/run/")
    assert isinstance(found, GoldenVectors)
    assert (found.texts, found.token_counts, found.vectors.tolist()) == tuple(RECORDED.values())
    assert (found.normalized, found.least_cosine, found.figure) == (True, 0.9999, "smallest cosine")


@pytest.mark.parametrize(("packed", "regression"), [(SCORES, False), (STARS, True)])
@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-3), ("int8", 0.25)])
def test_a_classifiers_are_scores(put: Put, packed: Settings, regression: bool, dtype: str, most: float) -> None:
    section = packed.to_mapping()
    put({**section, "engine": {"encoder": "openvino", "dtype": dtype}}, RECORDED)
    found = smoke.golden(settings(), "gs://bucket/run")
    assert isinstance(found, GoldenScores)
    assert found.texts == RECORDED["texts"]
    assert found.labels == packed.model.labels  # type: ignore[attr-defined]
    np.testing.assert_array_equal(found.scores, np.array(RECORDED["answers"], np.float32))
    assert (found.regression, found.most_difference, found.figure) == (regression, most, "largest difference")


@pytest.mark.parametrize(
    ("section", "recorded", "reason"),
    [
        (SCORES.to_mapping(), {**RECORDED, "answers": [[1.0], [1.0]]}, "golden answers of shape [2, 1]"),
        (SCORES.to_mapping(), {"texts": ["a"]}, "'answers'"),
        ({"task": "embedding"}, RECORDED, "handler.model: missing; pack the model again with `marvec pack`"),
        (
            {**SCORES.to_mapping(), "task": "ranking"},
            RECORDED,
            "handler.task: expected one of embedding, classification, got 'ranking'",
        ),
    ],
)
def test_what_is_no_archive(put: Put, section: object, recorded: object, reason: str) -> None:
    put(section, recorded)
    with pytest.raises(VertexError) as caught:
        smoke.golden(settings(), "gs://bucket/run")
    assert str(caught.value) == f"{URI} is no archive of marvec pack: {reason}"


def test_the_schemas_must_be_of_the_archives_task(put: Put) -> None:
    put(SCORES.to_mapping(), RECORDED)
    with_schemas = {"schema_folder": "gs://bucket/schemas"}
    with pytest.raises(VertexError) as caught:
        smoke.golden(settings(model=with_schemas), "gs://bucket/run")
    assert str(caught.value) == (
        f"model.task is embedding, so the schemas are of that, and {URI} is for classification"
    )
    wanted = settings(model={**with_schemas, "task": "classification"})
    assert isinstance(smoke.golden(wanted, "gs://bucket/run"), GoldenScores)
