"""Lines for a shell: each is what its request says, word for word, whatever the values hold."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.cloud.aiplatform_v1 import UploadModelRequest

from tests.unit.vertex_samples import ENDPOINT, IMAGE, KEY, LOCATION, MODEL, settings, two_versions, version
from vertex import batch, clean_up, deploy, gcloud, upload
from vertex.found import Found

if TYPE_CHECKING:
    from proto import Message

    from vertex.setting_values import Task

PLACE = ["--project=my-project", "--region=europe-west1"]
PROBE = "python,/home/model-server/serving/ready.py"
HOST = "https://europe-west1-aiplatform.googleapis.com/v1"
TOKEN = "Authorization: Bearer $(gcloud auth print-access-token)"
ODD = "a b, 'c' \"d\" $HOME `e` \\ 東京都"


def words(request: Message, **changes: object) -> list[str]:
    """Return the words that a shell makes of a request's line, without those that all lines have."""
    given = shlex.split(gcloud.line(request, settings(**changes)))
    assert given[:2] == ["gcloud", "ai"]
    assert given[-2:] == PLACE
    return given[2:-2]


def sent(line: str) -> tuple[str, object]:
    """Return the URL and the body of a line for curl."""
    *start, url, kind, content_type, how, content = shlex.split(line)
    assert start == ["curl", "-sS", "--fail-with-body", "-H", TOKEN, "-X", "POST"]
    assert (kind, content_type, how) == ("-H", "Content-Type: application/json", "-d")
    body: object = json.loads(content)
    return url, body


def first_upload(**wanted: object) -> UploadModelRequest:
    """Return the upload of a model that has more settings."""
    (request,) = upload.plan(settings(model=wanted), Found())
    del request.model.labels[upload.SETTINGS_LABEL]
    return request


def test_the_least_upload() -> None:
    assert words(first_upload()) == [
        *("models", "upload", "--model-id=minilm", "--display-name=minilm"),
        f"--container-image-uri={IMAGE}",
        "--container-ports=7080",
        "--container-predict-route=/predictions/minilm",
        "--container-health-route=/ping",
        "--container-deployment-timeout-seconds=1800",
        f"--container-startup-probe-exec={PROBE},--wait,595",
        "--container-startup-probe-period-seconds=600",
        "--container-startup-probe-timeout-seconds=600",
        f"--container-health-probe-exec={PROBE}",
        "--container-health-probe-period-seconds=30",
        "--container-health-probe-timeout-seconds=30",
        "--labels=made-with=marvec",
    ]


def test_an_upload_with_all_that_gcloud_takes() -> None:
    request = first_upload(
        description=ODD,
        artifact_uri="gs://bucket/archives",
        environment={"B": "2", "A": "1"},
        shared_memory_mb=64,
        labels={"team": "search"},
    )
    request.model_id = ""
    request.parent_model = MODEL
    request.model.version_aliases = ["default", "canary"]
    given = words(request)
    assert given[:7] == [
        *("models", "upload", f"--parent-model={MODEL}", "--display-name=minilm", f"--description={ODD}"),
        "--version-aliases=default,canary",
        "--artifact-uri=gs://bucket/archives",
    ]
    assert "--container-env-vars=A=1,B=2" in given
    assert "--container-shared-memory-size-mb=64" in given
    assert given[-1] == "--labels=made-with=marvec,team=search"


@pytest.mark.parametrize(
    ("environment", "option"),
    [
        ({"A": "x y", "B": 'it\'s "so"'}, 'A=x y,B=it\'s "so"'),
        ({"A": "1,2", "B": "3"}, "^;^A=1,2;B=3"),
        ({"A": "1,2;3", "B": "4|5"}, "^~^A=1,2;3~B=4|5"),
        ({"A": ",;|~#@%<0>", "B": ""}, "^<1>^A=,;|~#@%<0><1>B="),
        ({"A": "東京、大阪", "B": "k=v"}, "A=東京、大阪,B=k=v"),
        ({"A": ODD}, f"^;^A={ODD}"),
        ({"A": "line 1\nline 2"}, "A=line 1\nline 2"),
    ],
)
def test_variables_with_what_shells_and_gcloud_would_take_apart(environment: dict[str, str], option: str) -> None:
    assert f"--container-env-vars={option}" in words(first_upload(environment=environment))


@pytest.mark.parametrize("changes", [{"model": {"schema_folder": "gs://bucket/schemas"}}, {"kms_key": KEY}])
def test_an_upload_that_gcloud_has_no_options_for(changes: dict[str, object]) -> None:
    (request,) = upload.plan(settings(**changes), Found())
    url, body = sent(gcloud.line(request, settings()))
    assert url == f"{HOST}/{LOCATION}/models:upload"
    whole = gcloud.body(request)
    assert whole.pop("parent") == LOCATION
    assert body == whole


def test_endpoints() -> None:
    create, _ = deploy.plan(settings(), Found((version(1),)), version(1), None)
    assert words(create) == [
        *("endpoints", "create", "--endpoint-id=search", "--display-name=search", "--labels=made-with=marvec")
    ]
    logging = {"log_table": "bq://p.logs.requests", "log_share": 0.25}
    create, _ = deploy.plan(settings(endpoint=logging, kms_key=KEY), Found(), version(1), None)
    assert words(create)[-3:] == [
        f"--encryption-kms-key-name={KEY}",
        "--request-response-logging-table=bq://p.logs.requests",
        "--request-response-logging-rate=0.25",
    ]


def test_a_dedicated_endpoint_is_one_that_gcloud_cannot_make() -> None:
    dedicated = settings(endpoint={"dedicated": True})
    create, _ = deploy.plan(dedicated, Found(), version(1), None)
    assert sent(gcloud.line(create, dedicated)) == (
        f"{HOST}/{LOCATION}/endpoints?endpointId=search",
        {"displayName": "search", "labels": {"made-with": "marvec"}, "dedicatedEndpointEnabled": True},
    )


def test_deployments() -> None:
    (request,) = deploy.plan(settings(), two_versions({"11": 100}), version(3), 10)
    assert words(request) == [
        *("endpoints", "deploy-model", "search", "--model=minilm@3", "--display-name=minilm-3"),
        *("--machine-type=n1-standard-4", "--min-replica-count=1", "--max-replica-count=1"),
        "--traffic-split=0=10,11=90",
    ]
    wanted = {
        "machine": "n1-standard-8",
        "accelerator": "NVIDIA_TESLA_T4",
        "max_replicas": 3,
        "spot": True,
        "service_account": "serving@my-project.iam.gserviceaccount.com",
        "access_logging": True,
        "container_logging": False,
    }
    (request,) = deploy.plan(settings(deployment=wanted), two_versions({"11": 100}), version(3), 0)
    assert words(request)[5:] == [
        *("--machine-type=n1-standard-8", "--accelerator=type=nvidia-tesla-t4,count=1"),
        *("--min-replica-count=1", "--max-replica-count=3", "--autoscaling-metric-specs=gpu-duty-cycle=60", "--spot"),
        "--service-account=serving@my-project.iam.gserviceaccount.com",
        *("--enable-access-logging", "--disable-container-logging", "--traffic-split=11=100"),
    ]


def test_a_load_of_the_cpu() -> None:
    (request,) = deploy.plan(settings(deployment={"max_replicas": 2}), two_versions({"11": 100}), version(3), 0)
    assert "--autoscaling-metric-specs=cpu-usage=60" in words(request)


def test_traffic_and_the_end() -> None:
    assert words(deploy.traffic_request(settings(), {"22": 30, "11": 70})) == [
        *("endpoints", "update", "search", "--traffic-split=11=70,22=30")
    ]
    assert [words(step) for step in clean_up.plan(settings(), two_versions({"11": 40, "22": 60}))] == [
        ["endpoints", "undeploy-model", "search", "--deployed-model-id=11", "--traffic-split=22=100"],
        ["endpoints", "undeploy-model", "search", "--deployed-model-id=22"],
        ["endpoints", "delete", "search", "--quiet"],
        ["models", "delete", "minilm", "--quiet"],
    ]


def test_replicas_are_changed_by_curl() -> None:
    (request,) = deploy.plan(settings(deployment={"min_replicas": 2}), two_versions({"11": 100}), version(1), None)
    url, body = sent(gcloud.line(request, settings()))
    assert url == f"{HOST}/{ENDPOINT}:mutateDeployedModel"
    assert isinstance(body, dict)
    assert body.keys() == {"deployedModel", "updateMask"}
    assert body["deployedModel"]["id"] == "11"


@pytest.mark.parametrize("task", ["embedding", "classification"])
def test_schemas_of_the_task_are_put_where_the_upload_says(task: Task) -> None:
    wanted = settings(model={"task": task, "schema_folder": "gs://bucket/schemas"})
    (request,) = upload.plan(wanted, Found())
    lines = [shlex.split(one) for one in gcloud.schema_lines("gs://bucket/schemas", task)]
    told = request.model.predict_schemata
    places = [told.instance_schema_uri, told.parameters_schema_uri, told.prediction_schema_uri]
    assert [one[-1] for one in lines] == places
    for *words, file, _ in lines:
        assert words == ["gcloud", "storage", "cp", "--no-clobber"]
        assert Path(file).parent.name == task
        assert Path(file).is_file()


def test_a_batch_prediction_is_created_by_curl() -> None:
    asked = batch.Batch("gs://bucket/in.jsonl", "gs://bucket/out", {"promptName": "it's 東京"})
    request = batch.request(settings(), version(1), asked)
    url, body = sent(gcloud.line(request, settings()))
    assert url == f"{HOST}/{LOCATION}/batchPredictionJobs"
    assert body == gcloud.body(request)["batchPredictionJob"]
    assert isinstance(body, dict)
    assert body["modelParameters"] == {"promptName": "it's 東京"}


def test_a_prediction_is_asked_by_gcloud_from_stdin() -> None:
    content = {"instances": [ODD, "END"]}
    first, body, end = gcloud.predict_line(content, settings(), "https://unused").split("\n")
    assert shlex.split(first) == ["gcloud", "ai", "endpoints", "predict", "search", "--json-request=-", *PLACE, "<<END"]
    assert first.endswith(" <<'END'")
    assert json.loads(body) == content
    assert "東京都" in body
    assert end == "END"


def test_a_dedicated_endpoint_is_asked_by_curl() -> None:
    content = {"instances": [ODD]}
    dedicated = settings(endpoint={"dedicated": True})
    assert sent(gcloud.predict_line(content, dedicated, "https://its.own/v1/e")) == (
        "https://its.own/v1/e:predict",
        content,
    )


def test_a_file_goes_as_it_is() -> None:
    file = "it's a file.json"
    assert shlex.split(gcloud.raw_line(file, settings(), "https://host/v1/e")) == [
        *("gcloud", "ai", "endpoints", "raw-predict", "search", f"--request=@{file}", *PLACE)
    ]
    for line in (
        gcloud.raw_line("-", settings(), "https://host/v1/e"),
        gcloud.raw_line("-", settings(endpoint={"dedicated": True}), "https://host/v1/e"),
    ):
        assert shlex.split(line)[-5:] == [
            *("https://host/v1/e:rawPredict", "-H", "Content-Type: application/json", "--data-binary", "@-")
        ]
