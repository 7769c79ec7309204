"""Batch predictions: what a job is asked, that the same one is never begun twice, and what is told of its end."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from google.cloud.aiplatform_v1 import BatchPredictionJob, CreateBatchPredictionJobRequest, JobState
from google.rpc.code_pb2 import Code
from google.rpc.status_pb2 import Status

from tests.unit.vertex_samples import KEY, LOCATION, MODEL, Told, settings, version
from vertex import batch
from vertex.api import Api
from vertex.batch import Batch
from vertex.errors import OperationError, QuotaError, RowsError, VertexError
from vertex.gcloud import body

JOB = f"{LOCATION}/batchPredictionJobs/7"
LEAST = Batch("gs://bucket/in.jsonl", "gs://bucket/out")


class Jobs(Api):
    """A stand-in for `vertex.api.Api`, at our own seam: jobs that are listed, and one that goes through states."""

    def __init__(self, listed: Sequence[BatchPredictionJob] = (), states: Sequence[BatchPredictionJob] = ()) -> None:
        self.listed = listed
        self.states = list(states)
        self.asked: list[tuple[str, str, str]] = []
        self.created: list[CreateBatchPredictionJobRequest] = []

    def batch_jobs(self, location: str, label: str, value: str) -> tuple[BatchPredictionJob, ...]:
        self.asked.append((location, label, value))
        return tuple(self.listed)

    def create_batch_job(self, request: CreateBatchPredictionJobRequest) -> str:
        self.created.append(request)
        return JOB

    def batch_job(self, name: str) -> BatchPredictionJob:
        assert name == JOB
        return self.states.pop(0)


def job(state: JobState, successful: int = 0, failed: int = 0, **more: object) -> BatchPredictionJob:
    """Return a job as it stands."""
    counts = {"successful_count": successful, "failed_count": failed}
    return BatchPredictionJob(name=JOB, state=state, completion_stats=counts, **more)


def asked(wanted: Batch, **changes: object) -> dict[str, object]:
    """Return a job as it is asked for, without its labels."""
    content = body(batch.request(settings(**changes), version(2), wanted))
    assert content["parent"] == LOCATION
    inner = content["batchPredictionJob"]
    assert isinstance(inner, dict)
    del inner["labels"]
    return inner


def test_a_file() -> None:
    assert asked(LEAST) == {
        "displayName": "minilm-2",
        "model": f"{MODEL}@2",
        "inputConfig": {"instancesFormat": "jsonl", "gcsSource": {"uris": ["gs://bucket/in.jsonl"]}},
        "outputConfig": {
            "predictionsFormat": "jsonl",
            "gcsDestination": {"outputUriPrefix": "gs://bucket/out"},
        },
        "dedicatedResources": {
            "machineSpec": {"machineType": "n1-standard-4"},
            "startingReplicaCount": 1,
            "maxReplicaCount": 1,
        },
        "manualBatchTuningParameters": {"batchSize": 64},
    }


def test_a_table_and_all_that_can_be_set() -> None:
    wanted = Batch("bq://p.texts.all", "bq://p.vectors", {"outputDimensionality": 256}, "text")
    content = asked(
        wanted,
        batch={"replicas": 3, "instances_per_request": 128},
        deployment={
            "machine": "g2-standard-4",
            "service_account": "batch@my-project.iam.gserviceaccount.com",
            "container_logging": False,
        },
        kms_key=KEY,
    )
    assert content == {
        "displayName": "minilm-2",
        "model": f"{MODEL}@2",
        "inputConfig": {"instancesFormat": "bigquery", "bigquerySource": {"inputUri": "bq://p.texts.all"}},
        "instanceConfig": {"instanceType": "array", "includedFields": ["text"]},
        "modelParameters": {"outputDimensionality": 256},
        "outputConfig": {"predictionsFormat": "bigquery", "bigqueryDestination": {"outputUri": "bq://p.vectors"}},
        "dedicatedResources": {
            "machineSpec": {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1},
            "startingReplicaCount": 3,
            "maxReplicaCount": 3,
        },
        "manualBatchTuningParameters": {"batchSize": 128},
        "serviceAccount": "batch@my-project.iam.gserviceaccount.com",
        "disableContainerLogging": True,
        "encryptionSpec": {"kmsKeyName": KEY},
    }


def test_a_job_is_known_by_all_that_it_is_asked() -> None:
    def labels(wanted: Batch, number: int = 2, **changes: object) -> dict[str, str]:
        return dict(batch.request(settings(**changes), version(number), wanted).batch_prediction_job.labels)

    same = labels(LEAST, model={"labels": {"team": "search"}})
    assert same == {"team": "search", "made-with": "marvec", "marvec-batch": same["marvec-batch"]}
    digests = [
        labels(one)["marvec-batch"]
        for one in (
            LEAST,
            Batch("gs://bucket/other.jsonl", LEAST.destination),
            Batch(LEAST.source, "gs://bucket/other"),
            Batch(LEAST.source, LEAST.destination, {}),
            Batch(LEAST.source, LEAST.destination, {"normalize": True}),
        )
    ]
    digests += [labels(LEAST, 3)["marvec-batch"], labels(LEAST, batch={"replicas": 2})["marvec-batch"]]
    assert len(set(digests)) == len(digests)
    assert labels(LEAST)["marvec-batch"] == digests[0]


@pytest.mark.parametrize("source", ["gs://bucket/a/*.jsonl", "gs://bucket/a", "bq://my-project.set.table"])
@pytest.mark.parametrize("destination", ["gs://bucket", "gs://bucket/", "gs://bucket/a/", "bq://p.set"])
def test_what_a_job_reads_and_writes(source: str, destination: str) -> None:
    Batch(source, destination)


@pytest.mark.parametrize(
    "source",
    ["in.jsonl", "gs://bucket", "gs://bucket/", "gs://bucket/a/", "gs://Bucket/a", "bq://p.set", "bq://p.s.t.x"],
)
def test_what_a_job_cannot_read(source: str) -> None:
    with pytest.raises(VertexError) as caught:
        Batch(source, "gs://bucket/out")
    expected = "expected gs://BUCKET/FILE.jsonl or bq://PROJECT.DATASET.TABLE"
    assert str(caught.value) == f"--from: {expected}, got {source}"


@pytest.mark.parametrize("destination", ["out", "gs://", "bq://p", "bq://p.s.t", "gs://bucket/a b"])
def test_what_a_job_cannot_write(destination: str) -> None:
    with pytest.raises(VertexError) as caught:
        Batch("gs://bucket/in.jsonl", destination)
    assert str(caught.value) == f"--to: expected gs://BUCKET/FOLDER or bq://PROJECT.DATASET, got {destination}"


@pytest.mark.parametrize("source", ["gs://bucket/in.jsonl", "bq://p.s.t"])
def test_one_field_of_each_row_can_be_the_text(source: str) -> None:
    wanted = batch.request(settings(), version(2), Batch(source, "gs://bucket/out", column="text"))
    config = body(wanted)["batchPredictionJob"]["instanceConfig"]  # type: ignore[index]
    assert config == {"instanceType": "array", "includedFields": ["text"]}


@pytest.mark.parametrize("state", [JobState.JOB_STATE_QUEUED, JobState.JOB_STATE_PENDING, JobState.JOB_STATE_RUNNING])
def test_the_same_job_is_followed_while_it_runs(state: JobState) -> None:
    told, jobs = Told(), Jobs([job(JobState.JOB_STATE_SUCCEEDED), job(state)])
    wanted = batch.request(settings(), version(2), LEAST)
    assert batch.start(jobs, settings(), wanted, told.progress) == JOB
    assert jobs.asked == [(LOCATION, "marvec-batch", wanted.batch_prediction_job.labels["marvec-batch"])]
    assert jobs.created == []
    assert told.lines == [f"the same batch prediction is running: {JOB}"]


@pytest.mark.parametrize("listed", [[], [job(JobState.JOB_STATE_SUCCEEDED), job(JobState.JOB_STATE_FAILED)]])
def test_a_job_that_is_over_is_begun_again(listed: list[BatchPredictionJob]) -> None:
    told, jobs = Told(), Jobs(listed)
    wanted = batch.request(settings(), version(2), LEAST)
    assert batch.start(jobs, settings(), wanted, told.progress) == JOB
    assert jobs.created == [wanted]
    assert told.lines == []


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that vertex.batch would sleep, and let it not sleep."""
    slept: list[float] = []
    monkeypatch.setattr("vertex.batch.time", SimpleNamespace(sleep=slept.append))
    return slept


def test_a_job_is_followed_to_its_end(slept: list[float]) -> None:
    done = job(JobState.JOB_STATE_SUCCEEDED, 10)
    told, jobs = Told(), Jobs((), [job(JobState.JOB_STATE_QUEUED), job(JobState.JOB_STATE_RUNNING, 4), done])
    assert batch.follow(jobs, settings(), JOB, told.progress) == done
    assert told.lines == ["batch prediction 7 …", "batch prediction 7: done after 0 s"]
    assert slept == [5.0, 5.0]


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        (
            job(JobState.JOB_STATE_FAILED, error=Status(code=Code.INTERNAL, message="no\nluck")),
            OperationError,
            "the batch prediction failed: no luck",
        ),
        (
            job(JobState.JOB_STATE_CANCELLED),
            OperationError,
            "the batch prediction ended as JOB_STATE_CANCELLED",
        ),
    ],
)
def test_a_job_that_fails(end: BatchPredictionJob, kind: type[VertexError], message: str) -> None:
    with pytest.raises(VertexError) as caught:
        batch.follow(Jobs((), [end]), settings(), JOB, Told().progress)
    assert (type(caught.value), str(caught.value)) == (kind, message)


def test_a_job_that_meets_a_quota() -> None:
    end = job(JobState.JOB_STATE_FAILED, error=Status(code=Code.RESOURCE_EXHAUSTED, message="no more"))
    with pytest.raises(QuotaError, match=r"^a quota of my-project in europe-west1 is used up: .* said: no more$"):
        batch.follow(Jobs((), [end]), settings(), JOB, Told().progress)


def test_an_interrupted_wait_tells_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vertex.batch.time", SimpleNamespace(sleep=interrupted))
    told = Told()
    with pytest.raises(KeyboardInterrupt):
        batch.follow(Jobs((), [job(JobState.JOB_STATE_RUNNING)]), settings(), JOB, told.progress)
    assert told.lines[1:] == [f"{JOB} goes on at Google: while it runs, the same command again follows it to its end"]


def test_rows_that_failed_are_an_error() -> None:
    folder = {"gcs_output_directory": "gs://bucket/out/prediction-1"}
    batch.require_all_rows(job(JobState.JOB_STATE_SUCCEEDED, 10, output_info=folder))
    causes = [Status(message="too\nlong"), Status(message="no text"), Status(message="too long")]
    end = job(JobState.JOB_STATE_SUCCEEDED, 10, 1234, output_info=folder, partial_failures=causes)
    with pytest.raises(RowsError) as caught:
        batch.require_all_rows(end)
    assert str(caught.value) == (
        "1,234 rows failed, gs://bucket/out/prediction-1 holds their errors; no text; too long"
    )


def test_rows_that_failed_without_a_cause_are_an_error_too() -> None:
    end = job(JobState.JOB_STATE_SUCCEEDED, 0, 1, output_info={"gcs_output_directory": "gs://bucket/out"})
    with pytest.raises(RowsError, match=r"^1 rows failed, gs://bucket/out holds their errors$"):
        batch.require_all_rows(end)


@pytest.mark.parametrize(
    ("info", "place"),
    [
        ({"gcs_output_directory": "gs://bucket/out"}, "gs://bucket/out"),
        ({"bigquery_output_dataset": "bq://p.set", "bigquery_output_table": "t"}, "bq://p.set.t"),
        ({"bigquery_output_dataset": "bq://p.set"}, "bq://p.set"),
    ],
)
def test_where_the_vectors_are(info: dict[str, str], place: str) -> None:
    assert batch.where(job(JobState.JOB_STATE_SUCCEEDED, output_info=info)) == place
