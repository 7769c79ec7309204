"""The stand-in itself: what it refuses, in which words, and that its operations and containers are real.

These are tests of a stand-in: they show what the other tests of this folder rest on, not what Google does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
import requests
from google.api_core.exceptions import (
    Conflict,
    FailedPrecondition,
    Forbidden,
    GoogleAPICallError,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
)
from google.auth.exceptions import RefreshError
from google.cloud import aiplatform_v1
from google.longrunning import operations_pb2
from google.protobuf.field_mask_pb2 import FieldMask

from tests.cloud.client import ANSWERED, DEADLINE_S, PARENT, Client, container, probe, refusal
from tests.cloud.images import BROKEN, FAILING, OTHER_STUB, REGISTRY, SLOW, STUB
from tests.cloud.standin.errors import Code
from tests.cloud.standin.stand_in import StandIn

NEVER_READY = (
    "Model server never became ready. Please validate that your model file or container configuration are valid. Model "
    "server logs can be found at https://console.cloud.google.com/logs/viewer?project=123456789012&resource="
    "aiplatform.googleapis.com%2FEndpoint&advancedFilter=resource.labels.endpoint_id%3D%22home%22"
)


@pytest.fixture
def client(stub_standin: StandIn) -> Iterator[Client]:
    with Client(stub_standin) as made:
        yield made


def refused(call: object, *arguments: object, **named: object) -> str:
    """Return what a call that must be refused says."""
    with pytest.raises(GoogleAPICallError) as caught:
        call(*arguments, **named)  # type: ignore[operator]
    return refusal(caught.value)


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


def test_without_a_bearer_token_nothing_is_answered(stub_standin: StandIn) -> None:
    answer = requests.get(f"{stub_standin.address}/v1/{PARENT}/models", timeout=30)
    assert answer.status_code == 401
    assert answer.json()["error"]["status"] == "UNAUTHENTICATED"


def test_a_token_that_is_refused(stub_standin: StandIn, client: Client) -> None:
    stub_standin.trouble.refuse_tokens = True
    # The client takes its token for outdated, and has no way to a new one.
    with pytest.raises(RefreshError):
        client.models.list_models(parent=PARENT)
    assert [call.outcome for call in stub_standin.calls.all()] == ["UNAUTHENTICATED"]
    answer = requests.post(f"{stub_standin.address}/token", data={}, timeout=30)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


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


def test_another_project_and_an_unknown_region(client: Client) -> None:
    with pytest.raises(Forbidden):
        client.models.list_models(parent="projects/somebody-elses/locations/us-central1")
    with pytest.raises(NotFound):
        client.models.list_models(parent="projects/demo-project/locations/mars-north1")


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


@pytest.mark.parametrize(
    ("split", "told"),
    [
        ({"0": 90}, "traffic_split: the values must add up to 100, and these add up to 90"),
        ({"0": 50, "123": 50}, "traffic_split: no deployed model has the id 123"),
        ({"0": 150, "1": -50}, "traffic_split: no deployed model has the id 1"),
    ],
)
def test_traffic_that_is_refused(client: Client, split: dict[str, int], told: str) -> None:
    client.upload()
    client.create()
    assert refused(client.begin_deploy, split=split) == told


def test_replicas_and_machines_that_are_refused(client: Client) -> None:
    client.upload()
    client.create()
    assert refused(client.begin_deploy, replicas=0) == (
        "deployed_model.dedicated_resources.min_replica_count: 0: must be greater than or equal to 1"
    )
    assert refused(client.begin_deploy, id="12345678901") == (
        "deployed_model.id: '12345678901' does not match [1-9][0-9]{0,9}"
    )
    assert refused(client.begin_deploy, service_account="me@example.com").startswith("deployed_model.service_account: ")


def test_traffic_is_split_as_told(client: Client) -> None:
    client.upload()
    client.upload_version(image=OTHER_STUB)
    client.create()
    one = client.deploy("demo@1", replicas=2)
    two = client.deploy("demo@2", split={one.id: 75, "0": 25})
    assert dict(client.endpoint().traffic_split) == {one.id: 75, two.id: 25}
    counts = {one.id: 0, two.id: 0}
    for _ in range(100):
        answer = client.predict(["x"])
        counts[answer.deployed_model_id] += 1
        assert answer.predictions[0]["version"] == {one.id: "one", two.id: "two"}[answer.deployed_model_id]
    assert counts == {one.id: 75, two.id: 25}
    assert (answer.model, answer.model_display_name) == (f"{ANSWERED}/models/demo", "demo")
    replicas = [deployed.status.available_replica_count for deployed in client.endpoint().deployed_models]
    assert replicas == [2, 1]
    # Nothing for the one without a share, and the other way round.
    mask = FieldMask(paths=["traffic_split"])
    moved = aiplatform_v1.Endpoint(name=client.endpoint().name, traffic_split={two.id: 100})
    client.endpoints.update_endpoint(endpoint=moved, update_mask=mask)
    assert {client.predict(["x"]).deployed_model_id for _ in range(20)} == {two.id}


def test_numbers_arrive_as_doubles(client: Client) -> None:
    client.upload()
    client.create()
    client.deploy()
    (answer,) = client.predict([{"input_ids": [101, 102]}], parameters={"outputDimensionality": 256}).predictions
    assert answer["instance"] == {"input_ids": [101.0, 102.0]}
    assert repr(answer["parameters"]["outputDimensionality"]) == "256.0"


def test_the_order_of_the_end(client: Client) -> None:
    client.upload()
    client.upload_version(image=OTHER_STUB)
    client.create()
    one = client.deploy("demo@1")
    two = client.deploy("demo@2", split={one.id: 50, "0": 50})
    model, endpoint = f"{ANSWERED}/models/demo", f"{ANSWERED}/endpoints/home"
    assert refused(client.models.delete_model, name=model) == (
        f'The Model "{model}" is deployed or being deployed at the following Endpoint(s): {endpoint}.'
    )
    assert refused(client.endpoints.delete_endpoint, name=endpoint) == (
        f"Endpoint {endpoint} has deployed or being-deployed DeployedModel(s): {one.id}, {two.id}. Undeploy them first."
    )
    assert refused(client.undeploy, one.id) == (
        f"DeployedModel {one.id} has 50 % of the traffic: give a traffic_split without it."
    )
    client.undeploy(one.id, split={two.id: 100})
    client.undeploy(two.id)
    assert dict(client.endpoint().traffic_split) == {}
    assert refused(client.models.delete_model_version, name=f"{model}@1") == (
        f"{model}@1 is the default version: move the alias to another one first."
    )
    client.models.delete_model_version(name=f"{model}@2").result(timeout=DEADLINE_S)
    assert refused(client.models.delete_model_version, name=f"{model}@1") == (
        f"{model}@1 is the only version: delete the model instead."
    )
    client.endpoints.delete_endpoint(name=endpoint).result(timeout=DEADLINE_S)
    client.models.delete_model(name=model).result(timeout=DEADLINE_S)
    assert list(client.models.list_models(parent=PARENT)) == []


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(container(BROKEN), id="ends"),
        pytest.param(container(startup_probe=probe("false", failure_threshold=2)), id="probe-fails"),
        pytest.param(container(startup_probe=probe("sleep", "30", failure_threshold=1)), id="probe-hangs"),
        pytest.param(container(startup_probe=probe("no-such-command")), id="no-such-probe"),
        pytest.param(
            container(env=[{"name": "STUB_READY_AFTER_S", "value": "99"}], deployment_timeout={"seconds": 2}),
            id="never-healthy",
        ),
        pytest.param(container(command=["no-such-command"]), id="no-such-command"),
    ],
)
def test_a_container_that_does_not_come_up(client: Client, spec: aiplatform_v1.ModelContainerSpec) -> None:
    client.upload(spec=spec)
    client.create()
    with pytest.raises(FailedPrecondition) as caught:
        client.deploy()
    assert caught.value.message == NEVER_READY
    assert list(client.endpoint().deployed_models) == []
    client.models.delete_model(name=f"{PARENT}/models/demo").result(timeout=DEADLINE_S)


def test_a_deployment_lasts_until_the_probe_is_content(client: Client, stub_standin: StandIn) -> None:
    asks = (
        "import os, sys, urllib.request as u; "
        "u.urlopen('http://127.0.0.1:' + os.environ['AIP_HTTP_PORT'] + os.environ['AIP_HEALTH_ROUTE'])"
    )
    client.upload(spec=container(SLOW, startup_probe=probe("python", "-c", asks, seconds=1, failure_threshold=20)))
    client.create()
    began = time.monotonic()
    begun = client.begin_deploy(split={"0": 100})
    assert list(client.endpoint().deployed_models) == []
    assert refused(client.begin_deploy).startswith(
        f'There are other operations running on the Endpoint "{ANSWERED}/endpoints/home". Operation(s) are: {ANSWERED}'
    )
    assert refused(client.models.delete_model, name=f"{PARENT}/models/demo").startswith("The Model ")
    deployed = begun.result(timeout=DEADLINE_S).deployed_model
    assert time.monotonic() - began > 2.0
    assert [one.id for one in client.endpoint().deployed_models] == [deployed.id]


def test_operations_are_listed_below_their_parent(client: Client) -> None:
    client.upload(spec=container(SLOW))
    client.create()
    begun = client.begin_deploy(split={"0": 100})
    name = f"{PARENT}/endpoints/home"
    listed = client.endpoints.list_operations(operations_pb2.ListOperationsRequest(name=name)).operations
    assert [bool(re.fullmatch(rf"{ANSWERED}/endpoints/home/operations/\d+", one.name)) for one in listed] == [
        True,
        True,
    ]
    running = client.endpoints.list_operations(operations_pb2.ListOperationsRequest(name=name, filter="done=false"))
    (one,) = running.operations
    assert one.name == begun.operation.name
    assert one.metadata.TypeName() == "google.cloud.aiplatform.v1.DeployModelOperationMetadata"
    begun.result(timeout=DEADLINE_S)
    done = client.endpoints.list_operations(operations_pb2.ListOperationsRequest(name=name, filter="done=true"))
    types = [one.metadata.TypeName().rpartition(".")[2] for one in done.operations]
    assert types == ["DeployModelOperationMetadata", "CreateEndpointOperationMetadata"]
    uploads = client.models.list_operations(operations_pb2.ListOperationsRequest(name=f"{PARENT}/models/demo"))
    assert [one.metadata.TypeName().rpartition(".")[2] for one in uploads.operations] == [
        "UploadModelOperationMetadata"
    ]
    beta = requests.get(
        f"http://{client.endpoints.api_endpoint.removeprefix('http://')}/v1beta1/{one.name}",
        headers={"Authorization": "Bearer a-token"},
        timeout=30,
    )
    assert beta.json()["done"] is True


def test_a_deployment_that_is_cancelled_ends_its_container(client: Client) -> None:
    client.upload(spec=container(SLOW))
    client.create()
    begun = client.begin_deploy(split={"0": 100})
    client.endpoints.cancel_operation(operations_pb2.CancelOperationRequest(name=begun.operation.name))
    with pytest.raises(GoogleAPICallError):
        begun.result(timeout=DEADLINE_S)
    assert list(client.endpoint().deployed_models) == []


def test_what_a_container_is_told(client: Client) -> None:
    tells = (
        "import http.server as h, json, os\n"
        "class Handler(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.end_headers()\n"
        "    def do_POST(self):\n"
        "        told = {k: v for k, v in os.environ.items() if k.startswith(('AIP_', 'MINE'))}\n"
        "        self.rfile.read(int(self.headers['Content-Length'])); self.send_response(200); self.end_headers()\n"
        "        self.wfile.write(json.dumps({'predictions': [told]}).encode())\n"
        "h.HTTPServer(('127.0.0.1', int(os.environ['AIP_HTTP_PORT'])), Handler).serve_forever()\n"
    )
    env = [{"name": "MINE", "value": "$(AIP_ENDPOINT_ID)/$$(AIP_MODE)"}]
    client.upload(spec=container(command=["python"], args=["-c", tells], env=env))
    client.create()
    deployed = client.deploy()
    (told,) = client.predict(["x"]).predictions
    assert re.fullmatch(r"\d+", told.pop("AIP_HTTP_PORT"))
    assert dict(told) == {
        "AIP_MODE": "PREDICTION",
        "AIP_MODE_VERSION": "1.0.0",
        "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
        "AIP_PROJECT_NUMBER": "123456789012",
        "AIP_ENDPOINT_ID": "home",
        "AIP_MODEL_NAME": "home",
        "AIP_DEPLOYED_MODEL_ID": deployed.id,
        "AIP_VERSION_NAME": deployed.id,
        "AIP_MACHINE_TYPE": "n1-standard-2",
        "AIP_STORAGE_URI": "",
        "AIP_PREDICT_ROUTE": "/predict",
        "AIP_HEALTH_ROUTE": "/ping",
        "MINE": "home/$(AIP_MODE)",
    }


def test_a_containers_error_is_told(client: Client) -> None:
    client.upload(spec=container(FAILING))
    client.create()
    client.deploy()
    assert refused(client.predict, ["x"]) == '{"error": "as STUB_STATUS wants it"}'


def test_trouble_and_the_log_of_calls(client: Client, stub_standin: StandIn) -> None:
    trouble = stub_standin.trouble
    trouble.fail("CreateEndpoint", Code.UNAVAILABLE)
    trouble.fail("CreateEndpoint", Code.RESOURCE_EXHAUSTED)
    trouble.fail_operation("CreateEndpoint", Code.INTERNAL)
    trouble.cut("CreateEndpoint")
    with pytest.raises(ServiceUnavailable):
        client.create()
    with pytest.raises(TooManyRequests, match="The following quota metrics exceed quota limits: "):
        client.create()
    with pytest.raises(GoogleAPICallError, match="Internal error encountered"):
        client.create()
    with pytest.raises(requests.ConnectionError):
        client.create()
    assert trouble.left() == 0
    # Only the answer was lost.
    with pytest.raises(Conflict):
        client.create()
    assert [one.display_name for one in client.endpoints.list_endpoints(parent=PARENT)] == ["home"]
    made = stub_standin.calls.of("CreateEndpoint")
    assert [call.outcome for call in made] == ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "OK", "CUT", "ALREADY_EXISTS"]
    assert made[0].body == {"parent": PARENT, "endpoint": {"displayName": "home"}, "endpointId": "home"}
    assert stub_standin.calls.changed() == ["CreateEndpoint"] * 5
    stub_standin.calls.clear()
    client.endpoint()
    assert stub_standin.calls.changes() == []


def test_the_proxy_leads_nowhere_else(stub_standin: StandIn) -> None:
    proxies = {"https": stub_standin.proxy.url}
    with pytest.raises(requests.exceptions.ProxyError):
        requests.get("https://example.com/", proxies=proxies, timeout=30)
    url = f"https://us-central1-aiplatform.googleapis.com/v1/{PARENT}/models"
    kept = {"proxies": proxies, "verify": str(stub_standin.authority), "timeout": 30}
    with requests.Session() as session:
        session.trust_env = False
        assert session.get(url, **kept).status_code == 401  # type: ignore[arg-type]
        wrong = session.get(
            url.replace("//us-central1", "//us-east1"),
            headers={"Authorization": "Bearer a-token"},
            **kept,  # type: ignore[arg-type]
        )
    assert wrong.json()["error"]["message"] == (
        "The location ID us-central1 doesn't match the endpoint us-east1-aiplatform.googleapis.com."
    )


def test_a_reset_forgets_everything(client: Client, stub_standin: StandIn) -> None:
    client.upload()
    client.create()
    client.deploy()
    stub_standin.reset()
    assert stub_standin.calls.all() == []
    assert list(client.models.list_models(parent=PARENT)) == []
    with pytest.raises(NotFound):
        client.predict(["x"])
