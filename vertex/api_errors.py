"""What Google says, as one line with the cause and the mend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import requests
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.rpc.code_pb2 import Code

from vertex.api import NO_TOKEN
from vertex.errors import (
    AbsentError,
    AccessError,
    LoginError,
    OperationError,
    QuotaError,
    UnavailableError,
    VertexError,
)

if TYPE_CHECKING:
    from google.rpc.status_pb2 import Status

    from vertex.settings import VertexSettings

# Google's own messages can hold an address in the console, which must stay whole.
_LONGEST = 1500
_NO_ANSWER = "Vertex AI does not answer: the same command again goes on"
# It "never became ready", or "exited unexpectedly".
_NEVER_READY = "model server "


@contextmanager
def explained(settings: VertexSettings) -> Iterator[None]:
    """Turn what Google's clients raise into a VertexError.

    Args:
        settings: For what the message tells to do.

    Raises:
        VertexError: One of its kinds, by what can be done about it.
    """
    try:
        yield
    except DefaultCredentialsError as err:
        raise LoginError(
            "nobody is logged in to Google Cloud: run gcloud auth application-default login, or name a service "
            "account's key file in GOOGLE_APPLICATION_CREDENTIALS"
        ) from err
    except TransportError as err:
        raise UnavailableError(f"Google's login does not answer: try again ({one_line(str(err))})") from err
    except GoogleAuthError as err:
        raise AccessError(
            f"the login is not accepted: run gcloud auth application-default login ({one_line(str(err))})"
        ) from err
    except (exceptions.RetryError, requests.RequestException) as err:
        raise UnavailableError(f"{_NO_ANSWER} ({one_line(str(err))})") from err
    except exceptions.GoogleAPICallError as err:
        raise of_call(err, settings) from err


def of_call(err: exceptions.GoogleAPICallError, settings: VertexSettings) -> VertexError:
    """Return the error for a refused call.

    Args:
        err: What the client raised.
        settings: For what the message tells to do.
    """
    code = err.grpc_status_code.name if err.grpc_status_code is not None else f"{err.code or 0:d}"
    return _explained(code, err.message or str(err), settings)


def of_operation(status: Status, settings: VertexSettings, doing: str) -> VertexError:
    """Return the error for an operation that Google ended with a failure.

    Args:
        status: The operation's error.
        settings: For what the message tells to do.
        doing: What was being done, such as `the deployment`.
    """
    error = _explained(Code.Name(status.code), status.message, settings)
    if isinstance(error, QuotaError | AccessError):
        return error
    said = one_line(status.message)
    if status.message.lower().startswith(_NEVER_READY):
        said = f"the container never became READY, and its log says why. Google said: {said}"
    return OperationError(f"{doing} failed: {said}")


def refused(status: int, said: str, settings: VertexSettings) -> VertexError:
    """Return the error for a prediction that was refused.

    Args:
        status: The HTTP status.
        said: What the model server or Google said.
        settings: For what the message tells to do.
    """
    if status in (400, 413, 415):
        return VertexError(f"the model server refused ({status}): {said}")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return QuotaError(
            f"too many requests for what is deployed, or for a quota: ask again later. Google said: {said}"
        )
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return OperationError(f"the model server failed (500). {_logs(settings)} It said: {said}")
    return _explained(str(status), said, settings)


def one_line(text: str) -> str:
    """Return a text without line breaks, cut where it is long.

    Args:
        text: What somebody else wrote.
    """
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _explained(code: str, message: str, settings: VertexSettings) -> VertexError:
    # Over REST the client puts the address in front.
    said = re.sub(r"^[A-Z]+ https?://\S+: ", "", one_line(message))
    project = settings.project
    if code in ("PERMISSION_DENIED", "403"):
        return AccessError(_permission(said, project))
    if code in ("UNAUTHENTICATED", "401") or NO_TOKEN in said:
        return AccessError(f"the login is not accepted: run gcloud auth application-default login. Google said: {said}")
    if code in ("RESOURCE_EXHAUSTED", "429"):
        return QuotaError(
            f"a quota of {project} in {settings.region} is used up: take fewer or smaller machines or another region, "
            f"or ask for more at https://console.cloud.google.com/iam-admin/quotas?project={project}. "
            f"Google said: {said}"
        )
    if code in ("NOT_FOUND", "404"):
        return AbsentError(f"what is needed does not exist: check project, region and names. Google said: {said}")
    if code in ("INTERNAL", "UNKNOWN", "CANCELLED", "500", "UNAVAILABLE", "DEADLINE_EXCEEDED", "502", "503", "504"):
        return UnavailableError(f"{_NO_ANSWER}. Google said: {said}")
    if code in ("ALREADY_EXISTS", "ABORTED", "409"):
        return UnavailableError(f"something else changes it at the same time: try again. Google said: {said}")
    return VertexError(f"Vertex AI refused: {said}")


def _permission(said: str, project: str) -> str:
    if "has not been used" in said or "it is disabled" in said:
        return f"the API is off: gcloud services enable aiplatform.googleapis.com --project={project}"
    if "artifactregistry." in said or "pull" in said:
        return (
            "Vertex AI may not pull the image: give its service agent roles/artifactregistry.reader on the repository "
            f"(docs/vertex.md). Google said: {said}"
        )
    missing = re.search(r"'?([a-z]+\.[a-zA-Z]+\.[a-zA-Z]+)'?", said)
    role = "roles/iam.serviceAccountUser" if missing and missing[1].startswith("iam.") else "roles/aiplatform.user"
    return f"not permitted in {project}: who is logged in needs {role} (docs/vertex.md). Google said: {said}"


def _logs(settings: VertexSettings) -> str:
    query = 'resource.type="aiplatform.googleapis.com/Endpoint" severity>=WARNING'
    return f"Its log says why: gcloud logging read '{query}' --project={settings.project} --limit=50."
