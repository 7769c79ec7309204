"""The stand-in's deployments, with real processes: what fails, what lasts, who gets traffic, the end's order.

These are tests of a stand-in: they show what the other tests of this folder rest on, not what Google does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from google.api_core.exceptions import (
    FailedPrecondition,
    GoogleAPICallError,
)
from google.cloud import aiplatform_v1
from google.longrunning import operations_pb2
from google.protobuf.field_mask_pb2 import FieldMask

from tests.cloud.client import ANSWERED, PARENT, Client, container, probe, refused, result
from tests.cloud.conftest import OpenStandIn
from tests.cloud.images import BROKEN, FAILING, OTHER_STUB, SLOW, TINY
from tests.cloud.standin.images import marvec_image
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
    result(client.models.delete_model_version(name=f"{model}@2"))
    assert refused(client.models.delete_model_version, name=f"{model}@1") == (
        f"{model}@1 is the only version: delete the model instead."
    )
    result(client.endpoints.delete_endpoint(name=endpoint))
    result(client.models.delete_model(name=model))
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
    result(client.models.delete_model(name=f"{PARENT}/models/demo"))


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
    deployed = result(begun).deployed_model
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
    result(begun)
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
        result(begun)
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


def test_our_launcher_refuses_routes_that_lead_nowhere(open_standin: OpenStandIn, tiny_store: Path) -> None:
    """A model that is uploaded with another route fails when it is deployed, and the container's log says why."""
    startup = probe("python", "/home/model-server/serving/ready.py", "--wait", "55", seconds=60)
    with open_standin({TINY: marvec_image(tiny_store)}) as standin, Client(standin) as client:
        client.upload(spec=container(TINY, predict_route="/predictions/another", startup_probe=startup))
        client.create()
        began = time.monotonic()
        assert refused(client.deploy) == NEVER_READY
        assert time.monotonic() - began < 30


def test_replicas_change_and_the_machine_does_not(client: Client) -> None:
    client.upload()
    client.create()
    deployed = client.deploy()
    name = f"{PARENT}/endpoints/home"
    deployed.dedicated_resources.min_replica_count, deployed.dedicated_resources.max_replica_count = 2, 4

    def mutate(*paths: str) -> object:
        mask = FieldMask(paths=[f"dedicated_resources.{path}" for path in paths])
        request = aiplatform_v1.MutateDeployedModelRequest(endpoint=name, deployed_model=deployed, update_mask=mask)
        return result(client.endpoints.mutate_deployed_model(request))

    assert refused(mutate, "min_replica_count") == (
        "deployed_model.dedicated_resources.max_replica_count: 1 is less than min_replica_count 2"
    )
    assert refused(mutate, "machine_spec").startswith("update_mask: ['dedicated_resources.machine_spec']: expected ")
    mutate("min_replica_count", "max_replica_count")
    (one,) = client.endpoint().deployed_models
    resources = one.dedicated_resources
    assert (resources.min_replica_count, resources.max_replica_count, one.status.available_replica_count) == (2, 4, 2)
