"""Google's API as the commands use it: one way to send a request, one to follow what it began.

What is sent is always a message of Google's own client library, so what `--dry-run` prints is what would be sent.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import requests
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.api_core.retry import Retry
from google.cloud import aiplatform_v1
from google.longrunning import operations_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proto import Message

    from vertex.settings import VertexSettings

# What gRPC says, as if the service were away, when no token can be had with this login.
NO_TOKEN = "Getting metadata from plugin failed"
# A read is asked again for this long.
_READ_RETRY_S = 60.0
_TIMEOUT_S = 60.0
# What may go well a moment later; over REST a cut connection is not one of Google's own exceptions, and those have the
# kinds of HTTP, of which gRPC's are kinds again.
_PASSING = (
    exceptions.ServiceUnavailable,
    exceptions.GatewayTimeout,
    exceptions.BadGateway,
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)


def passing(err: BaseException) -> bool:
    """Whether the same call may go well a moment later.

    Args:
        err: What a client of Google's raised.
    """
    return isinstance(err, _PASSING) and NO_TOKEN not in str(err)


# What a read may meet besides; a change that met it is looked for, not sent again.
_PASSING_READS = (exceptions.TooManyRequests, exceptions.InternalServerError, exceptions.Unknown)
READ = Retry(predicate=lambda err: passing(err) or isinstance(err, _PASSING_READS), timeout=_READ_RETRY_S)


class _Way(NamedTuple):
    service: str
    method: str
    begins_operation: bool


_WAYS = {
    aiplatform_v1.UploadModelRequest: _Way("models", "upload_model", True),
    aiplatform_v1.DeleteModelRequest: _Way("models", "delete_model", True),
    aiplatform_v1.CreateEndpointRequest: _Way("endpoints", "create_endpoint", True),
    aiplatform_v1.UpdateEndpointRequest: _Way("endpoints", "update_endpoint", False),
    aiplatform_v1.DeployModelRequest: _Way("endpoints", "deploy_model", True),
    aiplatform_v1.MutateDeployedModelRequest: _Way("endpoints", "mutate_deployed_model", True),
    aiplatform_v1.UndeployModelRequest: _Way("endpoints", "undeploy_model", True),
    aiplatform_v1.DeleteEndpointRequest: _Way("endpoints", "delete_endpoint", True),
}


class Api:
    """Google's clients for one region.

    Args:
        settings: Project, region and transport.
    """

    def __init__(self, settings: VertexSettings) -> None:
        self._host = f"{settings.region}-aiplatform.googleapis.com"
        self._transport = settings.api_transport

    @cached_property
    def models(self) -> aiplatform_v1.ModelServiceClient:
        """Models and their versions."""
        return aiplatform_v1.ModelServiceClient(client_options=self._options(), transport=self._transport)

    @cached_property
    def endpoints(self) -> aiplatform_v1.EndpointServiceClient:
        """Endpoints and what is deployed on them."""
        return aiplatform_v1.EndpointServiceClient(client_options=self._options(), transport=self._transport)

    @cached_property
    def jobs(self) -> aiplatform_v1.JobServiceClient:
        """Batch predictions."""
        return aiplatform_v1.JobServiceClient(client_options=self._options(), transport=self._transport)

    def send(self, request: Message) -> str | None:
        """Send a request that changes something. It is never sent twice: whether it was heard cannot be known.

        Args:
            request: One of Google's own request messages.

        Returns:
            The name of the operation that it began; None when all is done.
        """
        way = _WAYS[type(request)]
        answer = getattr(getattr(self, way.service), way.method)(request=request, retry=None, timeout=_TIMEOUT_S)
        return str(answer.operation.name) if way.begins_operation else None

    def model_versions(self, name: str) -> tuple[aiplatform_v1.Model, ...]:
        """Return a model's versions, oldest first; none when there is no such model."""
        try:
            found = self.models.list_model_versions(name=name, retry=READ, timeout=_TIMEOUT_S)
            return tuple(sorted(found, key=lambda version: int(version.version_id)))
        except exceptions.NotFound:
            return ()

    def endpoint(self, name: str) -> aiplatform_v1.Endpoint | None:
        """Return an endpoint with what is deployed on it; None when there is no such endpoint."""
        try:
            return self.endpoints.get_endpoint(name=name, retry=READ, timeout=_TIMEOUT_S)
        except exceptions.NotFound:
            return None

    def batch_jobs(self, location: str, label: str, value: str) -> tuple[aiplatform_v1.BatchPredictionJob, ...]:
        """Return the batch predictions that carry a label."""
        request = aiplatform_v1.ListBatchPredictionJobsRequest(parent=location, filter=f'labels.{label}="{value}"')
        return tuple(self.jobs.list_batch_prediction_jobs(request=request, retry=READ, timeout=_TIMEOUT_S))

    def create_batch_job(self, request: aiplatform_v1.CreateBatchPredictionJobRequest) -> str:
        """Begin a batch prediction and return its name. Like `send`, it never sends twice."""
        return str(self.jobs.create_batch_prediction_job(request=request, retry=None, timeout=_TIMEOUT_S).name)

    def batch_job(self, name: str) -> aiplatform_v1.BatchPredictionJob:
        """Return a batch prediction as it stands."""
        return self.jobs.get_batch_prediction_job(name=name, retry=READ, timeout=_TIMEOUT_S)

    def running(self, name: str) -> Iterator[operations_pb2.Operation]:
        """Yield the operations on a model or an endpoint that are not done; the resource may not exist yet."""
        request = operations_pb2.ListOperationsRequest(name=name)
        try:
            while True:
                answer = self.models.list_operations(request=request, retry=READ, timeout=_TIMEOUT_S)
                yield from (operation for operation in answer.operations if not operation.done)
                if not answer.next_page_token:
                    return
                request.page_token = answer.next_page_token
        except exceptions.NotFound:
            return

    def operation(self, name: str) -> operations_pb2.Operation:
        """Return an operation as it stands."""
        request = operations_pb2.GetOperationRequest(name=name)
        return self.models.get_operation(request=request, retry=READ, timeout=_TIMEOUT_S)

    def _options(self) -> ClientOptions:
        return ClientOptions(api_endpoint=self._host)
