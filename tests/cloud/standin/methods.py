"""The methods that the stand-in knows, with the messages and the HTTP routes of Google's own SDK.

The routes come from the SDK's transports (`_Base…RestTransport._Base…._get_http_options`): private names, so the SDK's
release is pinned in requirements/constraints.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1.services.endpoint_service.transports import rest_base as endpoint_rest
from google.cloud.aiplatform_v1.services.job_service.transports import rest_base as job_rest
from google.cloud.aiplatform_v1.services.model_service.transports import rest_base as model_rest
from google.cloud.aiplatform_v1.services.prediction_service.transports import rest_base as prediction_rest
from google.longrunning import operations_pb2
from google.protobuf.message import Message

PACKAGE = "google.cloud.aiplatform.v1"
_SERVICES = {
    "ModelService": (
        model_rest,
        "UploadModel GetModel ListModels ListModelVersions UpdateModel DeleteModel DeleteModelVersion "
        "MergeVersionAliases",
    ),
    "EndpointService": (
        endpoint_rest,
        "CreateEndpoint GetEndpoint ListEndpoints UpdateEndpoint DeployModel UndeployModel MutateDeployedModel "
        "DeleteEndpoint",
    ),
    "PredictionService": (prediction_rest, "Predict RawPredict StreamRawPredict"),
    "JobService": (
        job_rest,
        "CreateBatchPredictionJob GetBatchPredictionJob ListBatchPredictionJobs CancelBatchPredictionJob "
        "DeleteBatchPredictionJob",
    ),
}
_OPERATIONS = ("GetOperation", "ListOperations", "WaitOperation", "CancelOperation", "DeleteOperation")
_VARIABLE = re.compile(r"\{([\w.]+)=([^}]+)\}")


@dataclass(frozen=True)
class Route:
    """A way to a method over HTTP.

    Attributes:
        verb: Such as POST.
        path: Matches the path; its groups are the variables, with `__` for the dot.
        body: The field that the body fills, `*` for all of them, None for no body.
    """

    verb: str
    path: re.Pattern[str]
    body: str | None


@dataclass(frozen=True)
class Method:
    """A method of the API.

    Attributes:
        name: Such as UploadModel.
        full_name: The path that gRPC asks for.
        request: The protobuf class of what is sent.
        routes: The ways over HTTP.
    """

    name: str
    full_name: str
    request: type[Message]
    routes: tuple[Route, ...]

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.name.startswith(("Get", "List", "Wait"))

    @property
    def raw(self) -> bool:
        """Whether a body over HTTP is handed on untouched."""
        return self.name in ("RawPredict", "StreamRawPredict")


@cache
def all_methods() -> tuple[Method, ...]:
    """Return every method that is known."""
    return tuple(_collect())


@cache
def by_full_name() -> dict[str, Method]:
    """Return the methods by what gRPC asks for."""
    return {method.full_name: method for method in all_methods()}


def find(verb: str, path: str) -> tuple[Method, Route, dict[str, str]] | None:
    """Return the method that an HTTP request asks for, and its path's variables.

    Args:
        verb: Such as POST.
        path: Without the query.
    """
    for method in all_methods():
        for route in method.routes:
            found = route.path.fullmatch(path) if route.verb == verb else None
            if found:
                return method, route, {name.replace("__", "."): value for name, value in found.groupdict().items()}
    return None


def snake(name: str) -> str:
    """Return `UploadModel` as `upload_model`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _collect() -> Iterator[Method]:
    for service, (module, names) in _SERVICES.items():
        transport = getattr(module, f"_Base{service}RestTransport")
        for name in names.split():
            request = getattr(aiplatform_v1, f"{name}Request").pb()
            yield Method(name, f"/{PACKAGE}.{service}/{name}", request, _routes(transport, name))
    for name in _OPERATIONS:
        routes = [
            *_routes(model_rest._BaseModelServiceRestTransport, name),
            *_routes(endpoint_rest._BaseEndpointServiceRestTransport, name),
        ]
        # gcloud's stable commands follow their operations on v1beta1.
        beta = [
            Route(route.verb, re.compile(route.path.pattern.replace("/v1/", "/v1beta1/", 1)), route.body)
            for route in routes
            if route.path.pattern.startswith("/v1/")
        ]
        request = getattr(operations_pb2, f"{name}Request")
        yield Method(name, f"/google.longrunning.Operations/{name}", request, tuple([*routes, *beta]))


def _routes(transport: type, name: str) -> tuple[Route, ...]:
    options = getattr(transport, f"_Base{name}")._get_http_options()
    return tuple(
        Route(option["method"].upper(), re.compile(_pattern(option["uri"])), option.get("body")) for option in options
    )


def _pattern(uri: str) -> str:
    """Return a template such as `/v1/{name=projects/*}:wait` as a regular expression."""
    pattern, end = "", 0
    for variable in _VARIABLE.finditer(uri):
        inside = re.escape(variable[2]).replace(r"\*\*", ".+").replace(r"\*", "[^/:]+")
        pattern += re.escape(uri[end : variable.start()]) + f"(?P<{variable[1].replace('.', '__')}>{inside})"
        end = variable.end()
    return pattern + re.escape(uri[end:])
