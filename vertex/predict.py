"""Predictions from an endpoint, over HTTPS and JSON: numbers arrive as they were sent, and any size is divided."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import google.auth
from google.auth.transport.requests import AuthorizedSession
from requests import Response
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from vertex import payload
from vertex.api_errors import one_line, refused
from vertex.errors import AbsentError, OperationError

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import Endpoint

    from vertex.settings import VertexSettings

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
# The first request is small, and tells how large an answer is: answers have the limit of requests.
_FIRST_INSTANCES = 8
# An answer holds tens of thousands of labels, and no model computes so many in the time that a shared endpoint leaves.
_MOST_INSTANCES = 512
_ANSWER_SHARE = 0.8
# What the model server says of too many tokens, instances, and numbers in the answer.
_FEWER_WOULD_DO = ("send it in parts", "send them in several requests", "send fewer inputs")
_CONNECT_S = 10.0
# Longer than either kind of endpoint lets a model think.
_ANSWER_S = {False: 70.0, True: 620.0}
_AGAIN = Retry(
    total=4,
    backoff_factor=0.5,
    status_forcelist=(429, 502, 503, 504),
    allowed_methods=("POST",),
    raise_on_status=False,
)


class Predictor:
    """An endpoint that is asked.

    Args:
        settings: Project and region.
        endpoint: The endpoint, as Google tells it.

    Raises:
        AbsentError: Nothing is deployed on it.
    """

    def __init__(self, settings: VertexSettings, endpoint: Endpoint) -> None:
        if not endpoint.deployed_models:
            raise AbsentError(f"nothing is deployed on the endpoint {settings.endpoint.name}: marvec vertex deploy")
        self._settings = settings
        self._dedicated = bool(endpoint.dedicated_endpoint_enabled)
        self._url = url(settings, endpoint)
        credentials, _ = google.auth.default(scopes=[_SCOPE])
        self._session = AuthorizedSession(credentials)  # type: ignore[no-untyped-call]
        self._session.mount("https://", HTTPAdapter(max_retries=_AGAIN))

    def predict(self, instances: Sequence[object], parameters: Mapping[str, object] | None) -> Iterator[object]:
        """Yield the prediction of each instance, in order, from as few requests as the limits allow.

        Args:
            instances: As the model takes them.
            parameters: Sent with each request; None for none.

        Raises:
            VertexError: A request was refused; the message has the server's own words.
        """
        limit = payload.DEDICATED_BYTES if self._dedicated else payload.SHARED_BYTES
        most = _FIRST_INSTANCES
        done = 0
        while done < len(instances):
            batch = payload.fitting(instances, done, parameters, limit, most)
            answer = self._post("predict", json.dumps(content(batch, parameters)).encode())
            if _holds_too_much(answer) and len(batch) > 1:
                most = len(batch) // 2
                continue
            self._require_ok(answer, done)
            yield from _predictions(answer, len(batch))
            done += len(batch)
            answers = int(_ANSWER_SHARE * limit * len(batch) / len(answer.content))
            most = max(1, min(_MOST_INSTANCES, answers))

    def raw(self, body: bytes) -> bytes:
        """Return what the model server answers to a body that nobody touches.

        Args:
            body: JSON.

        Raises:
            VertexError: As `predict` does.
        """
        answer = self._post("rawPredict", body)
        self._require_ok(answer, 0)
        return answer.content

    def _post(self, method: str, body: bytes) -> Response:
        return self._session.post(
            f"{self._url}:{method}",
            data=body,
            headers={"Content-Type": "application/json"},
            timeout=(_CONNECT_S, _ANSWER_S[self._dedicated]),
        )

    def _require_ok(self, answer: Response, first: int) -> None:
        if not answer.ok:
            raise refused(answer.status_code, _with_places_from(first, _said(answer)), self._settings)


def content(instances: Sequence[object], parameters: Mapping[str, object] | None) -> dict[str, object]:
    """Return the body of a predict request.

    Args:
        instances: As the model takes them.
        parameters: None for none.
    """
    return {"instances": instances} if parameters is None else {"instances": instances, "parameters": parameters}


def url(settings: VertexSettings, endpoint: Endpoint | None) -> str:
    """Return an endpoint's address, without the method.

    Args:
        settings: Project, region and the endpoint's id.
        endpoint: As Google tells it; None where only the shared kind is meant.
    """
    host = f"{settings.region}-aiplatform.googleapis.com"
    if endpoint is not None and endpoint.dedicated_endpoint_enabled:
        host = endpoint.dedicated_endpoint_dns
    return f"https://{host}/v1/{settings.endpoint_name}"


def _predictions(answer: Response, count: int) -> list[object]:
    try:
        predictions: object = answer.json()["predictions"]
    except (ValueError, KeyError, TypeError) as err:
        raise OperationError("the endpoint's answer holds no predictions: is the model on it one of marvec's?") from err
    if not isinstance(predictions, list) or len(predictions) != count:
        raise OperationError(f"the endpoint did not answer {count} instances with {count} predictions")
    return predictions


def _with_places_from(first: int, said: str) -> str:
    """Make the server's `instances[3]` the place among all instances."""
    return re.sub(r"\binstances\[(\d+)\]", lambda place: f"instances[{first + int(place[1])}]", said)


def _holds_too_much(answer: Response) -> bool:
    """Whether fewer instances would do: how many tokens a request may hold depends on the model and its machine."""
    too_large = answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    # Google may hand on what the model server says under another status.
    return too_large or (not answer.ok and any(words in answer.text for words in _FEWER_WOULD_DO))


def _said(answer: Response) -> str:
    return one_line(_innermost(answer.text))


def _innermost(text: str) -> str:
    """The words in the model server's `{"error": "…"}`, perhaps in Google's `{"error": {"message": …}}`."""
    try:
        error: object = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return text
    if isinstance(error, dict):
        error = error.get("message", "")
    return _innermost(str(error))
