"""Google's requests as lines for a shell: gcloud's, or where gcloud lacks an option, curl's with gcloud's token."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from google.cloud.aiplatform_v1 import (
    AcceleratorType,
    CreateBatchPredictionJobRequest,
    CreateEndpointRequest,
    DeleteEndpointRequest,
    DeleteModelRequest,
    DeployModelRequest,
    MutateDeployedModelRequest,
    Probe,
    UndeployModelRequest,
    UpdateEndpointRequest,
    UploadModelRequest,
)
from google.protobuf.json_format import MessageToDict

from vertex import schemas
from vertex.deploy import METRICS
from vertex.names import last

if TYPE_CHECKING:
    from proto import Message

    from vertex.setting_values import Task
    from vertex.settings import VertexSettings

_METRICS = {METRICS["cpu"]: "cpu-usage", METRICS["duty_cycle"]: "gpu-duty-cycle"}


def line(request: Message, settings: VertexSettings) -> str:
    """Return the line that does what sending a request does.

    Args:
        request: One of those that the commands send.
        settings: Project and region.
    """
    words = _LINES.get(type(request), _no_words)(request)
    if words is None:
        return _curl(request, settings)
    return _gcloud_line(words, settings)


def body(request: Message) -> dict[str, object]:
    """Return a request as JSON holds it, with the API's own field names.

    Args:
        request: One of those that the commands send.
    """
    content: dict[str, object] = MessageToDict(type(request).pb(request))
    return content


def predict_line(content: Mapping[str, object], settings: VertexSettings, url: str) -> str:
    """Return the line that asks an endpoint.

    Args:
        content: The request's body.
        settings: Project, region, and the endpoint with its kind.
        url: The endpoint's address; used for a dedicated one, which gcloud does not reach.
    """
    sent = json.dumps(content, ensure_ascii=False)
    if settings.endpoint.dedicated:
        return _curl_line(f"{url}:predict", sent)
    line = _gcloud_line(["endpoints", "predict", settings.endpoint.name, "--json-request=-"], settings)
    return f"{line} <<'END'\n{sent}\nEND"


def raw_line(file: str, settings: VertexSettings, url: str) -> str:
    """Return the line that sends a file to the model server as it is.

    Args:
        file: A path, or `-` for stdin.
        settings: As for `predict_line`.
        url: As for `predict_line`.
    """
    if settings.endpoint.dedicated or file == "-":
        return _curl_line(f"{url}:rawPredict", f"@{file}", "--data-binary")
    return _gcloud_line(["endpoints", "raw-predict", settings.endpoint.name, f"--request=@{file}"], settings)


def schema_lines(folder: str, task: Task) -> list[str]:
    """Return the lines that put the schema files in their place.

    Args:
        folder: `gs://BUCKET/FOLDER`.
        task: Of the model.
    """
    return [
        shlex.join(["gcloud", "storage", "cp", "--no-clobber", str(schemas.path(task, name)), place])
        for name, place in zip(schemas.FILES, schemas.uris(folder, task), strict=True)
    ]


def status_lines(settings: VertexSettings) -> list[str]:
    """Return the lines that tell what there is.

    Args:
        settings: Which model and endpoint.
    """
    return [
        _gcloud_line(["models", "list-version", settings.model.name], settings),
        _gcloud_line(["endpoints", "describe", settings.endpoint.name], settings),
    ]


def _upload(request: UploadModelRequest) -> list[str] | None:
    model, container = request.model, request.model.container_spec
    if model.predict_schemata or model.encryption_spec:
        return None
    return [
        *("models", "upload"),
        *_option("model-id", request.model_id),
        *_option("parent-model", request.parent_model),
        f"--display-name={model.display_name}",
        *_option("description", model.description),
        *_option("version-aliases", _listed(model.version_aliases)),
        *_option("artifact-uri", model.artifact_uri),
        f"--container-image-uri={container.image_uri}",
        f"--container-ports={_listed(str(port.container_port) for port in container.ports)}",
        f"--container-predict-route={container.predict_route}",
        f"--container-health-route={container.health_route}",
        *_option("container-env-vars", _pairs({variable.name: variable.value for variable in container.env})),
        f"--container-deployment-timeout-seconds={container.deployment_timeout.seconds}",
        *_option("container-shared-memory-size-mb", container.shared_memory_size_mb or ""),
        *_probe("startup", container.startup_probe),
        *_probe("health", container.health_probe),
        *_option("labels", _pairs(model.labels)),
    ]


def _probe(name: str, probe: Probe) -> list[str]:
    return [
        f"--container-{name}-probe-exec={_listed(probe.exec_.command)}",
        f"--container-{name}-probe-period-seconds={probe.period_seconds}",
        f"--container-{name}-probe-timeout-seconds={probe.timeout_seconds}",
    ]


def _create_endpoint(request: CreateEndpointRequest) -> list[str] | None:
    endpoint = request.endpoint
    if endpoint.dedicated_endpoint_enabled:
        return None
    logging = endpoint.predict_request_response_logging_config
    return [
        *("endpoints", "create"),
        f"--endpoint-id={request.endpoint_id}",
        f"--display-name={endpoint.display_name}",
        *_option("labels", _pairs(endpoint.labels)),
        *_option("encryption-kms-key-name", endpoint.encryption_spec.kms_key_name),
        *_option("request-response-logging-table", logging.bigquery_destination.output_uri),
        *_option("request-response-logging-rate", logging.sampling_rate if logging.enabled else ""),
    ]


def _deploy(request: DeployModelRequest) -> list[str]:
    deployed = request.deployed_model
    resources = deployed.dedicated_resources
    machine = resources.machine_spec
    accelerator = ""
    if machine.accelerator_count:
        kind = AcceleratorType(machine.accelerator_type).name.lower().replace("_", "-")
        accelerator = f"type={kind},count={machine.accelerator_count}"
    targets = {_METRICS[spec.metric_name]: str(spec.target) for spec in resources.autoscaling_metric_specs}
    return [
        *("endpoints", "deploy-model", last(request.endpoint)),
        f"--model={last(deployed.model)}",
        f"--display-name={deployed.display_name}",
        f"--machine-type={machine.machine_type}",
        *_option("accelerator", accelerator),
        f"--min-replica-count={resources.min_replica_count}",
        f"--max-replica-count={resources.max_replica_count}",
        *_option("autoscaling-metric-specs", _pairs(targets)),
        *(["--spot"] if resources.spot else []),
        *_option("service-account", deployed.service_account),
        *(["--enable-access-logging"] if deployed.enable_access_logging else []),
        *(["--disable-container-logging"] if deployed.disable_container_logging else []),
        *_option("traffic-split", _pairs(request.traffic_split)),
    ]


def _update_endpoint(request: UpdateEndpointRequest) -> list[str]:
    split = request.endpoint.traffic_split
    return ["endpoints", "update", last(request.endpoint.name), f"--traffic-split={_pairs(split)}"]


def _undeploy(request: UndeployModelRequest) -> list[str]:
    return [
        *("endpoints", "undeploy-model", last(request.endpoint)),
        f"--deployed-model-id={request.deployed_model_id}",
        *_option("traffic-split", _pairs(request.traffic_split)),
    ]


def _delete_endpoint(request: DeleteEndpointRequest) -> list[str]:
    return ["endpoints", "delete", last(request.name), "--quiet"]


def _delete_model(request: DeleteModelRequest) -> list[str]:
    return ["models", "delete", last(request.name), "--quiet"]


def _no_words(request: Message) -> None:
    """Stand for what gcloud has no command for."""


_LINES: Mapping[type[Message], Callable[[Message], list[str] | None]] = {
    UploadModelRequest: _upload,
    CreateEndpointRequest: _create_endpoint,
    DeployModelRequest: _deploy,
    UpdateEndpointRequest: _update_endpoint,
    UndeployModelRequest: _undeploy,
    DeleteEndpointRequest: _delete_endpoint,
    DeleteModelRequest: _delete_model,
}


class _Rest(NamedTuple):
    """Where a request goes: a field of it stands in the path, and one is the body ("" for all the others)."""

    parent: str
    path: str
    content: str = ""
    query: str = ""


_REST = {
    UploadModelRequest: _Rest("parent", "/models:upload"),
    CreateEndpointRequest: _Rest("parent", "/endpoints", "endpoint", "endpointId"),
    MutateDeployedModelRequest: _Rest("endpoint", ":mutateDeployedModel"),
    CreateBatchPredictionJobRequest: _Rest("parent", "/batchPredictionJobs", "batchPredictionJob"),
}


def _curl(request: Message, settings: VertexSettings) -> str:
    way = _REST[type(request)]
    content = body(request)
    path = f"{content.pop(way.parent)}{way.path}"
    if way.query:
        path += f"?{way.query}={content[way.query]}"
    sent = content[way.content] if way.content else content
    url = f"https://{settings.region}-aiplatform.googleapis.com/v1/{path}"
    return _curl_line(url, json.dumps(sent, ensure_ascii=False))


def _curl_line(url: str, sent: str, how: str = "-d") -> str:
    token = '-H "Authorization: Bearer $(gcloud auth print-access-token)"'
    words = ["-X", "POST", url, "-H", "Content-Type: application/json", how, sent]
    return f"curl -sS --fail-with-body {token} {shlex.join(words)}"


def _gcloud_line(words: Sequence[str], settings: VertexSettings) -> str:
    return shlex.join(["gcloud", "ai", *words, f"--project={settings.project}", f"--region={settings.region}"])


def _option(name: str, value: object) -> list[str]:
    return [] if value == "" else [f"--{name}={value}"]


def _pairs(values: Mapping[str, object]) -> str:
    return _listed(f"{key}={values[key]}" for key in sorted(values))


def _listed(values: Iterable[str]) -> str:
    """A list as gcloud takes it (`gcloud topic escaping`): without commas between values where one holds a comma."""
    listed = list(values)
    joined = "".join(listed)
    if "," not in joined:
        return ",".join(listed)
    separators = (*";|~#@%", *(f"<{number}>" for number in range(len(joined))))
    separator = next(one for one in separators if one not in joined)
    return f"^{separator}^{separator.join(listed)}"
