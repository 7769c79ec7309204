"""A stand-in for `vertex.api.Api`, at our own seam: what exists changes as requests ask, when their operation is done.

What Google's clients do with a request is not tried here; tests/cloud does, with the real clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from google.cloud import aiplatform_v1
from google.longrunning.operations_pb2 import Operation
from google.rpc.status_pb2 import Status

from tests.unit.vertex_samples import ENDPOINT, MODEL, deployed, endpoint, version
from vertex.api import Api
from vertex.found import Found

if TYPE_CHECKING:
    from proto import Message


class Trouble(NamedTuple):
    """What happens to a request.

    Attributes:
        error: Raised by `send`, with the message `no`.
        heard: Whether Google began it all the same.
    """

    error: type[Exception]
    heard: bool


class Google(Api):
    """What exists, and what is going on.

    Args:
        there: What exists at first.

    Attributes:
        sent: All requests, in order, those that met trouble too.
        troubles: For the next requests; None for one that goes well.
        looks: How often an operation is looked at until it is done.
        failing: How an operation ends that fails, by the request's type.
    """

    def __init__(self, there: Found | None = None) -> None:
        there = Found() if there is None else there
        self.versions = list(there.versions)
        self.served = there.endpoint
        self.sent: list[Message] = []
        self.troubles: list[Trouble | None] = []
        self.looks = 2
        self.failing: dict[type[Message], Status] = {}
        self._begun: dict[str, Message] = {}
        self._looked: dict[str, int] = {}

    def send(self, request: Message) -> str | None:
        """Begin what a request asks, unless trouble comes first."""
        self.sent.append(request)
        trouble = self.troubles.pop(0) if self.troubles else None
        name = self.begin(request) if trouble is None or trouble.heard else None
        if trouble is not None:
            raise trouble.error("no")
        return name

    def begin(self, request: Message) -> str | None:
        """Begin what a request asks; returns the operation's name. A change of traffic is done at once."""
        if isinstance(request, aiplatform_v1.UpdateEndpointRequest):
            self._change_traffic(request)
            return None
        of_model = (aiplatform_v1.UploadModelRequest, aiplatform_v1.DeleteModelRequest)
        owner = MODEL if isinstance(request, of_model) else ENDPOINT
        name = f"{owner}/operations/{len(self._begun) + 1}"
        self._begun[name], self._looked[name] = request, 0
        return name

    def running(self, name: str) -> Iterator[Operation]:
        """Yield what is begun and not done."""
        for one in list(self._begun):
            if one.startswith(f"{name}/") and self._looked[one] <= self.looks:
                operation = Operation(name=one)
                operation.metadata.type_url = f"type.googleapis.com/google.{_kind(self._begun[one])}OperationMetadata"
                yield operation

    def operation(self, name: str) -> Operation:
        """Look at an operation; the last look ends it."""
        self._looked[name] += 1
        if self._looked[name] <= self.looks:
            return Operation(name=name)
        request = self._begun[name]
        if type(request) in self.failing:
            return Operation(name=name, done=True, error=self.failing[type(request)])
        if self._looked[name] == self.looks + 1:
            _EFFECTS[type(request)](self, request)
        return Operation(name=name, done=True)

    def model_versions(self, name: str) -> tuple[aiplatform_v1.Model, ...]:
        """Return the versions, if it is the model."""
        return tuple(self.versions) if name == MODEL else ()

    def endpoint(self, name: str) -> aiplatform_v1.Endpoint | None:
        """Return the endpoint as it is now, if it is there."""
        return aiplatform_v1.Endpoint(self.served) if self.served is not None and name == ENDPOINT else None

    def _change_traffic(self, request: aiplatform_v1.UpdateEndpointRequest) -> None:
        assert self.served is not None
        self.served.traffic_split = request.endpoint.traffic_split

    def _upload(self, request: aiplatform_v1.UploadModelRequest) -> None:
        self.versions.append(version(len(self.versions) + 1, labels=request.model.labels))

    def _create(self, request: aiplatform_v1.CreateEndpointRequest) -> None:
        self.served = endpoint(labels=request.endpoint.labels)

    def _deploy(self, request: aiplatform_v1.DeployModelRequest) -> None:
        assert self.served is not None
        wanted = request.deployed_model
        number = int(wanted.model.rsplit("@", 1)[1])
        one = deployed(f"{number}{number}", number, machine=wanted.dedicated_resources.machine_spec.machine_type)
        self.served.deployed_models.append(one)
        self.served.traffic_split = {
            one.id if name == "0" else name: share for name, share in request.traffic_split.items()
        }

    def _undeploy(self, request: aiplatform_v1.UndeployModelRequest) -> None:
        assert self.served is not None
        stays = [one for one in self.served.deployed_models if one.id != request.deployed_model_id]
        self.served.deployed_models = stays
        self.served.traffic_split = dict(request.traffic_split) or self.served.traffic_split

    def _delete_endpoint(self, _: aiplatform_v1.DeleteEndpointRequest) -> None:
        self.served = None

    def _delete_model(self, _: aiplatform_v1.DeleteModelRequest) -> None:
        self.versions.clear()


_EFFECTS: dict[type[Message], Callable[[Google, Message], None]] = {
    aiplatform_v1.UploadModelRequest: Google._upload,
    aiplatform_v1.CreateEndpointRequest: Google._create,
    aiplatform_v1.DeployModelRequest: Google._deploy,
    aiplatform_v1.UndeployModelRequest: Google._undeploy,
    aiplatform_v1.DeleteEndpointRequest: Google._delete_endpoint,
    aiplatform_v1.DeleteModelRequest: Google._delete_model,
}


def _kind(request: Message) -> str:
    return type(request).__name__.removesuffix("Request")
