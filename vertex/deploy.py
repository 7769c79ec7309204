"""The deployment: a version of the model onto the endpoint, and its traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import (
    AutoscalingMetricSpec,
    CreateEndpointRequest,
    DedicatedResources,
    DeployedModel,
    DeployModelRequest,
    EncryptionSpec,
    Endpoint,
    MachineSpec,
    MutateDeployedModelRequest,
    PredictRequestResponseLoggingConfig,
    UpdateEndpointRequest,
)
from google.protobuf.field_mask_pb2 import FieldMask

from vertex import machines, traffic
from vertex.errors import VertexError
from vertex.found import MADE_HERE

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import Model
    from proto import Message

    from vertex.found import Found
    from vertex.settings import VertexSettings

# The metrics of machines.py, in the API's words.
METRICS = {
    "cpu": "aiplatform.googleapis.com/prediction/online/cpu/utilization",
    "duty_cycle": "aiplatform.googleapis.com/prediction/online/accelerator/duty_cycle",
}


def plan(settings: VertexSettings, found: Found, version: Model, share: int | None) -> list[Message]:
    """Return what is to be sent, in order, until the endpoint serves a version as the settings say.

    A version that is deployed already keeps its traffic, unless a share is named: a rollback is not undone by running
    the deployment again.

    Args:
        settings: Where and on what.
        found: What there is.
        version: What is deployed.
        share: Per cent of the traffic; None for that of the settings, and for a version that is deployed what it has.

    Raises:
        VertexError: The endpoint is of the other kind, which cannot be changed.
    """
    if found.endpoint is not None and found.endpoint.dedicated_endpoint_enabled != settings.endpoint.dedicated:
        raise VertexError(
            f"endpoint.dedicated is {str(settings.endpoint.dedicated).lower()}, and the endpoint that exists is of the "
            "other kind, which Google never changes: choose another endpoint.name"
        )
    resources = _resources(settings)
    there = next((one for one in found.deployed if _same_place(settings, one, version, resources)), None)
    if there is not None:
        return _adjusted(settings, found, there, resources, share)
    steps: list[Message] = []
    if found.endpoint is None:
        steps.append(_new_endpoint(settings))
    wanted = settings.deployment
    deployed = DeployedModel(
        model=f"{settings.model_name}@{version.version_id}",
        display_name=f"{settings.model.name}-{version.version_id}",
        dedicated_resources=resources,
        service_account=wanted.service_account or "",
        enable_access_logging=wanted.access_logging,
        disable_container_logging=not wanted.container_logging,
    )
    split = traffic.with_share(found.split, traffic.NEW, wanted.traffic_per_cent if share is None else share)
    steps.append(
        DeployModelRequest(endpoint=settings.endpoint_name, deployed_model=deployed, traffic_split=split),
    )
    return steps


def traffic_plan(settings: VertexSettings, found: Found, split: dict[str, int]) -> list[Message]:
    """Return what sets an endpoint's traffic: nothing when it is so already.

    Args:
        settings: Which endpoint.
        found: What there is.
        split: Deployed models' ids to per cent, those above 0; sums to 100.
    """
    return [] if split == traffic.serving(found.split) else [traffic_request(settings, split)]


def traffic_request(settings: VertexSettings, split: dict[str, int]) -> UpdateEndpointRequest:
    """Return the request that sets an endpoint's traffic.

    Args:
        settings: Which endpoint.
        split: Deployed models' ids to per cent; sums to 100.
    """
    endpoint = Endpoint(name=settings.endpoint_name, traffic_split=split)
    return UpdateEndpointRequest(endpoint=endpoint, update_mask=FieldMask(paths=["traffic_split"]))


def _adjusted(
    settings: VertexSettings, found: Found, there: DeployedModel, resources: DedicatedResources, share: int | None
) -> list[Message]:
    steps: list[Message] = []
    changed = _changed(settings, there, resources)
    if changed:
        quiet = not settings.deployment.container_logging
        deployed = DeployedModel(id=there.id, dedicated_resources=resources, disable_container_logging=quiet)
        mask = FieldMask(paths=changed)
        steps.append(
            MutateDeployedModelRequest(endpoint=settings.endpoint_name, deployed_model=deployed, update_mask=mask)
        )
    if share is not None:
        steps += traffic_plan(settings, found, traffic.with_share(found.split, there.id, share))
    return steps


def _changed(settings: VertexSettings, there: DeployedModel, wanted: DedicatedResources) -> list[str]:
    """The fields that are to be changed, of those that Google lets be changed."""
    now = there.dedicated_resources
    targets = {spec.metric_name: spec.target for spec in wanted.autoscaling_metric_specs}
    told = {spec.metric_name: spec.target for spec in now.autoscaling_metric_specs}
    differs = {
        "dedicated_resources.min_replica_count": now.min_replica_count != wanted.min_replica_count,
        "dedicated_resources.max_replica_count": now.max_replica_count != wanted.max_replica_count,
        # Google may tell of a default where nothing was said.
        "dedicated_resources.autoscaling_metric_specs": bool(targets) and told != targets,
        "disable_container_logging": there.disable_container_logging == settings.deployment.container_logging,
    }
    return [field for field, different in differs.items() if different]


def _same_place(settings: VertexSettings, one: DeployedModel, version: Model, resources: DedicatedResources) -> bool:
    """Whether what is deployed of the model differs from what is wanted in nothing but what can be changed later."""
    wanted = settings.deployment
    machine = one.dedicated_resources.machine_spec
    return bool(
        one.model_version_id == version.version_id
        and machine.machine_type == resources.machine_spec.machine_type
        and machine.accelerator_type == resources.machine_spec.accelerator_type
        and machine.accelerator_count == resources.machine_spec.accelerator_count
        and one.dedicated_resources.spot == wanted.spot
        # Where nothing was said, Google may tell of its own.
        and wanted.service_account in (None, one.service_account)
        and one.enable_access_logging == wanted.access_logging
    )


def _resources(settings: VertexSettings) -> DedicatedResources:
    wanted = settings.deployment
    resources = DedicatedResources(
        machine_spec=machine_spec(settings),
        min_replica_count=wanted.min_replicas,
        max_replica_count=wanted.max_replicas or wanted.min_replicas,
        spot=wanted.spot,
    )
    if resources.max_replica_count > resources.min_replica_count:
        metric, per_cent = machines.full_at_per_cent(wanted.machine, wanted.accelerator)
        target = AutoscalingMetricSpec(metric_name=METRICS[metric], target=wanted.target_per_cent or per_cent)
        resources.autoscaling_metric_specs = [target]
    return resources


def machine_spec(settings: VertexSettings) -> MachineSpec:
    """Return the machine that a replica runs on.

    Args:
        settings: Which one, and its accelerators.
    """
    wanted = settings.deployment
    spec = MachineSpec(machine_type=wanted.machine)
    accelerator = machines.settled(wanted.machine, wanted.accelerator, wanted.accelerator_count)
    if accelerator is not None:
        spec.accelerator_type, spec.accelerator_count = accelerator
    return spec


def _new_endpoint(settings: VertexSettings) -> CreateEndpointRequest:
    wanted = settings.endpoint
    endpoint = Endpoint(
        display_name=wanted.name,
        labels={**wanted.labels, **MADE_HERE},
        dedicated_endpoint_enabled=wanted.dedicated,
    )
    if settings.kms_key is not None:
        endpoint.encryption_spec = EncryptionSpec(kms_key_name=settings.kms_key)
    if wanted.log_table is not None:
        endpoint.predict_request_response_logging_config = PredictRequestResponseLoggingConfig(
            enabled=True,
            sampling_rate=wanted.log_share,
            bigquery_destination={"output_uri": wanted.log_table},
        )
    return CreateEndpointRequest(parent=settings.location, endpoint=endpoint, endpoint_id=wanted.name)
