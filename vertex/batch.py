"""Batch predictions: a job of Google's that asks the model for every row of a file or a table."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import (
    BatchDedicatedResources,
    BatchPredictionJob,
    CreateBatchPredictionJobRequest,
    EncryptionSpec,
    JobState,
    ManualBatchTuningParameters,
)
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Value

from vertex import api_errors, names
from vertex.deploy import machine_spec
from vertex.errors import OperationError, RowsError, VertexError
from vertex.found import MADE_HERE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.cloud.aiplatform_v1 import Model

    from vertex.api import Api
    from vertex.progress import Progress
    from vertex.settings import VertexSettings

# The digest of what a job reads, writes and asks: one that is still running is found by it, and followed.
JOB_LABEL = "marvec-batch"
_DATA_SET = r"bq://[^\s.:/]+\.[^\s.:/]+"
_TABLE = rf"{_DATA_SET}\.[^\s.:/]+"
_BUCKET = r"gs://[a-z0-9][a-z0-9._-]*[a-z0-9]"
_RUNNING = (
    JobState.JOB_STATE_QUEUED,
    JobState.JOB_STATE_PENDING,
    JobState.JOB_STATE_RUNNING,
    JobState.JOB_STATE_PAUSED,
    JobState.JOB_STATE_UPDATING,
    JobState.JOB_STATE_CANCELLING,
)
_DONE = (JobState.JOB_STATE_SUCCEEDED, JobState.JOB_STATE_PARTIALLY_SUCCEEDED)
_LOOK_S = 5.0


@dataclass(frozen=True)
class Batch:
    """What a job reads, writes and asks.

    Attributes:
        source: `gs://BUCKET/….jsonl` (`*` stands for any letters), or `bq://PROJECT.DATASET.TABLE`.
        destination: `gs://BUCKET/FOLDER`, or `bq://PROJECT.DATASET`.
        parameters: Sent with each request; None for none.
        column: The table's column, or the key of each JSON object, that is the text; None for the whole row.

    Raises:
        VertexError: One of them is something else.
    """

    source: str
    destination: str
    parameters: Mapping[str, object] | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(rf"{_BUCKET}/\S*[^\s/]|{_TABLE}", self.source):
            raise VertexError(
                f"--from: expected gs://BUCKET/FILE.jsonl or bq://PROJECT.DATASET.TABLE, got {self.source}"
            )
        if not re.fullmatch(rf"{_BUCKET}(/\S*)?|{_DATA_SET}", self.destination):
            raise VertexError(f"--to: expected gs://BUCKET/FOLDER or bq://PROJECT.DATASET, got {self.destination}")


def request(settings: VertexSettings, version: Model, batch: Batch) -> CreateBatchPredictionJobRequest:
    """Return what creates the job.

    Args:
        settings: The model, and the machines that the job runs on.
        version: The model's version.
        batch: What the job reads, writes and asks.
    """
    job = BatchPredictionJob(
        display_name=f"{settings.model.name}-{version.version_id}",
        model=f"{settings.model_name}@{version.version_id}",
        input_config=_input(batch.source),
        output_config=_output(batch.destination),
        dedicated_resources=BatchDedicatedResources(
            machine_spec=machine_spec(settings),
            starting_replica_count=settings.batch.replicas,
            max_replica_count=settings.batch.replicas,
        ),
        manual_batch_tuning_parameters=ManualBatchTuningParameters(batch_size=settings.batch.instances_per_request),
        service_account=settings.deployment.service_account or "",
        disable_container_logging=not settings.deployment.container_logging,
        labels={**settings.model.labels, **MADE_HERE},
    )
    if batch.column is not None:
        job.instance_config = BatchPredictionJob.InstanceConfig(instance_type="array", included_fields=[batch.column])
    if batch.parameters is not None:
        job.model_parameters = _value(batch.parameters)
    if settings.kms_key is not None:
        job.encryption_spec = EncryptionSpec(kms_key_name=settings.kms_key)
    job.labels[JOB_LABEL] = names.digest(job)
    return CreateBatchPredictionJobRequest(parent=settings.location, batch_prediction_job=job)


def start(api: Api, settings: VertexSettings, wanted: CreateBatchPredictionJobRequest, progress: Progress) -> str:
    """Create the job, unless the same one is running.

    Args:
        api: Google's API.
        settings: Where.
        wanted: What creates it.
        progress: Told of a job that is running.

    Returns:
        The job's name.
    """
    digest = wanted.batch_prediction_job.labels[JOB_LABEL]
    for job in api.batch_jobs(settings.location, JOB_LABEL, digest):
        if job.state in _RUNNING:
            progress.tell(f"the same batch prediction is running: {job.name}")
            return str(job.name)
    return api.create_batch_job(wanted)


def follow(api: Api, settings: VertexSettings, name: str, progress: Progress) -> BatchPredictionJob:
    """Wait for a job's end.

    Args:
        api: Google's API.
        settings: For messages.
        name: The job's.
        progress: Told how far it is.

    Returns:
        The job, done.

    Raises:
        OperationError: It failed or was cancelled.
    """
    try:
        with progress.during(f"batch prediction {names.last(name)}") as show:
            while (job := api.batch_job(name)).state in _RUNNING:
                done = job.completion_stats.successful_count
                show(f"{done:,} rows" if done else JobState(job.state).name.removeprefix("JOB_STATE_").lower())
                time.sleep(_LOOK_S)
            if job.state not in _DONE:
                raise _failure(job, settings)
    except KeyboardInterrupt:
        progress.tell(f"{name} goes on at Google: while it runs, the same command again follows it to its end")
        raise
    return job


def require_all_rows(job: BatchPredictionJob) -> None:
    """Make sure that every row has its prediction.

    Args:
        job: Done.

    Raises:
        RowsError: Rows failed; the message says how many and where their errors are.
    """
    failed = job.completion_stats.failed_count
    if failed or job.partial_failures:
        causes = {api_errors.one_line(status.message) for status in job.partial_failures}
        raise RowsError("; ".join([f"{failed:,} rows failed, {where(job)} holds their errors", *sorted(causes)]))


def where(job: BatchPredictionJob) -> str:
    """Return where a job has written.

    Args:
        job: Done.
    """
    info = job.output_info
    if info.bigquery_output_dataset:
        return f"{info.bigquery_output_dataset}.{info.bigquery_output_table}".rstrip(".")
    return str(info.gcs_output_directory)


def _value(parameters: Mapping[str, object]) -> Value:
    try:
        return json_format.ParseDict(dict(parameters), Value())
    except (json_format.Error, OverflowError) as err:
        raise VertexError(f"--parameters cannot be sent ({api_errors.one_line(str(err))})") from err


def _failure(job: BatchPredictionJob, settings: VertexSettings) -> OperationError | VertexError:
    if job.state == JobState.JOB_STATE_FAILED:
        return api_errors.of_operation(job.error, settings, "the batch prediction")
    return OperationError(f"the batch prediction ended as {JobState(job.state).name}")


def _input(source: str) -> BatchPredictionJob.InputConfig:
    if source.startswith("bq://"):
        return BatchPredictionJob.InputConfig(instances_format="bigquery", bigquery_source={"input_uri": source})
    return BatchPredictionJob.InputConfig(instances_format="jsonl", gcs_source={"uris": [source]})


def _output(destination: str) -> BatchPredictionJob.OutputConfig:
    if destination.startswith("bq://"):
        return BatchPredictionJob.OutputConfig(
            predictions_format="bigquery", bigquery_destination={"output_uri": destination}
        )
    return BatchPredictionJob.OutputConfig(
        predictions_format="jsonl", gcs_destination={"output_uri_prefix": destination}
    )
