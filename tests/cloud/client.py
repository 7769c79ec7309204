"""Google's generated clients in this process, over plain REST, for tests of the stand-in's own rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import pytest
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError
from google.api_core.future.polling import DEFAULT_POLLING
from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1 import DeployedModel, Endpoint, Model, ModelContainerSpec, Port, Probe
from google.oauth2.credentials import Credentials
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Value

from tests.cloud.images import STUB

if TYPE_CHECKING:
    from google.api_core.operation import Operation
    from proto import Message

    from tests.cloud.standin.stand_in import StandIn

PARENT = "projects/demo-project/locations/us-central1"
# In answers the project has its number.
ANSWERED = "projects/123456789012/locations/us-central1"
DEADLINE_S = 60
# A stand-in may be asked more often than Google.
_POLLING = DEFAULT_POLLING.with_delay(initial=0.05, maximum=0.5)


def container(image: str = STUB, **fields: object) -> ModelContainerSpec:
    """Return a container of a stub."""
    usual = {"predict_route": "/predict", "health_route": "/ping", "ports": [Port(container_port=8080)]}
    return ModelContainerSpec(image_uri=image, **{**usual, **fields})


def probe(*command: str, seconds: int = 1, **fields: int) -> Probe:
    """Return an exec probe with a period and a timeout of the same length."""
    return Probe(exec_={"command": command}, period_seconds=seconds, timeout_seconds=seconds, **fields)


def result(future: Operation) -> Message:
    """Wait for an operation, and return what it answers.

    Args:
        future: What a client returned.
    """
    return future.result(timeout=DEADLINE_S, polling=_POLLING)  # type: ignore[no-untyped-call]


def refusal(err: BaseException) -> str:
    """Return what a refused call says, without the URL that REST puts in front."""
    if not isinstance(err, GoogleAPICallError):
        raise err
    return re.sub(r"^[A-Z]+ http\S+: ", "", str(err.message))


def refused(call: Callable[..., object], *arguments: object, **named: object) -> str:
    """Return what a call that must be refused says.

    Args:
        call: One of a client's.
        *arguments: What it is called with.
        **named: The same.
    """
    with pytest.raises(GoogleAPICallError) as caught:
        call(*arguments, **named)
    return refusal(caught.value)


class Client:
    """All services of one stand-in.

    Args:
        standin: Which.
    """

    def __init__(self, standin: StandIn) -> None:
        options = ClientOptions(api_endpoint=standin.address)
        login = Credentials(token="a-token")  # type: ignore[no-untyped-call]
        self.models = aiplatform_v1.ModelServiceClient(credentials=login, client_options=options, transport="rest")
        self.endpoints = aiplatform_v1.EndpointServiceClient(
            credentials=login, client_options=options, transport="rest"
        )
        self.jobs = aiplatform_v1.JobServiceClient(credentials=login, client_options=options, transport="rest")
        self.predictions = aiplatform_v1.PredictionServiceClient(
            credentials=login, client_options=options, transport="rest"
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in (self.models, self.endpoints, self.jobs, self.predictions):
            client.transport.close()

    def upload(self, model_id: str = "demo", *, spec: ModelContainerSpec | None = None, **fields: object) -> Message:
        """Upload a new model, and return what the operation answers."""
        model = Model(display_name=model_id, container_spec=spec or container(), **fields)
        request = aiplatform_v1.UploadModelRequest(parent=PARENT, model_id=model_id, model=model)
        return result(self.models.upload_model(request))

    def upload_version(self, model_id: str = "demo", *, image: str = STUB, **fields: object) -> Message:
        """Upload another version of a model."""
        model = Model(display_name=model_id, container_spec=container(image), **fields)
        request = aiplatform_v1.UploadModelRequest(
            parent=PARENT, parent_model=f"{PARENT}/models/{model_id}", model=model
        )
        return result(self.models.upload_model(request))

    def create(self, endpoint_id: str = "home", **fields: object) -> Endpoint:
        """Make an endpoint."""
        request = aiplatform_v1.CreateEndpointRequest(
            parent=PARENT, endpoint_id=endpoint_id, endpoint=Endpoint(display_name=endpoint_id, **fields)
        )
        return result(self.endpoints.create_endpoint(request))

    def begin_deploy(
        self,
        model: str = "demo",
        *,
        endpoint: str = "home",
        split: Mapping[str, int] | None = None,
        replicas: int = 1,
        **fields: object,
    ) -> Operation:
        """Begin a deployment; returns the operation's future."""
        resources = {"machine_spec": {"machine_type": "n1-standard-2"}, "min_replica_count": replicas}
        deployed = DeployedModel(model=f"{PARENT}/models/{model}", dedicated_resources=resources, **fields)
        request = aiplatform_v1.DeployModelRequest(
            endpoint=f"{PARENT}/endpoints/{endpoint}", deployed_model=deployed, traffic_split=split or {}
        )
        begun: Operation = self.endpoints.deploy_model(request)
        return begun

    def deploy(self, model: str = "demo", **arguments: object) -> DeployedModel:
        """Deploy a model, or one of its versions, with all the traffic unless told otherwise."""
        begun = self.begin_deploy(model, **{"split": {"0": 100}, **arguments})  # type: ignore[arg-type]
        return result(begun).deployed_model

    def undeploy(self, deployed_id: str, *, endpoint: str = "home", split: Mapping[str, int] | None = None) -> Message:
        """End a deployment."""
        request = aiplatform_v1.UndeployModelRequest(
            endpoint=f"{PARENT}/endpoints/{endpoint}", deployed_model_id=deployed_id, traffic_split=split or {}
        )
        return result(self.endpoints.undeploy_model(request))

    def endpoint(self, endpoint_id: str = "home") -> Endpoint:
        """Return an endpoint."""
        return self.endpoints.get_endpoint(name=f"{PARENT}/endpoints/{endpoint_id}")

    def model(self, name: str = "demo") -> Model:
        """Return a model."""
        return self.models.get_model(name=f"{PARENT}/models/{name}")

    def predict(self, instances: list[object], *, endpoint: str = "home", parameters: object = None) -> Message:
        """Ask an endpoint."""
        values = [json_format.ParseDict(instance, Value()) for instance in instances]
        request = aiplatform_v1.PredictRequest(endpoint=f"{PARENT}/endpoints/{endpoint}")
        request.instances.extend(values)
        if parameters is not None:
            request.parameters = json_format.ParseDict(parameters, Value())
        return self.predictions.predict(request)
