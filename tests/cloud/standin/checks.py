"""What a container's and a deployment's description may hold, by the messages' own documentation, at its strictest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from proto import Message as SdkMessage

from tests.cloud.standin.errors import invalid
from tests.cloud.standin.names import DEPLOYED_MODEL_ID, check, check_output_only

IMAGE = re.compile(
    r"(?:([a-z0-9-]+)-docker\.pkg\.dev/[^/\s]+/[^/\s]+|(?:[a-z]+\.)?gcr\.io/[^/\s]+)/[^\s@:]+"
    r"(?::[\w.-]+|@sha256:[0-9a-f]{64})?"
)
CONTINENTS = ("us", "europe", "asia")
SERVICE_ACCOUNT = r"[^\s@]+@[^\s@]+\.iam\.gserviceaccount\.com"
MACHINE = r"(n1|n2|n2d|e2|c2|c2d|c3|g2|g4|a2|a3|a4|a4x)-[a-z]+-?[0-9]+g?"
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
MOST_VARIABLES = 100
LONGEST_DEPLOYMENT_S = 7200
_METRICS = "aiplatform.googleapis.com/prediction/online/"
_DEFAULT_PERIOD_S, _DEFAULT_TIMEOUT_S = 10, 1
_PROBE_NUMBERS = (
    "period_seconds",
    "timeout_seconds",
    "failure_threshold",
    "success_threshold",
    "initial_delay_seconds",
)


def check_container(spec: SdkMessage, location: str) -> None:
    """Raise ApiError where a containerSpec breaks a rule.

    Args:
        spec: A ModelContainerSpec.
        location: The model's region.
    """
    image = IMAGE.fullmatch(spec.image_uri)
    if not image:
        raise invalid(f"model.container_spec.image_uri: {spec.image_uri!r} names no image of Artifact Registry")
    if image[1] and image[1] not in (location, *(one for one in CONTINENTS if location.startswith(f"{one}-"))):
        raise invalid(f"model.container_spec.image_uri: {spec.image_uri} is not in {location}, where the model is")
    for name in ("predict_route", "health_route", "invoke_route_prefix"):
        route = getattr(spec, name)
        if route and not route.startswith("/"):
            raise invalid(f"model.container_spec.{name}: {route!r} does not start with '/'")
    _check_environment(spec.env)
    ports = [port.container_port for port in [*spec.ports, *spec.grpc_ports]]
    if any(not 1 <= port <= 65535 for port in ports) or len(ports) != len(set(ports)):
        raise invalid(f"model.container_spec.ports: {ports}: expected different numbers from 1 to 65535")
    if len(spec.ports) > 1:
        raise invalid("model.container_spec.ports: more than one port is not taken for HTTP")
    if spec.shared_memory_size_mb < 0:
        raise invalid("model.container_spec.shared_memory_size_mb: negative")
    timeout = spec.deployment_timeout
    if timeout and not 0 < timeout.total_seconds() <= LONGEST_DEPLOYMENT_S:
        raise invalid(
            f"model.container_spec.deployment_timeout: {timeout.total_seconds():g} s, and the limit is 2 hours"
        )
    for name in ("startup_probe", "health_probe", "liveness_probe"):
        if name in spec:
            _check_probe(getattr(spec, name), f"model.container_spec.{name}")


def _check_environment(env: Iterable[Any]) -> None:
    names = [one.name for one in env]
    if len(names) > MOST_VARIABLES or len(names) != len(set(names)):
        raise invalid(f"model.container_spec.env: expected at most {MOST_VARIABLES} different names")
    for name in names:
        check(name, VARIABLE, "model.container_spec.env name")
        if name.startswith("AIP_"):
            raise invalid(f"model.container_spec.env: {name}: names that begin with AIP_ are Vertex AI's own")


def _check_probe(probe: SdkMessage, what: str) -> None:
    """Check a probe's numbers.

    The documentation contradicts itself on periods and timeouts: "period … must be less than timeout", "timeout … must
    be greater or equal to period", and both "map to Kubernetes", whose platforms want a timeout of at most a period.
    Equal values are right however it is read, so only those are taken here. A probe that sets neither gets
    the defaults.
    """
    kinds = [kind for kind in ("exec_", "http_get", "grpc", "tcp_socket") if kind in probe]
    if len(kinds) != 1:
        raise invalid(f"{what}: expected one of exec, httpGet, grpc and tcpSocket")
    if kinds == ["exec_"] and not any(probe.exec_.command):
        raise invalid(f"{what}.exec.command: empty")
    if kinds == ["grpc"]:
        raise invalid(f"{what}: the stand-in has no gRPC probes")
    for name in _PROBE_NUMBERS:
        if getattr(probe, name) < 0:
            raise invalid(f"{what}.{name}: negative")
    if not probe.period_seconds and not probe.timeout_seconds:
        return
    period_s = probe.period_seconds or _DEFAULT_PERIOD_S
    timeout_s = probe.timeout_seconds or _DEFAULT_TIMEOUT_S
    if period_s != timeout_s:
        raise invalid(
            f"{what}: timeout_seconds {timeout_s} and period_seconds {period_s}: the documentation says that a timeout "
            "must be at least the period and, in another place, at most: make them equal"
        )


def check_deployed_model(deployed: SdkMessage, known: Iterable[str]) -> None:
    """Raise ApiError where a DeployedModel breaks a rule.

    Args:
        deployed: The message.
        known: The ids of those that are deployed already.
    """
    what = "deployed_model"
    check_output_only(deployed, ("model_version_id", "create_time", "private_endpoints", "status"), what)
    if deployed.id:
        check(deployed.id, DEPLOYED_MODEL_ID, f"{what}.id")
        if deployed.id in known:
            raise invalid(f"{what}.id: {deployed.id} is deployed already")
    if deployed.service_account:
        check(deployed.service_account, SERVICE_ACCOUNT, f"{what}.service_account")
    if "shared_resources" in deployed:
        raise invalid(f"{what}.shared_resources: custom containers cannot share a deployment resource pool")
    if "automatic_resources" in deployed:
        raise invalid(f"{what}.automatic_resources: the model supports DEDICATED_RESOURCES alone")
    if "dedicated_resources" not in deployed:
        raise invalid(f"{what}: dedicated_resources is required")
    check_resources(deployed.dedicated_resources, f"{what}.dedicated_resources")


def check_resources(resources: SdkMessage, what: str) -> None:
    """Raise ApiError where DedicatedResources break a rule."""
    check_machine(resources.machine_spec, f"{what}.machine_spec", required=False)
    least, most = resources.min_replica_count, resources.max_replica_count
    if least < 1:
        raise invalid(f"{what}.min_replica_count: {least}: must be greater than or equal to 1")
    if most and most < least:
        raise invalid(f"{what}.max_replica_count: {most} is less than min_replica_count {least}")
    if not 0 <= resources.required_replica_count <= least:
        raise invalid(f"{what}.required_replica_count: expected 0 to {least}")
    metrics = [spec.metric_name for spec in resources.autoscaling_metric_specs]
    if len(metrics) != len(set(metrics)):
        raise invalid(f"{what}.autoscaling_metric_specs: at most one entry is allowed per metric")
    for spec in resources.autoscaling_metric_specs:
        if not spec.metric_name.startswith(_METRICS):
            raise invalid(f"{what}.autoscaling_metric_specs: unknown metric {spec.metric_name!r}")
        if not 1 <= spec.target <= 100 and spec.metric_name.endswith(("utilization", "duty_cycle")):
            raise invalid(f"{what}.autoscaling_metric_specs: target {spec.target}: expected 1 to 100")
        if "accelerator" in spec.metric_name and not resources.machine_spec.accelerator_count:
            raise invalid(f"{what}.autoscaling_metric_specs: {spec.metric_name} without an accelerator")


def check_machine(spec: SdkMessage, what: str, *, required: bool) -> None:
    """Raise ApiError where a MachineSpec breaks a rule."""
    if spec.machine_type:
        check(spec.machine_type, MACHINE, f"{what}.machine_type")
    elif required:
        raise invalid(f"{what}.machine_type: required")
    if bool(spec.accelerator_type) != bool(spec.accelerator_count):
        raise invalid(f"{what}: accelerator_type and accelerator_count go together")
    if spec.accelerator_type and not spec.machine_type.startswith(("n1-", "g", "a")):
        raise invalid(f"{what}: {spec.machine_type} takes no accelerators")
    if spec.machine_type.startswith(("g2-", "a2-", "a3-")) and not spec.accelerator_type:
        raise invalid(f"{what}: {spec.machine_type} needs accelerator_type and accelerator_count")


def check_traffic(split: Mapping[str, int], known: Iterable[str], what: str) -> None:
    """Raise ApiError where a traffic split breaks a rule; an empty one is right.

    Args:
        split: Deployed model's id to per cent.
        known: The ids that it may name.
        what: The field, for the message.
    """
    unknown = sorted(set(split) - set(known))
    if unknown:
        raise invalid(f"{what}: no deployed model has the id {', '.join(unknown)}")
    if any(not 0 <= share <= 100 for share in split.values()):
        raise invalid(f"{what}: expected whole numbers from 0 to 100")
    if split and sum(split.values()) != 100:
        raise invalid(f"{what}: the values must add up to 100, and these add up to {sum(split.values())}")
