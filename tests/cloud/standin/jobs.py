"""JobService: batch predictions, each in a thread with a container of its own."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from threading import Event, Thread

from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1 import JobState
from google.protobuf import empty_pb2
from google.protobuf.message import Message
from google.rpc import status_pb2
from proto import Message as SdkMessage

from tests.cloud.standin.batch import Batch, Row
from tests.cloud.standin.checks import SERVICE_ACCOUNT, check_machine
from tests.cloud.standin.deployments import Deployer
from tests.cloud.standin.errors import ApiError, Code, invalid, not_found, precondition
from tests.cloud.standin.filters import chosen
from tests.cloud.standin.messages import copy, now, plain, value_to_json
from tests.cloud.standin.models import Models
from tests.cloud.standin.names import (
    Name,
    Project,
    check,
    check_display_name,
    check_labels,
    check_output_only,
    parse,
)
from tests.cloud.standin.operations import Operation, Operations
from tests.cloud.standin.storage import Storage
from tests.cloud.standin.trouble import Trouble

KIND = "batchPredictionJobs"
DEFAULT_BATCH_SIZE = 64
_OUTPUT_ONLY = ("name", "model_version_id", "output_info", "state", "create_time", "start_time", "end_time")
_NO_BIGQUERY = "the stand-in has no BigQuery: the job's description is right, and the job cannot run here"


@dataclass
class _Job:
    message: SdkMessage
    cancelled: Event = field(default_factory=Event)
    thread: Thread | None = None


class Jobs:
    """All batch predictions.

    Args:
        project: The one that there is.
        operations: Where deletes run.
        models: What can be asked.
        deployer: Starts containers.
        storage: Where rows come from and answers go to; None where there is no Cloud Storage.
        trouble: Whether the next job is to fail.
    """

    def __init__(
        self,
        project: Project,
        operations: Operations,
        models: Models,
        deployer: Deployer,
        storage: Storage | None,
        trouble: Trouble,
    ) -> None:
        self._project = project
        self._operations = operations
        self._models = models
        self._deployer = deployer
        self._storage = storage
        self._trouble = trouble
        self._all: dict[str, _Job] = {}
        self._ids = itertools.count(8_000_000_000_000_000_001)

    def create_batch_prediction_job(self, request: SdkMessage) -> Message:
        """Begin a job."""
        location = parse(request.parent, "", self._project)
        message = copy(request.batch_prediction_job)
        self._check(message)
        versions, version = self._models.version(message.model)
        if versions.name.location != location.location:
            raise invalid(f"batch_prediction_job.model: {message.model} is not in {location.location}")
        message.name = str(Name(self._project, location.location, KIND, str(next(self._ids))))
        message.model, message.model_version_id = str(versions.name), version.version_id
        message.state = JobState.JOB_STATE_PENDING
        message.create_time = message.update_time = now()
        job = _Job(message)
        self._all[message.name] = job
        wanted = self._trouble.of_operation()
        answer = copy(message)
        job.thread = Thread(target=self._run, args=(job, copy(version), wanted), daemon=True)
        job.thread.start()
        return plain(answer)

    def get_batch_prediction_job(self, request: SdkMessage) -> Message:
        """Return a job."""
        return plain(copy(self._find(request.name).message))

    def list_batch_prediction_jobs(self, request: SdkMessage) -> Message:
        """Return the jobs of a location, newest first."""
        location = parse(request.parent, "", self._project)
        found = [job.message for name, job in reversed(list(self._all.items())) if name.startswith(f"{location}/")]
        page, token = chosen(found, request, ())
        return plain(aiplatform_v1.ListBatchPredictionJobsResponse(batch_prediction_jobs=page, next_page_token=token))

    def cancel_batch_prediction_job(self, request: SdkMessage) -> Message:
        """Let a job end; one that is over stays as it is."""
        self._find(request.name).cancelled.set()
        return empty_pb2.Empty()

    def delete_batch_prediction_job(self, request: SdkMessage) -> Message:
        """Begin the end of a job that is over."""
        job = self._find(request.name)
        if job.thread is not None and job.thread.is_alive():
            raise precondition(f"The job {request.name} is not over: cancel it first.")

        def work(operation: Operation) -> Message:
            self._all.pop(job.message.name, None)
            return empty_pb2.Empty()

        # Not below the job itself: the SDK's REST transport cannot follow an operation there.
        parent = str(parse("/".join(request.name.split("/")[:4]), "", self._project))
        metadata = aiplatform_v1.DeleteOperationMetadata()
        return self._operations.begin("DeleteBatchPredictionJob", parent, metadata, work, target=job.message.name)

    def stop(self) -> None:
        """End every job."""
        for job in self._all.values():
            job.cancelled.set()
        for job in self._all.values():
            if job.thread is not None:
                job.thread.join(60)

    def clear(self) -> None:
        """Forget all."""
        self._all.clear()

    def _find(self, name: str) -> _Job:
        job = self._all.get(str(parse(name, KIND, self._project)))
        if job is None:
            raise not_found(f"BatchPredictionJob {name}")
        return job

    def _check(self, message: SdkMessage) -> None:
        what = "batch_prediction_job"
        check_display_name(message.display_name, what)
        check_output_only(message, _OUTPUT_ONLY, what)
        check_labels(message.labels, what)
        if message.service_account:
            check(message.service_account, SERVICE_ACCOUNT, f"{what}.service_account")
        source, target = message.input_config, message.output_config
        if ("gcs_source" in source) == ("bigquery_source" in source):
            raise invalid(f"{what}.input_config: expected one of gcs_source and bigquery_source")
        if ("gcs_destination" in target) == ("bigquery_destination" in target):
            raise invalid(f"{what}.output_config: expected one of gcs_destination and bigquery_destination")
        if ("bigquery_source" in source) != (source.instances_format == "bigquery"):
            raise invalid(
                f"{what}.input_config.instances_format: {source.instances_format!r} is not that of the source"
            )
        if ("bigquery_destination" in target) != (target.predictions_format == "bigquery"):
            raise invalid(f"{what}.output_config.predictions_format: not that of the destination")
        if source.instances_format not in ("jsonl", "bigquery"):
            raise invalid(f"{what}.input_config.instances_format: the stand-in knows jsonl and bigquery")
        if target.predictions_format not in ("jsonl", "bigquery"):
            raise invalid(f"{what}.output_config.predictions_format: the stand-in knows jsonl and bigquery")
        for uri in [*source.gcs_source.uris, target.gcs_destination.output_uri_prefix]:
            if uri and not uri.startswith("gs://"):
                raise invalid(f"{what}: {uri!r}: expected gs://BUCKET/NAME")
        for uri in (source.bigquery_source.input_uri, target.bigquery_destination.output_uri):
            if uri and not uri.startswith("bq://"):
                raise invalid(f"{what}: {uri!r}: expected bq://PROJECT.DATASET.TABLE")
        if "gcs_source" in source and not source.gcs_source.uris:
            raise invalid(f"{what}.input_config.gcs_source.uris: required")
        instance = message.instance_config
        if instance.instance_type not in ("", "object", "array"):
            raise invalid(f"{what}.instance_config.instance_type: expected object or array")
        if instance.included_fields and instance.excluded_fields:
            raise invalid(f"{what}.instance_config: included_fields and excluded_fields exclude each other")
        if "dedicated_resources" not in message:
            raise invalid(f"{what}.dedicated_resources: required, since the model supports DEDICATED_RESOURCES alone")
        resources = message.dedicated_resources
        check_machine(resources.machine_spec, f"{what}.dedicated_resources.machine_spec", required=True)
        least, most = resources.starting_replica_count, resources.max_replica_count
        if least < 1 or (most and most < least):
            raise invalid(f"{what}.dedicated_resources: {least} replicas at the start and {most} at most")
        if message.manual_batch_tuning_parameters.batch_size < 0:
            raise invalid(f"{what}.manual_batch_tuning_parameters.batch_size: negative")

    def _run(self, job: _Job, version: SdkMessage, wanted: ApiError | None) -> None:
        message = job.message
        try:
            if wanted is not None:
                raise wanted
            if "bigquery_source" in message.input_config or "bigquery_destination" in message.output_config:
                raise precondition(_NO_BIGQUERY)
            if self._storage is None:
                raise precondition("This stand-in was started without Cloud Storage.")
            self._predict(job, version, self._storage)
            message.state = JobState.JOB_STATE_SUCCEEDED
        except ApiError as err:
            cancelled = job.cancelled.is_set()
            message.state = JobState.JOB_STATE_CANCELLED if cancelled else JobState.JOB_STATE_FAILED
            message.error = status_pb2.Status(code=err.code.number, message=err.message)
        except Exception as err:
            message.error = status_pb2.Status(code=Code.INTERNAL.number, message=f"the stand-in failed: {err!r}")
            message.state = JobState.JOB_STATE_FAILED
        message.end_time = message.update_time = now()

    def _predict(self, job: _Job, version: SdkMessage, storage: Storage) -> None:
        message = job.message
        parameters = None
        if "model_parameters" in message:
            parameters = value_to_json(type(message).pb(message).model_parameters)
        batch = Batch(
            storage=storage,
            instance_config=message.instance_config,
            parameters=parameters,
            size=message.manual_batch_tuning_parameters.batch_size or DEFAULT_BATCH_SIZE,
        )
        rows: list[Row] = batch.read(list(message.input_config.gcs_source.uris))
        deployed = aiplatform_v1.DeployedModel(
            id=message.name.rsplit("/", 1)[-1][-10:],
            dedicated_resources={"machine_spec": message.dedicated_resources.machine_spec},
        )
        endpoint_id = f"batch-{deployed.id}"
        container = self._deployer.run(version, deployed, endpoint_id, job.cancelled)
        try:
            message.state = JobState.JOB_STATE_RUNNING
            message.start_time = now()
            result = batch.ask(rows, container, job.cancelled)
        finally:
            self._deployer.end(container)
        folder = batch.folder(message.output_config.gcs_destination.output_uri_prefix, version, message.create_time)
        result.write(storage, folder)
        message.output_info.gcs_output_directory = folder
        message.completion_stats.successful_count = len(result.answers)
        message.completion_stats.failed_count = result.failed
        if not result.answers:
            raise ApiError(Code.INTERNAL, f"All {result.failed} instances failed: see {folder}.")
