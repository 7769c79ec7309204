"""EndpointService: endpoints, what is deployed on them, and its traffic."""

from __future__ import annotations

import itertools
from threading import RLock
from typing import Any

from google.cloud import aiplatform_v1
from google.protobuf import empty_pb2
from google.protobuf.message import Message
from proto import Message as SdkMessage

from tests.cloud.standin.checks import check_deployed_model, check_resources, check_traffic
from tests.cloud.standin.deployments import Deployer, Deployment
from tests.cloud.standin.endpoint_record import Record
from tests.cloud.standin.errors import ApiError, Code, invalid, not_found, precondition
from tests.cloud.standin.filters import chosen
from tests.cloud.standin.messages import copy, now, plain
from tests.cloud.standin.models import Models
from tests.cloud.standin.names import (
    ENDPOINT_ID,
    Name,
    Project,
    check,
    check_display_name,
    check_labels,
    check_output_only,
    parse,
)
from tests.cloud.standin.operations import Operation, Operations

NEW = "0"
_OUTPUT_ONLY = ("name", "deployed_models", "create_time", "update_time", "dedicated_endpoint_dns")
_UPDATABLE = {"display_name", "description", "labels", "traffic_split", "predict_request_response_logging_config"}
_MUTABLE = {
    "dedicated_resources.min_replica_count",
    "dedicated_resources.max_replica_count",
    "dedicated_resources.required_replica_count",
    "dedicated_resources.autoscaling_metric_specs",
    "disable_container_logging",
}


class Endpoints:
    """All endpoints.

    Args:
        project: The one that there is.
        operations: Where deployments run.
        lock: Held while anything changes.
        models: What can be deployed.
        deployer: Starts containers.
        dedicated_dns: The address of dedicated endpoints; Google's own form when empty.
    """

    def __init__(
        self,
        project: Project,
        operations: Operations,
        lock: RLock,
        models: Models,
        deployer: Deployer,
        dedicated_dns: str,
    ) -> None:
        self._project = project
        self._operations = operations
        self._lock = lock
        self._models = models
        self._deployer = deployer
        self._dedicated_dns = dedicated_dns
        self._all: dict[str, Record] = {}
        self._ids = itertools.count(5_000_000_000_000_000_001)
        self._deployed_ids = itertools.count(7_000_000_001)
        models.deployments_of = self._deployments_of

    def clear(self) -> None:
        """Forget all; the containers are the deployer's to end."""
        self._all.clear()

    def create_endpoint(self, request: SdkMessage) -> Message:
        """Begin the making of an endpoint."""
        location = parse(request.parent, "", self._project)
        endpoint = copy(request.endpoint)
        check_display_name(endpoint.display_name, "endpoint")
        check_output_only(endpoint, _OUTPUT_ONLY, "endpoint")
        check_labels(endpoint.labels, "endpoint")
        if endpoint.traffic_split:
            raise invalid("endpoint.traffic_split: nothing is deployed yet")
        if endpoint.network or "private_service_connect_config" in endpoint:
            raise invalid("endpoint.network, private_service_connect_config: the stand-in has public endpoints alone")
        logging = endpoint.predict_request_response_logging_config
        if logging.enabled and not 0 < logging.sampling_rate <= 1:
            raise invalid("endpoint.predict_request_response_logging_config.sampling_rate: expected (0, 1]")
        if request.endpoint_id:
            check(request.endpoint_id, ENDPOINT_ID, "endpoint_id")
        name = Name(self._project, location.location, "endpoints", request.endpoint_id or str(next(self._ids)))
        with self._lock:
            if str(name) in self._all or self._operations.running_on(str(name)):
                raise ApiError(Code.ALREADY_EXISTS, f"Endpoint {name} already exists.")

        def work(operation: Operation) -> SdkMessage:
            endpoint.name = str(name)
            endpoint.create_time = now()
            if endpoint.dedicated_endpoint_enabled:
                own = f"{name.id}.{name.location}-{self._project.number}.prediction.vertexai.goog"
                endpoint.dedicated_endpoint_dns = self._dedicated_dns or own
            record = Record(name, endpoint)
            record.touch()
            with self._lock:
                self._all[str(name)] = record
            return record.answer()

        metadata = aiplatform_v1.CreateEndpointOperationMetadata()
        return self._operations.begin("CreateEndpoint", str(name), metadata, work)

    def get_endpoint(self, request: SdkMessage) -> Message:
        """Return an endpoint."""
        return plain(self.record(request.name).answer())

    def list_endpoints(self, request: SdkMessage) -> Message:
        """Return the endpoints of a location."""
        location = parse(request.parent, "", self._project)
        found = [one.answer() for one in list(self._all.values()) if one.name.location == location.location]
        page, token = chosen(found, request, ("endpoint",))
        return plain(aiplatform_v1.ListEndpointsResponse(endpoints=page, next_page_token=token))

    def update_endpoint(self, request: SdkMessage) -> Message:
        """Change an endpoint at once: its words, its labels, its traffic."""
        record, paths = self.record(request.endpoint.name), set(request.update_mask.paths)
        if not paths or not paths <= _UPDATABLE:
            raise invalid(f"update_mask: {sorted(paths) or 'required'}: expected some of {sorted(_UPDATABLE)}")
        with self._lock:
            if "traffic_split" in paths:
                check_traffic(request.endpoint.traffic_split, record.deployed, "endpoint.traffic_split")
                record.set_traffic(request.endpoint.traffic_split)
            if "labels" in paths:
                check_labels(request.endpoint.labels, "endpoint")
            if "display_name" in paths:
                check_display_name(request.endpoint.display_name, "endpoint")
            for path in paths - {"traffic_split"}:
                setattr(record.message, path, getattr(request.endpoint, path))
            record.touch()
        return plain(record.answer())

    def deploy_model(self, request: SdkMessage) -> Message:
        """Begin a deployment; the operation lasts until the container is up."""
        record = self.record(request.endpoint)
        self._require_quiet(record)
        wanted = copy(request.deployed_model)
        check_deployed_model(wanted, record.deployed)
        versions, version = self._models.version(wanted.model)
        check_traffic(request.traffic_split, [*record.deployed, NEW], "traffic_split")
        wanted.id = wanted.id or str(next(self._deployed_ids))
        wanted.model, wanted.model_version_id = str(versions.name), version.version_id
        wanted.display_name = wanted.display_name or versions.display_name
        wanted.create_time = now()
        if not wanted.dedicated_resources.machine_spec.machine_type:
            wanted.dedicated_resources.machine_spec.machine_type = "n1-standard-2"
        if not wanted.dedicated_resources.max_replica_count:
            wanted.dedicated_resources.max_replica_count = wanted.dedicated_resources.min_replica_count
        deployment = Deployment(wanted, copy(version), versions.display_name)
        split = {wanted.id if one == NEW else one: share for one, share in request.traffic_split.items()}
        record.deploying[wanted.id] = deployment

        def work(operation: Operation) -> SdkMessage:
            self._deployer.start(deployment, record.name, operation.cancelled)
            with self._lock:
                record.deploying.pop(wanted.id)
                record.deployed[wanted.id] = deployment
                if split:
                    record.set_traffic(split)
                record.touch()
            return aiplatform_v1.DeployModelResponse(deployed_model=deployment.answer())

        metadata = aiplatform_v1.DeployModelOperationMetadata()

        def undo() -> None:
            record.deploying.pop(wanted.id, None)

        return self._operations.begin("DeployModel", str(record.name), metadata, work, undo=undo)

    def undeploy_model(self, request: SdkMessage) -> Message:
        """Begin the end of a deployment, which must have no traffic afterwards unless it is the last one."""
        record = self.record(request.endpoint)
        self._require_quiet(record)
        leaving = request.deployed_model_id
        deployment = self._deployed(record, leaving)
        staying = [one for one in record.deployed if one != leaving]
        split = {one: share for one, share in request.traffic_split.items() if share or one != leaving}
        check_traffic(split, staying, "traffic_split")
        if staying and not split and record.message.traffic_split.get(leaving):
            raise precondition(
                f"DeployedModel {leaving} has {record.message.traffic_split[leaving]} % of the traffic: give a "
                "traffic_split without it."
            )

        def work(operation: Operation) -> SdkMessage:
            with self._lock:
                record.deployed.pop(leaving)
                if split or not staying:
                    record.set_traffic(split)
                record.touch()
            self._deployer.stop(deployment)
            return aiplatform_v1.UndeployModelResponse()

        metadata = aiplatform_v1.UndeployModelOperationMetadata()
        return self._operations.begin("UndeployModel", str(record.name), metadata, work)

    def mutate_deployed_model(self, request: SdkMessage) -> Message:
        """Begin a change of replicas, of the targets of scaling or of logging."""
        record, paths = self.record(request.endpoint), set(request.update_mask.paths)
        self._require_quiet(record)
        deployment = self._deployed(record, request.deployed_model.id)
        if not paths or not paths <= _MUTABLE:
            raise invalid(f"update_mask: {sorted(paths) or 'required'}: expected some of {sorted(_MUTABLE)}")
        changed = copy(deployment.message)
        for path in paths:
            *above, last = path.split(".")
            source, target = request.deployed_model, changed
            for step in above:
                source, target = getattr(source, step), getattr(target, step)
            setattr(target, last, getattr(source, last))
        check_resources(changed.dedicated_resources, "deployed_model.dedicated_resources")

        def work(operation: Operation) -> SdkMessage:
            deployment.message = changed
            return aiplatform_v1.MutateDeployedModelResponse(deployed_model=deployment.answer())

        metadata = aiplatform_v1.MutateDeployedModelOperationMetadata()
        return self._operations.begin("MutateDeployedModel", str(record.name), metadata, work)

    def delete_endpoint(self, request: SdkMessage) -> Message:
        """Begin the end of an endpoint, on which nothing may be deployed."""
        record = self.record(request.name)
        self._require_quiet(record)
        if record.deployed:
            raise precondition(
                f"Endpoint {record.name} has deployed or being-deployed DeployedModel(s): "
                f"{', '.join(record.deployed)}. Undeploy them first."
            )

        def work(operation: Operation) -> Message:
            with self._lock:
                self._all.pop(str(record.name))
            return empty_pb2.Empty()

        metadata = aiplatform_v1.DeleteOperationMetadata()
        parent = record.name.parent
        return self._operations.begin("DeleteEndpoint", parent, metadata, work, target=str(record.name))

    def record(self, name: str) -> Record:
        """Return an endpoint by its name."""
        record = self._all.get(str(parse(name, "endpoints", self._project)))
        if record is None:
            raise not_found(f"Endpoint {name}")
        return record

    def _require_quiet(self, record: Record) -> None:
        running = self._operations.running_on(str(record.name))
        if running:
            raise precondition(
                f'There are other operations running on the Endpoint "{record.name}". '
                f"Operation(s) are: {', '.join(running)}."
            )

    def _deployed(self, record: Record, number: str) -> Deployment:
        if number not in record.deployed:
            raise not_found(f"DeployedModel {number} of Endpoint {record.name}")
        return record.deployed[number]

    def _deployments_of(self, model: str) -> list[tuple[str, Any]]:
        return [
            (
                one.message.model_version_id,
                aiplatform_v1.DeployedModelRef(endpoint=str(record.name), deployed_model_id=number),
            )
            for record in list(self._all.values())
            for number, one in {**record.deployed, **record.deploying}.items()
            if one.message.model == model
        ]
