"""The upload: what is sent, and when nothing is."""

from __future__ import annotations

import pytest

from tests.unit.vertex_samples import IMAGE, KEY, LOCATION, MODEL, settings, version
from vertex import schemas, upload
from vertex.found import Found
from vertex.gcloud import body

DIGEST = "marvec-settings"


def uploaded(number: int, *aliases: str, **changes: object) -> Found:
    """Return a model whose newest version was uploaded with settings."""
    older = [version(one) for one in range(1, number)]
    labels = {"made-with": "marvec", DIGEST: upload.digest(settings(**changes))}
    return Found((*older, version(number, *aliases, labels=labels)))


def test_the_first_upload_says_all_that_a_container_needs() -> None:
    (request,) = upload.plan(settings(), Found())
    content = body(request)
    assert content == {
        "parent": LOCATION,
        "modelId": "minilm",
        "model": {
            "displayName": "minilm",
            "containerSpec": {
                "imageUri": IMAGE,
                "ports": [{"containerPort": 7080}],
                "predictRoute": "/predictions/minilm",
                "healthRoute": "/ping",
                "deploymentTimeout": "1800s",
                "startupProbe": {
                    "exec": {"command": ["python", "/home/model-server/serving/ready.py", "--wait", "595"]},
                    "periodSeconds": 600,
                    "timeoutSeconds": 600,
                },
                "healthProbe": {
                    "exec": {"command": ["python", "/home/model-server/serving/ready.py"]},
                    "periodSeconds": 30,
                    "timeoutSeconds": 30,
                },
            },
            "labels": {"made-with": "marvec", DIGEST: "bb905deac034bc81"},
        },
    }


def test_all_that_can_be_set_is_sent() -> None:
    wanted = {
        "served_as": "MiniLM_v2",
        "artifact_uri": "gs://bucket/archives/minilm",
        "description": "Sätze, 文",
        "version_aliases": ["canary"],
        "labels": {"team": "search"},
        "environment": {"MARVEC_WORKERS": "2", "EMPTY": ""},
        "schema_folder": "gs://bucket/schemas",
        "shared_memory_mb": 256,
        "startup_timeout_s": 10,
        "deployment_timeout_s": 7200,
    }
    (request,) = upload.plan(settings(model=wanted, kms_key=KEY), Found())
    model = body(request)["model"]
    assert isinstance(model, dict)
    container = model.pop("containerSpec")
    places = schemas.uris("gs://bucket/schemas", "embedding")
    assert model == {
        "displayName": "minilm",
        "description": "Sätze, 文",
        "versionAliases": ["canary"],
        "artifactUri": "gs://bucket/archives/minilm",
        "predictSchemata": {
            "instanceSchemaUri": places.instance,
            "parametersSchemaUri": places.parameters,
            "predictionSchemaUri": places.prediction,
        },
        "encryptionSpec": {"kmsKeyName": KEY},
        "labels": {"team": "search", "made-with": "marvec", DIGEST: request.model.labels[DIGEST]},
    }
    assert container["predictRoute"] == "/predictions/MiniLM_v2"
    assert container["env"] == [{"name": "MARVEC_WORKERS", "value": "2"}, {"name": "EMPTY"}]
    assert container["sharedMemorySizeMb"] == "256"
    assert container["deploymentTimeout"] == "7200s"
    assert container["startupProbe"]["exec"]["command"][-2:] == ["--wait", "5"]
    assert container["startupProbe"]["timeoutSeconds"] == 10


def test_other_settings_are_a_new_version_and_the_default() -> None:
    changed = settings(model={"description": "two", "version_aliases": ["canary", "v2"]})
    (request,) = upload.plan(changed, uploaded(3))
    assert (request.parent, request.parent_model, request.model_id) == (LOCATION, MODEL, "")
    assert list(request.model.version_aliases) == ["default", "canary", "v2"]
    assert request.model.labels[DIGEST] == upload.digest(changed)


def test_the_same_settings_are_uploaded_once() -> None:
    there = uploaded(2, "default")
    assert upload.plan(settings(), there) == []
    (request,) = upload.plan(settings(), there, again=True)
    assert request.parent_model == MODEL
    assert request.model.labels[DIGEST] == upload.digest(settings())


def test_settings_of_an_older_version_are_uploaded_again() -> None:
    older = uploaded(1).versions
    newer = version(2, "default", labels={"made-with": "marvec", DIGEST: "0" * 16})
    (request,) = upload.plan(settings(), Found((*older, newer)))
    assert request.parent_model == MODEL


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"image": IMAGE.replace("1.0", "1.1")}},
        {"model": {"served_as": "other"}},
        {"model": {"artifact_uri": "gs://bucket/archives"}},
        {"model": {"description": "two"}},
        {"model": {"version_aliases": ["canary"]}},
        {"model": {"labels": {"team": "search"}}},
        {"model": {"environment": {"MARVEC_WORKERS": "2"}}},
        {"model": {"schema_folder": "gs://bucket/schemas"}},
        {"model": {"shared_memory_mb": 64}},
        {"model": {"startup_timeout_s": 601}},
        {"model": {"deployment_timeout_s": 1801}},
        {"kms_key": KEY},
    ],
)
def test_the_digest_is_of_all_that_is_uploaded(changes: dict[str, object]) -> None:
    assert upload.digest(settings(**changes)) != upload.digest(settings())
    assert len(upload.plan(settings(**changes), uploaded(1))) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"endpoint": {"name": "other", "dedicated": True}},
        {"deployment": {"machine": "g2-standard-4", "min_replicas": 2}},
        {"batch": {"replicas": 4}},
        {"api_transport": "rest"},
    ],
)
def test_the_digest_is_of_nothing_else(changes: dict[str, object]) -> None:
    assert upload.digest(settings(**changes)) == upload.digest(settings())


def test_a_classifiers_schemas_are_its_own() -> None:
    wanted = settings(model={"task": "classification", "schema_folder": "gs://bucket/schemas"})
    (request,) = upload.plan(wanted, Found())
    told = request.model.predict_schemata
    places = schemas.uris("gs://bucket/schemas", "classification")
    assert (told.instance_schema_uri, told.parameters_schema_uri, told.prediction_schema_uri) == places
    assert upload.digest(wanted) != upload.digest(settings(model={"schema_folder": "gs://bucket/schemas"}))


def test_without_schemas_the_task_is_not_told() -> None:
    assert upload.digest(settings(model={"task": "classification"})) == upload.digest(settings())


def test_the_digest_stays_as_it_is() -> None:
    """Versions carry it: another digest of the same settings, from whatever library, would be another upload."""
    assert upload.digest(settings()) == "bb905deac034bc81"
    assert upload.digest(settings(model={"schema_folder": "gs://bucket/schemas"})) == "cd0da0684fa1ce0c"
