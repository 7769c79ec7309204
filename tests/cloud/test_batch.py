"""Batch predictions against a stand-in and an emulator of Cloud Storage: by Google's SDK, and the job's own rules.

How Google treats the neighbours of a bad row is unverified (tests/cloud/standin/batch.py): here a request that is
refused fails all its rows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.cloud.aiplatform_v1 import BatchPredictionJob, JobState

from tests.cloud.client import PARENT, Client, container, refusal, result
from tests.cloud.conftest import CloudEnvironment, OpenStandIn
from tests.cloud.images import FAILING, PICKY, SERVER, STUB, stub_images
from tests.cloud.standin.batch import ERRORS, RESULTS
from tests.cloud.standin.errors import Code
from tests.cloud.standin.images import marvec_image
from tests.cloud.standin.stand_in import StandIn
from tests.cloud.standin.storage import Storage

SCRIPT = Path(__file__).resolve().with_name("sdk_batch_script.py")
DEADLINE_S = 60
ENDED = (JobState.JOB_STATE_SUCCEEDED, JobState.JOB_STATE_FAILED, JobState.JOB_STATE_CANCELLED)


@pytest.fixture(scope="module")
def files(storage: str) -> Iterator[Storage]:
    made = Storage(storage)
    yield made
    made.close()


@pytest.fixture
def stubbed(open_standin: OpenStandIn, storage: str) -> Iterator[StandIn]:
    with open_standin(stub_images(), storage=storage) as running:
        yield running


@pytest.fixture
def client(stubbed: StandIn) -> Iterator[Client]:
    with Client(stubbed) as made:
        yield made


def described(source: str, **fields: object) -> BatchPredictionJob:
    """Return a job's description."""
    usual: dict[str, object] = {
        "display_name": "job",
        "model": f"{PARENT}/models/demo",
        "input_config": {"instances_format": "jsonl", "gcs_source": {"uris": [source]}},
        "output_config": {
            "predictions_format": "jsonl",
            "gcs_destination": {"output_uri_prefix": "gs://outputs/here"},
        },
        "dedicated_resources": {"machine_spec": {"machine_type": "n1-standard-4"}, "starting_replica_count": 1},
    }
    return BatchPredictionJob(**{**usual, **fields})


def ended(client: Client, job: BatchPredictionJob) -> BatchPredictionJob:
    """Run a job to its end."""
    made = client.jobs.create_batch_prediction_job(parent=PARENT, batch_prediction_job=job)
    deadline = time.monotonic() + DEADLINE_S
    while (found := client.jobs.get_batch_prediction_job(name=made.name)).state not in ENDED:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def lines(files: Storage, uri: str) -> list[Any]:
    return [json.loads(line) for line in files.read(uri).decode().splitlines()]


def put(files: Storage, name: str, rows: list[Any]) -> str:
    uri = f"gs://inputs/{name}"
    files.write(uri, "".join(json.dumps(row) + "\n" for row in rows).encode())
    return uri


def test_the_sdks_batch_predict_with_one_bad_row(
    open_standin: OpenStandIn,
    storage: str,
    files: Storage,
    tiny_store: Path,
    cloud_environment: CloudEnvironment,
    tmp_path: Path,
) -> None:
    """The image has no model: it fetches the archive from the folder that was uploaded with the model."""
    files.write("gs://models/tiny/tiny.mar", (tiny_store / "tiny.mar").read_bytes())
    rows = ["a rose farm", {"text": "日本の薔薇農家"}, ["a row of a table"], {"txt": "wrong key"}, "the last"]
    given = {
        "image": SERVER,
        "served_as": "tiny",
        "artifact_uri": "gs://models/tiny",
        "source": put(files, "sdk/rows.jsonl", rows),
        "destination": "gs://outputs/sdk",
    }
    with open_standin({SERVER: marvec_image(tmp_path)}, storage=storage) as standin:
        done = subprocess.run(
            [sys.executable, str(SCRIPT)],
            env=cloud_environment(standin),
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (job,) = standin.calls.of("CreateBatchPredictionJob")
        assert standin.calls.changed() == [
            "UploadModel",
            "CreateBatchPredictionJob",
            "DeleteBatchPredictionJob",
            "DeleteModel",
        ]
    assert job.body["batchPredictionJob"]["manualBatchTuningParameters"] == {"batchSize": 2}
    seen = json.loads(done.stdout.splitlines()[-1])
    assert (seen["state"], seen["succeeded"], seen["failed"]) == ("JOB_STATE_SUCCEEDED", 3, 2)
    assert re.fullmatch(r"gs://outputs/sdk/prediction-batch_embedder-\d{4}-\d\d-\d\dT[\d:.]+Z", seen["folder"])
    answers = lines(files, f"{seen['folder']}/{RESULTS}")
    assert [answer["instance"] for answer in answers] == [rows[0], rows[1], rows[4]]
    assert {len(answer["prediction"]) for answer in answers} == {8}
    ((message, count),) = lines(files, f"{seen['folder']}/{ERRORS}")
    assert count == 2
    assert message.startswith("Post request fails. Cannot get predictions. Error: 400 ")
    assert "instances[1]: " in message


def test_rows_of_several_files_in_requests_of_a_size(client: Client, files: Storage) -> None:
    client.upload()
    put(files, "many/a.jsonl", [{"key": i, "text": f"text {i}", "rest": 1} for i in range(3)])
    put(files, "many/b.jsonl", [{"key": i, "text": f"text {i}", "rest": 1} for i in range(3, 5)])
    job = described(
        "gs://inputs/many/*.jsonl",
        instance_config={"key_field": "key", "included_fields": ["text"]},
        manual_batch_tuning_parameters={"batch_size": 2},
    )
    found = ended(client, job)
    assert found.state == JobState.JOB_STATE_SUCCEEDED
    assert (found.completion_stats.successful_count, found.completion_stats.failed_count) == (5, 0)
    answers = lines(files, f"{found.output_info.gcs_output_directory}/{RESULTS}")
    assert [(line["key"], line["prediction"]["instance"]) for line in answers] == [
        (i, {"text": f"text {i}"}) for i in range(5)
    ]
    assert lines(files, f"{found.output_info.gcs_output_directory}/{ERRORS}") == []
    assert list(client.endpoints.list_endpoints(parent=PARENT)) == []


def test_a_refused_request_fails_its_rows_alone(client: Client, files: Storage) -> None:
    client.upload(spec=container(PICKY))
    source = put(files, "picky.jsonl", ["a", "b", "bad", "d", "e"])
    found = ended(client, described(source, manual_batch_tuning_parameters={"batch_size": 2}))
    assert (found.completion_stats.successful_count, found.completion_stats.failed_count) == (3, 2)
    answers = lines(files, f"{found.output_info.gcs_output_directory}/{RESULTS}")
    assert [line["instance"] for line in answers] == ["a", "b", "e"]


@pytest.mark.parametrize(
    ("image", "source", "told"),
    [
        pytest.param(FAILING, "rows", "All 1 instances failed: see gs://outputs/here/prediction-demo-", id="all-fail"),
        pytest.param(STUB, "absent", "No files were found for gs://inputs/absent.jsonl.", id="no-file"),
        pytest.param(STUB, "empty", "The input has no instances.", id="no-rows"),
        pytest.param(STUB, "broken", "gs://inputs/broken.jsonl:2 is no JSON: ", id="no-json"),
    ],
)
def test_jobs_that_fail(client: Client, files: Storage, image: str, source: str, told: str) -> None:
    put(files, "rows.jsonl", ["a"])
    files.write("gs://inputs/empty.jsonl", b"\n")
    files.write("gs://inputs/broken.jsonl", b'"a"\n{"text": \n')
    client.upload(spec=container(image))
    found = ended(client, described(f"gs://inputs/{source}.jsonl"))
    assert found.state == JobState.JOB_STATE_FAILED
    assert found.error.message.startswith(told)


def test_bigquery_is_checked_and_does_not_run_here(client: Client) -> None:
    client.upload()
    tables = {
        "input_config": {
            "instances_format": "bigquery",
            "bigquery_source": {"input_uri": "bq://demo-project.texts.rows"},
        },
        "output_config": {
            "predictions_format": "bigquery",
            "bigquery_destination": {"output_uri": "bq://demo-project.texts"},
        },
    }
    found = ended(client, described("", **tables))
    assert found.state == JobState.JOB_STATE_FAILED
    assert found.error.message == (
        "the stand-in has no BigQuery: the job's description is right, and the job cannot run here"
    )
    tables["input_config"] = {
        "instances_format": "bigquery",
        "bigquery_source": {"input_uri": "demo-project.texts.rows"},
    }
    with pytest.raises(GoogleAPICallError) as caught:
        ended(client, described("", **tables))
    assert refusal(caught.value) == (
        "batch_prediction_job: 'demo-project.texts.rows': expected bq://PROJECT.DATASET.TABLE"
    )


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"dedicated_resources": None}, ".dedicated_resources: required, since the model supports DEDICATED_RESOURCES"),
        (
            {"dedicated_resources": {"machine_spec": {"machine_type": "n1-standard-4"}}},
            ".dedicated_resources: 0 replicas at the start and 0 at most",
        ),
        (
            {"dedicated_resources": {"machine_spec": {}, "starting_replica_count": 1}},
            ".dedicated_resources.machine_spec.machine_type: required",
        ),
        ({"instance_config": {"instance_type": "text"}}, ".instance_config.instance_type: expected object or array"),
    ],
)
def test_jobs_that_are_refused(client: Client, fields: dict[str, object], told: str) -> None:
    client.upload()
    with pytest.raises(GoogleAPICallError) as caught:
        ended(client, described("gs://inputs/rows.jsonl", **fields))
    assert refusal(caught.value).startswith(f"batch_prediction_job{told}")


def test_a_job_that_is_cancelled_and_deleted(client: Client, stubbed: StandIn, files: Storage) -> None:
    client.upload(spec=container(env=[{"name": "STUB_READY_AFTER_S", "value": "99"}]))
    source = put(files, "long.jsonl", ["a"])
    made = client.jobs.create_batch_prediction_job(parent=PARENT, batch_prediction_job=described(source))
    with pytest.raises(GoogleAPICallError, match="is not over: cancel it first"):
        client.jobs.delete_batch_prediction_job(name=made.name)
    client.jobs.cancel_batch_prediction_job(name=made.name)
    deadline = time.monotonic() + DEADLINE_S
    while client.jobs.get_batch_prediction_job(name=made.name).state != JobState.JOB_STATE_CANCELLED:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (listed,) = client.jobs.list_batch_prediction_jobs(parent=PARENT)
    assert listed.name == made.name
    result(client.jobs.delete_batch_prediction_job(name=made.name))
    with pytest.raises(NotFound):
        client.jobs.get_batch_prediction_job(name=made.name)
    stubbed.trouble.fail_operation("CreateBatchPredictionJob", Code.RESOURCE_EXHAUSTED)
    found = ended(client, described(source))
    assert found.state == JobState.JOB_STATE_FAILED
    assert found.error.message.startswith("The following quota metrics exceed quota limits: ")
