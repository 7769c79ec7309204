"""What Google says, told in one line: whose fault it is, what to do, and which exit status a command ends with."""

from __future__ import annotations

import re
from collections.abc import Callable

import grpc
import pytest
import requests
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError, TransportError
from google.rpc.code_pb2 import Code
from google.rpc.status_pb2 import Status

from tests.unit.vertex_samples import settings
from vertex import api_errors, errors
from vertex.errors import (
    AbsentError,
    AccessError,
    LoginError,
    OperationError,
    QuotaError,
    RowsError,
    UnavailableError,
    VertexError,
)

LOGS = (
    "Its log says why: gcloud logging read 'resource.type=\"aiplatform.googleapis.com/Endpoint\" severity>=WARNING' "
    "--project=my-project --limit=50."
)
QUOTA = (
    "a quota of my-project in europe-west1 is used up: take fewer or smaller machines or another region, or ask for "
    "more at https://console.cloud.google.com/iam-admin/quotas?project=my-project. Google said: no more"
)
NO_ANSWER = "Vertex AI does not answer: the same command again goes on"
LOGIN = "run gcloud auth application-default login"


def explained(err: Exception) -> VertexError:
    """Return what is made of an exception."""
    with pytest.raises(VertexError) as caught, api_errors.explained(settings()):
        raise err
    assert caught.value.__cause__ is err
    return caught.value


def test_each_kind_has_its_exit_status() -> None:
    kinds = [VertexError, AccessError, LoginError, AbsentError, QuotaError, OperationError, UnavailableError, RowsError]
    assert [kind.exit_status for kind in kinds] == [1, 3, 3, 4, 5, 6, 7, 8]
    told = re.findall(r"(\w+Error) +(\d)", errors.__doc__ or "")
    assert told == [(kind.__name__, str(kind.exit_status)) for kind in kinds]


@pytest.mark.parametrize(
    ("raised", "said", "kind", "message"),
    [
        (
            DefaultCredentialsError,
            ("no file",),
            LoginError,
            f"nobody is logged in to Google Cloud: {LOGIN}, or name a service account's key file in "
            "GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            TransportError,
            ("no\nroute",),
            UnavailableError,
            "Google's login does not answer: try again (no route)",
        ),
        (RefreshError, ("invalid_grant",), AccessError, f"the login is not accepted: {LOGIN} (invalid_grant)"),
        (requests.ConnectionError, ("cut\noff",), UnavailableError, f"{NO_ANSWER} (cut off)"),
        (
            exceptions.RetryError,
            ("Timeout of 60.0s exceeded", OSError("503 busy")),
            UnavailableError,
            f"{NO_ANSWER} (Timeout of 60.0s exceeded, last exception: 503 busy)",
        ),
    ],
)
def test_before_google_says_anything(
    raised: type[Exception], said: tuple[object, ...], kind: type[VertexError], message: str
) -> None:
    told = explained(raised(*said))
    assert (type(told), str(told)) == (kind, message)


@pytest.mark.parametrize(
    ("code", "status", "kind", "message"),
    [
        (
            "UNAUTHENTICATED",
            401,
            AccessError,
            f"the login is not accepted: {LOGIN}. Google said: no more",
        ),
        ("RESOURCE_EXHAUSTED", 429, QuotaError, QUOTA),
        (
            "NOT_FOUND",
            404,
            AbsentError,
            "what is needed does not exist: check project, region and names. Google said: no more",
        ),
        ("UNAVAILABLE", 503, UnavailableError, f"{NO_ANSWER}. Google said: no more"),
        ("DEADLINE_EXCEEDED", 504, UnavailableError, f"{NO_ANSWER}. Google said: no more"),
        (
            "ALREADY_EXISTS",
            409,
            UnavailableError,
            "something else changes it at the same time: try again. Google said: no more",
        ),
        (
            "ABORTED",
            409,
            UnavailableError,
            "something else changes it at the same time: try again. Google said: no more",
        ),
        ("INVALID_ARGUMENT", 400, VertexError, "Vertex AI refused: no more"),
        ("INTERNAL", 500, UnavailableError, f"{NO_ANSWER}. Google said: no more"),
    ],
)
def test_grpc_and_rest_say_the_same(code: str, status: int, kind: type[VertexError], message: str) -> None:
    of_grpc: Callable[[grpc.StatusCode, str], Exception] = exceptions.from_grpc_status
    of_http: Callable[[int, str], Exception] = exceptions.from_http_status
    for err in (of_grpc(grpc.StatusCode[code], "no more"), of_http(status, "no more")):
        told = explained(err)
        assert (type(told), str(told)) == (kind, message)


@pytest.mark.parametrize("refuse", [exceptions.PermissionDenied, exceptions.Forbidden])
@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "Vertex AI API has not been used in project 1 before or it is disabled. Enable it by visiting …",
            "the API is off: gcloud services enable aiplatform.googleapis.com --project=my-project",
        ),
        (
            "Permission 'artifactregistry.repositories.downloadArtifacts' denied",
            "Vertex AI may not pull the image: give its service agent roles/artifactregistry.reader on the repository "
            "(docs/vertex.md). Google said: Permission 'artifactregistry.repositories.downloadArtifacts' denied",
        ),
        (
            "Permission 'aiplatform.models.upload' denied on resource\n'//aiplatform.googleapis.com/projects/p'",
            "not permitted in my-project: who is logged in needs roles/aiplatform.user (docs/vertex.md). Google said: "
            "Permission 'aiplatform.models.upload' denied on resource '//aiplatform.googleapis.com/projects/p'",
        ),
        (
            "Permission 'iam.serviceAccounts.actAs' denied on service account a@b",
            "not permitted in my-project: who is logged in needs roles/iam.serviceAccountUser (docs/vertex.md). Google "
            "said: Permission 'iam.serviceAccounts.actAs' denied on service account a@b",
        ),
        (
            "The caller does not have permission",
            "not permitted in my-project: who is logged in needs roles/aiplatform.user (docs/vertex.md). Google said: "
            "The caller does not have permission",
        ),
    ],
)
def test_what_is_not_permitted_names_who_may(refuse: Callable[[str], Exception], said: str, message: str) -> None:
    told = explained(refuse(said))
    assert (type(told), str(told)) == (AccessError, message)


def test_an_error_without_a_code_is_told_too() -> None:
    odd: Callable[[str], Exception] = exceptions.GoogleAPICallError
    assert str(explained(odd("odd"))) == "Vertex AI refused: odd"


def test_what_is_a_vertex_error_already_stays_as_it_is() -> None:
    with pytest.raises(AbsentError, match=r"^no model$"), api_errors.explained(settings()):
        raise AbsentError("no model")


def test_a_long_message_is_cut() -> None:
    assert api_errors.one_line(" a\r\n\tb  ") == "a b"
    assert api_errors.one_line("x" * 1500) == "x" * 1500
    assert api_errors.one_line("x" * 1501) == f"{'x' * 1500}…"


@pytest.mark.parametrize(
    ("code", "said", "kind", "message"),
    [
        (Code.RESOURCE_EXHAUSTED, "no more", QuotaError, QUOTA),
        (
            Code.INVALID_ARGUMENT,
            "Model server never became ready. Please validate\nthat your model file is good.",
            OperationError,
            "the deployment failed: the container never became READY, and its log says why. Google said: Model "
            "server never became ready. Please validate that your model file is good.",
        ),
        (
            Code.FAILED_PRECONDITION,
            "Model server exited unexpectedly. Logs: https://x",
            OperationError,
            "the deployment failed: the container never became READY, and its log says why. Google said: Model "
            "server exited unexpectedly. Logs: https://x",
        ),
        (Code.INTERNAL, "out of luck", OperationError, "the deployment failed: out of luck"),
        (Code.NOT_FOUND, "no image", OperationError, "the deployment failed: no image"),
    ],
)
def test_an_operation_that_failed(code: int, said: str, kind: type[VertexError], message: str) -> None:
    told = api_errors.of_operation(Status(code=code, message=said), settings(), "the deployment")
    assert (type(told), str(told)) == (kind, message)


def test_an_operation_that_was_not_permitted_says_who_may() -> None:
    status = Status(code=Code.PERMISSION_DENIED, message="Permission 'aiplatform.endpoints.deploy' denied")
    assert isinstance(api_errors.of_operation(status, settings(), "the deployment"), AccessError)


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (400, VertexError, "the model server refused (400): no more"),
        (413, VertexError, "the model server refused (413): no more"),
        (415, VertexError, "the model server refused (415): no more"),
        (500, OperationError, f"the model server failed (500). {LOGS} It said: no more"),
        (
            429,
            QuotaError,
            "too many requests for what is deployed, or for a quota: ask again later. Google said: no more",
        ),
        (503, UnavailableError, f"{NO_ANSWER}. Google said: no more"),
        (502, UnavailableError, f"{NO_ANSWER}. Google said: no more"),
        (405, VertexError, "Vertex AI refused: no more"),
    ],
)
def test_a_prediction_that_was_refused(status: int, kind: type[VertexError], message: str) -> None:
    told = api_errors.refused(status, "no more", settings())
    assert (type(told), str(told)) == (kind, message)
