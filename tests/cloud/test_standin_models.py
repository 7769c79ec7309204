"""What the stand-in refuses of models, containers and endpoints, and how it lists them.

These are tests of a stand-in: they show what the other tests of this folder rest on, not what Google does.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from google.api_core.exceptions import (
    Conflict,
)
from google.cloud import aiplatform_v1
from google.protobuf.field_mask_pb2 import FieldMask

from tests.cloud.client import ANSWERED, PARENT, Client, container, refusal, refused
from tests.cloud.images import REGISTRY, STUB
from tests.cloud.standin.stand_in import StandIn


@pytest.fixture
def client(stub_standin: StandIn) -> Iterator[Client]:
    with Client(stub_standin) as made:
        yield made


def post(standin: StandIn, path: str, body: object) -> requests.Response:
    """Send JSON that no client of Google's would send."""
    url = f"{standin.address}/v1/{PARENT}/{path}"
    return requests.post(url, json=body, headers={"Authorization": "Bearer a-token"}, timeout=30)


def test_a_field_that_the_messages_do_not_know_is_refused(stub_standin: StandIn) -> None:
    model = {"displayName": "demo", "containerSpec": {"imageUri": STUB, "predictRout": "/predict"}}
    answer = post(stub_standin, "models:upload", {"modelId": "demo", "model": model})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["message"].startswith("Invalid JSON payload received. ")
    assert 'has no field named "predictRout"' in error["message"]
    assert [(call.method, call.outcome) for call in stub_standin.calls.all()] == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"labels": {"Upper": "x"}}, "model.labels key: 'Upper' does not match [a-z][a-z0-9_-]{0,62}"),
        ({"labels": {"key": "A b"}}, "model.labels[key]: 'A b' does not match [a-z0-9_-]{0,63}"),
        ({"version_aliases": ["v1-"]}, "version_aliases: 'v1-' does not match [a-z][a-zA-Z0-9-]{0,126}[a-z0-9]"),
        ({"artifact_uri": "/models"}, "model.artifact_uri: '/models': expected gs://BUCKET/FOLDER"),
        ({"version_id": "7"}, "model.version_id: output only"),
    ],
)
def test_what_a_model_may_not_hold(client: Client, fields: dict[str, object], told: str) -> None:
    assert refused(client.upload, **fields) == told


@pytest.mark.parametrize("name", ["9lives", "-a", "Upper", "a" * 64, "dot.ted"])
def test_ids_that_are_refused(client: Client, name: str) -> None:
    assert refused(client.upload, name) == f"model_id: {name!r} does not match [a-z_][a-z0-9_-]{{0,62}}"
    assert refused(client.create, name).startswith(f"endpoint_id: {name!r} does not match ")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"predict_route": "predict"}, "model.container_spec.predict_route: 'predict' does not start with '/'"),
        (
            {"env": [{"name": "AIP_MODE", "value": "x"}]},
            "model.container_spec.env: AIP_MODE: names that begin with AIP_ are Vertex AI's own",
        ),
        (
            {"deployment_timeout": {"seconds": 7201}},
            "model.container_spec.deployment_timeout: 7201 s, and the limit is 2 hours",
        ),
        (
            {"startup_probe": {}},
            "model.container_spec.startup_probe: expected one of exec, httpGet, grpc and tcpSocket",
        ),
        (
            {"health_probe": {"exec_": {"command": ["true"]}, "period_seconds": 30, "timeout_seconds": 20}},
            "model.container_spec.health_probe: timeout_seconds 20 and period_seconds 30: the documentation says that "
            "a timeout must be at least the period and, in another place, at most: make them equal",
        ),
        (
            {"health_probe": {"exec_": {"command": ["true"]}, "timeout_seconds": 20}},
            "model.container_spec.health_probe: timeout_seconds 20 and period_seconds 10: the documentation says that "
            "a timeout must be at least the period and, in another place, at most: make them equal",
        ),
    ],
)
def test_what_a_container_may_not_hold(client: Client, fields: dict[str, object], told: str) -> None:
    assert refused(client.upload, spec=container(STUB, **fields)) == told


def test_an_image_of_another_region_or_of_none(client: Client) -> None:
    image = "europe-west4-docker.pkg.dev/demo-project/models/stub:1"
    assert refused(client.upload, spec=container(image)) == (
        f"model.container_spec.image_uri: {image} is not in us-central1, where the model is"
    )
    assert refused(client.upload, spec=container("stub:1")) == (
        "model.container_spec.image_uri: 'stub:1' names no image of Artifact Registry"
    )
    client.upload(spec=container(f"{REGISTRY}/absent:1"))
    client.create()
    assert refused(client.deploy) == (
        f"The image {REGISTRY}/absent:1 cannot be pulled: it does not exist, or access is denied."
    )


def test_names_are_answered_with_the_projects_number(client: Client) -> None:
    assert client.upload().model == f"{ANSWERED}/models/demo"
    assert client.create().name == f"{ANSWERED}/endpoints/home"


def test_an_id_that_is_taken(client: Client) -> None:
    client.create()
    with pytest.raises(Conflict) as caught:
        client.create()
    assert caught.value.code == 409
    assert refusal(caught.value) == f"Endpoint {ANSWERED}/endpoints/home already exists."
    client.upload()
    with pytest.raises(Conflict) as caught:
        client.upload()
    assert refusal(caught.value) == f"Model {ANSWERED}/models/demo already exists."


def test_versions_aliases_and_labels(client: Client) -> None:
    client.upload(labels={"team": "search", "run": "a"}, version_aliases=["stable"])
    assert client.upload_version(labels={"run": "b"}, version_aliases=["canary"]).model_version_id == "2"
    first, second = client.models.list_model_versions(name=f"{PARENT}/models/demo")
    assert [first.name, second.name] == [f"{ANSWERED}/models/demo@1", f"{ANSWERED}/models/demo@2"]
    assert [list(first.version_aliases), list(second.version_aliases)] == [["default", "stable"], ["canary"]]
    assert dict(second.labels) == {"team": "search", "run": "b"}
    assert (client.model().version_id, client.model("demo@canary").version_id) == ("1", "2")
    # default and stable move, so that each stays unique.
    client.upload_version(version_aliases=["default", "stable"])
    assert (client.model().version_id, client.model("demo@stable").version_id) == ("3", "3")
    merged = client.models.merge_version_aliases(name=f"{PARENT}/models/demo@2", version_aliases=["-canary", "default"])
    assert list(merged.version_aliases) == ["default"]
    assert list(client.model("demo@3").version_aliases) == ["stable"]


def test_lists_are_filtered(client: Client) -> None:
    client.upload("one", labels={"team": "a"})
    client.upload("two", labels={"team": "b"})
    for text, names in [
        ('display_name="two"', ["two"]),
        ("labels.team=a", ["one"]),
        ("labels.team:* AND displayName!=one", ["two"]),
        ("model=one", ["one"]),
    ]:
        found = client.models.list_models(request={"parent": PARENT, "filter": text})
        assert [model.display_name for model in found] == names
    assert refused(client.models.list_models, request={"parent": PARENT, "filter": "colour=red"}) == (
        "Invalid filter: unknown field 'colour'"
    )


def test_pages(client: Client) -> None:
    for name in ("one", "two", "three"):
        client.create(name)
    request = {"parent": PARENT, "page_size": 2, "order_by": "display_name desc"}
    pages = list(client.endpoints.list_endpoints(request=request).pages)
    assert [[one.display_name for one in page.endpoints] for page in pages] == [["two", "three"], ["one"]]


def test_what_can_be_changed_of_a_model_and_of_a_version(client: Client) -> None:
    client.upload(description="first")
    name = f"{PARENT}/models/demo"

    def change(of: str, *paths: str, **fields: object) -> aiplatform_v1.Model:
        model = aiplatform_v1.Model(name=of, **fields)
        return client.models.update_model(model=model, update_mask=FieldMask(paths=paths))

    changed = change(name, "description", "labels", description="second", labels={"team": "b"})
    assert (changed.description, dict(changed.labels)) == ("second", {"team": "b"})
    assert change(f"{name}@1", "version_description", version_description="of 1").version_description == "of 1"
    assert refused(change, f"{name}@1", "display_name", display_name="x") == (
        f"update_mask: ['display_name'] cannot be updated of {name}@1"
    )
    assert refused(change, name) == "update_mask: required"
    (version,) = client.models.list_model_versions(name=name)
    assert (version.description, version.version_description) == ("second", "of 1")


def test_an_endpoints_words_change_at_once(client: Client) -> None:
    endpoint = client.create(labels={"team": "a"})
    endpoint.labels, endpoint.description = {"team": "b"}, "new"
    mask = FieldMask(paths=["labels"])
    assert dict(client.endpoints.update_endpoint(endpoint=endpoint, update_mask=mask).labels) == {"team": "b"}
    assert client.endpoint().description == ""
    assert refused(client.endpoints.update_endpoint, endpoint=endpoint, update_mask=FieldMask(paths=["name"])) == (
        "update_mask: ['name']: expected some of ['description', 'display_name', 'labels', "
        "'predict_request_response_logging_config', 'traffic_split']"
    )
