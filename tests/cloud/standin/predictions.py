"""PredictionService: what an endpoint is asked, handed to one of its containers.

How the service hands on a container's errors is unverified: here the caller reads the container's body as the message,
with the code that stands for its status, which is what public issue threads show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests
from google.api import httpbody_pb2
from google.cloud import aiplatform_v1
from google.protobuf import json_format
from google.protobuf.message import Message
from proto import Message as SdkMessage

from tests.cloud.standin.deployments import Deployment
from tests.cloud.standin.endpoints import Endpoints
from tests.cloud.standin.errors import ApiError, Code, invalid, of_http, precondition
from tests.cloud.standin.messages import value_to_json

SHARED_BYTES = 1_500_000
DEDICATED_BYTES = 10_000_000
SHARED_TIMEOUT_S = 60
DEDICATED_TIMEOUT_S = 600
_CHUNK_BYTES = 65536


@dataclass(frozen=True)
class Asked:
    """How a prediction was asked for.

    Attributes:
        dedicated: Whether on a dedicated endpoint's own host.
        size: Bytes of the request on its wire.
    """

    dedicated: bool
    size: int


@dataclass(frozen=True)
class RawAnswer:
    """What a container answered to a raw prediction.

    Attributes:
        status: HTTP status.
        content_type: Of the body; empty where the container told none.
        body: In pieces, as they come.
        endpoint_id: Which endpoint was asked.
        deployed_model_id: What of it answered.
    """

    status: int
    content_type: str
    body: Iterator[bytes]
    endpoint_id: str
    deployed_model_id: str

    def headers(self) -> dict[str, str]:
        """Return what is added for the caller."""
        return {
            "X-Vertex-AI-Endpoint-Id": self.endpoint_id,
            "X-Vertex-AI-Deployed-Model-Id": self.deployed_model_id,
        }


class Predictions:
    """Predictions on all endpoints.

    Args:
        endpoints: What can be asked.
    """

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    def predict(self, request: SdkMessage, asked: Asked) -> Message:
        """Ask a container, with every number as a double.

        Args:
            request: A PredictRequest as protobuf's own message.
            asked: How.
        """
        content: dict[str, Any] = {"instances": [value_to_json(one) for one in request.instances]}
        if not content["instances"]:
            raise invalid("instances: must not be empty")
        if request.HasField("parameters"):
            content["parameters"] = value_to_json(request.parameters)
        try:
            body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as err:
            raise invalid(f"instances: {err}") from err
        # Whichever is larger counts: where Google measures is not known.
        deployment = self._chosen(request.endpoint, Asked(asked.dedicated, max(asked.size, len(body))))
        answer = self._post(deployment, body, "application/json", asked)
        if answer.status_code != 200:
            raise of_http(answer.status_code, answer.text or f"status {answer.status_code}")
        return self._parsed(answer, deployment)

    def raw_predict(self, endpoint: str, body: bytes, content_type: str, asked: Asked) -> RawAnswer:
        """Hand a body on untouched, and what comes back as well.

        Args:
            endpoint: Its name.
            body: Any bytes.
            content_type: Of the body; may be empty.
            asked: How.
        """
        deployment = self._chosen(endpoint, Asked(asked.dedicated, max(asked.size, len(body))))
        answer = self._post(deployment, body, content_type, asked, stream=True)

        def pieces() -> Iterator[bytes]:
            try:
                yield from answer.iter_content(_CHUNK_BYTES)
            finally:
                answer.close()

        endpoint_id = self._endpoints.record(endpoint).name.id
        content_type = answer.headers.get("Content-Type", "")
        return RawAnswer(answer.status_code, content_type, pieces(), endpoint_id, deployment.message.id)

    def raw_message(self, request: SdkMessage, asked: Asked) -> RawAnswer:
        """Do the same for a RawPredictRequest or StreamRawPredictRequest."""
        return self.raw_predict(request.endpoint, request.http_body.data, request.http_body.content_type, asked)

    def _chosen(self, endpoint: str, asked: Asked) -> Deployment:
        record = self._endpoints.record(endpoint)
        dedicated = record.message.dedicated_endpoint_enabled
        if dedicated and not asked.dedicated:
            raise precondition(
                "This endpoint is a dedicated endpoint and cannot be accessed through the Vertex AI API. Please access "
                f"the endpoint using its dedicated dns name '{record.message.dedicated_endpoint_dns}'"
            )
        limit = DEDICATED_BYTES if dedicated else SHARED_BYTES
        if asked.size > limit:
            raise invalid(f"Request payload size exceeds the limit: {limit} bytes.")
        deployment = record.next_deployment()
        if deployment.container is None or not deployment.container.alive:
            raise ApiError(Code.UNAVAILABLE, f"DeployedModel {deployment.message.id} has no replica that is ready.")
        return deployment

    def _post(
        self, deployment: Deployment, body: bytes, content_type: str, asked: Asked, *, stream: bool = False
    ) -> requests.Response:
        container = deployment.container
        if container is None:
            raise ApiError(Code.UNAVAILABLE, "The model server is gone.")
        headers = {"Content-Type": content_type} if content_type else {}
        timeout_s = DEDICATED_TIMEOUT_S if asked.dedicated else SHARED_TIMEOUT_S
        try:
            return container.session.post(
                container.predict_url, data=body, headers=headers, timeout=timeout_s, stream=stream
            )
        except requests.Timeout as err:
            raise ApiError(Code.DEADLINE_EXCEEDED, f"The model server did not answer in {timeout_s} s.") from err
        except requests.RequestException as err:
            raise ApiError(Code.UNAVAILABLE, f"The model server did not answer: {err}") from err

    def _parsed(self, answer: requests.Response, deployment: Deployment) -> Message:
        try:
            content = answer.json()
        except ValueError as err:
            raise ApiError(Code.INTERNAL, f"The model server answered no JSON: {answer.text[:200]!r}") from err
        if not isinstance(content, dict) or not isinstance(content.get("predictions"), list):
            raise ApiError(Code.INTERNAL, f"Invalid response: no list 'predictions' in {answer.text[:200]!r}")
        unknown = sorted(set(content) - {"predictions", "metadata", "deployedModelId"})
        if unknown:
            raise ApiError(Code.INTERNAL, f"Invalid response: the contract knows no {', '.join(unknown)}")
        message: Message = aiplatform_v1.PredictResponse.pb()()
        json_format.ParseDict(
            {
                "predictions": content["predictions"],
                "deployedModelId": deployment.message.id,
                "model": deployment.message.model,
                "modelDisplayName": deployment.model_display_name,
                "modelVersionId": deployment.message.model_version_id,
            },
            message,
        )
        return message


def http_body(answer: RawAnswer) -> Message:
    """Return a raw answer as gRPC has it.

    Raises:
        ApiError: The container answered with another status than 200.
    """
    content = b"".join(answer.body)
    if answer.status != 200:
        raise of_http(answer.status, content.decode(errors="replace"))
    body: Message = httpbody_pb2.HttpBody(content_type=answer.content_type, data=content)
    return body
