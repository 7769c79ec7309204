"""Requests and operations in a few words, for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import (
    CreateBatchPredictionJobRequest,
    CreateEndpointRequest,
    DeleteEndpointRequest,
    DeleteModelRequest,
    DeployModelRequest,
    MutateDeployedModelRequest,
    UndeployModelRequest,
    UpdateEndpointRequest,
    UploadModelRequest,
)

from vertex.names import last

if TYPE_CHECKING:
    from google.longrunning import operations_pb2
    from proto import Message

_TITLES: Mapping[type[Message], Callable[[Message], str]] = {
    UploadModelRequest: lambda request: f"upload of {request.model.display_name}",
    CreateEndpointRequest: lambda request: f"creation of the endpoint {request.endpoint_id}",
    DeployModelRequest: lambda request: f"deployment of {last(request.deployed_model.model)}",
    MutateDeployedModelRequest: lambda request: f"change of replicas of {request.deployed_model.id}",
    UpdateEndpointRequest: lambda _: "change of traffic",
    UndeployModelRequest: lambda request: f"undeployment of {request.deployed_model_id}",
    DeleteEndpointRequest: lambda request: f"deletion of the endpoint {last(request.name)}",
    DeleteModelRequest: lambda request: f"deletion of the model {last(request.name)}",
    CreateBatchPredictionJobRequest: lambda request: f"batch prediction of {last(request.batch_prediction_job.model)}",
}


_KINDS: Mapping[str, str] = {
    "UploadModel": "upload",
    "CreateEndpoint": "creation of the endpoint",
    "DeployModel": "deployment",
    "MutateDeployedModel": "change of replicas",
    "UndeployModel": "undeployment",
    "Delete": "deletion",
}


def title(request: Message) -> str:
    """Return what a request does.

    Args:
        request: One of those that the commands send.
    """
    return _TITLES[type(request)](request)


def operation_title(operation: operations_pb2.Operation) -> str:
    """Return what an operation that was found does, from its metadata's type.

    Args:
        operation: As Google lists it.
    """
    kind = _KINDS.get(operation.metadata.type_url.rsplit(".", 1)[-1].removesuffix("OperationMetadata"), "an operation")
    return f"{kind} (begun earlier)"
