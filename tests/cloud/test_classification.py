"""A classifier on Vertex AI, against a stand-in with a real server behind it: one upload and one deployment for all.

It is asked by Google's SDK, by `marvec vertex predict` and by the real gcloud, and runs a batch; scores are those that
transformers computes here.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.commands import Commands
from tests.cloud.conftest import CloudEnvironment, GcloudEnvironment, OpenStandIn
from tests.cloud.images import REGISTRY
from tests.cloud.standin.batch import RESULTS
from tests.cloud.standin.images import marvec_image
from tests.cloud.standin.stand_in import StandIn
from tests.cloud.standin.storage import Storage
from tests.contract.archives import build
from tests.models import classifiers
from tests.sentiment.oracle import Oracle, require_equal
from vertex import schemas

SCRIPT = Path(__file__).resolve().with_name("sdk_classification_script.py")
NAME = "sentiment"
IMAGE = f"{REGISTRY}/{NAME}:1.0"
ARCHIVES = "gs://models/sentiment"
TEXTS = ["a rose farm", "Take away the roses and you end up with a farm with less punch.", "日本の薔薇農家"]
LABELS = ["Positive", "Negative", "Positive"]
PAIR = {"text": "a rose", "text_pair": "the farm in japan"}
NAMES = {"LABEL_0": "Negative", "LABEL_1": "Positive"}
MOST_INSTANCES = 100
TRANSPORTS = ["grpc", "rest"]
BAD_BASE64 = "instances[1].data.b64: not valid base64"
TOO_MANY_LABELS = "parameters.topK: allowed are 1 to 2, got 3"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a classifier whose config.json has no names for its outputs, and index_to_name.json has."""
    folder = classifiers.write(tmp_path_factory.mktemp("classifier") / NAME, "bert", tuple(NAMES))
    (folder / "index_to_name.json").write_text(json.dumps(dict(enumerate(NAMES.values()))))
    return folder


@pytest.fixture(scope="module")
def expected(directory: Path) -> list[dict[str, float]]:
    """Return what transformers says of TEXTS and PAIR."""
    found = Oracle(directory).scores([*TEXTS, PAIR])
    return [{NAMES[label]: score for label, score in scores.items()} for scores in found]


@pytest.fixture(scope="module")
def archive(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the packed classifier, which takes few instances at once."""
    store = tmp_path_factory.mktemp("store") / "store"
    return build(store, NAME, directory, max_instances=MOST_INSTANCES)


@pytest.fixture(scope="module")
def standin(open_standin: OpenStandIn, archive: Path, storage: str) -> Iterator[StandIn]:
    with open_standin({IMAGE: marvec_image(archive.parent)}, storage=storage) as running:
        yield running


@pytest.fixture(scope="module")
def files(storage: str) -> Iterator[Storage]:
    made = Storage(storage)
    yield made
    made.close()


@pytest.fixture(scope="module")
def deployed(
    standin: StandIn, cloud_environment: CloudEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> Commands:
    """Upload and deploy; the last test takes it down."""
    commands = Commands(standin, cloud_environment, tmp_path_factory.mktemp("sentiment"), IMAGE, NAME)
    commands.change(model={"task": "classification", "schema_folder": "gs://models/schemas"})
    commands.run("upload")
    commands.run("deploy")
    return commands


@pytest.fixture(scope="module")
def request_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample's instances as a file, with the parameter that asks for its answer."""
    file = tmp_path_factory.mktemp("requests") / "instances.json"
    instances = [{"data": {"b64": base64.b64encode(text.encode()).decode()}} for text in TEXTS]
    file.write_text(json.dumps({"instances": instances, "parameters": {"output": "label"}}))
    return file


@pytest.fixture(scope="module")
def bad_file(request_file: Path) -> Path:
    """Return the same with a second instance that is no base64."""
    content = json.loads(request_file.read_text())
    content["instances"][1] = {"data": {"b64": "YQ"}}
    file = request_file.with_name("bad.json")
    file.write_text(json.dumps(content))
    return file


@pytest.fixture(scope="module")
def seen_over(deployed: Commands, cloud_environment: CloudEnvironment) -> Mapping[str, Mapping[str, Any]]:
    """Run the SDK's script, and return what it saw over each transport."""
    deployed.standin.calls.clear()
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=cloud_environment(deployed.standin),
        input=json.dumps({"endpoint": NAME, "texts": TEXTS, "pair": PAIR, "transports": TRANSPORTS}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wires = [call.wire for call in deployed.standin.calls.of("Predict")]
    half = len(wires) // 2
    assert wires == ["grpc"] * half + ["rest"] * half
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(params=TRANSPORTS)
def seen(request: pytest.FixtureRequest, seen_over: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    return seen_over[request.param]


def lines(out: str) -> list[Any]:
    """Return the predictions of an output."""
    return [json.loads(line) for line in out.splitlines()]


def scores(predictions: Sequence[Any]) -> list[dict[str, float]]:
    """Return lists of labels with their scores as mappings."""
    return [{item["label"]: item["score"] for item in one} for one in predictions]


def test_the_upload_tells_the_schemas_of_classifiers(deployed: Commands, files: Storage) -> None:
    (upload,) = deployed.standin.calls.of("UploadModel")
    places = schemas.uris("gs://models/schemas", "classification")
    assert upload.body["model"]["predictSchemata"] == {
        "instanceSchemaUri": places.instance,
        "parametersSchemaUri": places.parameters,
        "predictionSchemaUri": places.prediction,
    }
    for name, place in zip(schemas.FILES, places, strict=True):
        assert files.read(place) == schemas.read("classification", name)


def test_the_sdk_gets_labels_for_the_samples_requests(seen: Mapping[str, Any]) -> None:
    assert seen["labels"] == [[label] for label in LABELS]


def test_the_sdk_gets_the_scores_of_transformers(seen: Mapping[str, Any], expected: list[dict[str, float]]) -> None:
    require_equal(scores(seen["scores"]), expected)
    assert [item["label"] for item in seen["best"]] == LABELS
    best = [{label: of[label]} for label, of in zip(LABELS, expected[: len(TEXTS)], strict=True)]
    require_equal(scores([[item] for item in seen["best"]]), best)
    assert seen["first"] == [[item] for item in seen["best"]]


def test_the_sdk_tells_what_is_wrong(seen: Mapping[str, Any]) -> None:
    assert BAD_BASE64 in seen["bad_instance"]
    assert TOO_MANY_LABELS in seen["bad_parameter"]


def test_marvec_predicts_labels_and_scores(
    deployed: Commands, request_file: Path, bad_file: Path, expected: list[dict[str, float]]
) -> None:
    by_file = deployed.run("predict", "--file", str(request_file))
    assert by_file.stdout == "".join(f'"{label}"\n' for label in LABELS)
    rows = request_file.with_name("rows.jsonl")
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in (*TEXTS, PAIR)))
    listed = deployed.run("predict", "--file", str(rows), "--parameters", '{"scores": "all"}')
    require_equal(scores(lines(listed.stdout)), expected)
    refused = deployed.run("predict", "--file", str(bad_file), expect=1)
    assert refused.stderr == f"error: the model server refused (400): {BAD_BASE64}\n"


def test_as_many_texts_as_one_likes(deployed: Commands) -> None:
    """Answers are so small that nothing but the server says how many instances it takes."""
    deployed.standin.calls.clear()
    given = "".join(f"{text}\n" for text in TEXTS * 100)
    done = deployed.run("predict", "-", "--parameters", '{"output": "label"}', given=given)
    assert lines(done.stdout) == LABELS * 100
    counts = [(len(call.body["instances"]), call.outcome == "OK") for call in deployed.standin.calls.of("Predict")]
    assert counts[:4] == [(8, True), (292, False), (146, False), (73, True)]
    assert sum(count for count, taken in counts if taken) == 300


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_predicts_labels(
    deployed: Commands, gcloud_environment: GcloudEnvironment, request_file: Path, bad_file: Path
) -> None:
    environment = gcloud_environment(deployed.standin)

    def predict(file: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *("gcloud", "ai", "endpoints", "predict", NAME, "--region=us-central1"),
                *(f"--json-request={file}", "--format=json"),
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    done = predict(request_file)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["predictions"] if isinstance(answer, dict) else answer) == LABELS
    refused = predict(bad_file)
    assert refused.returncode == 1
    assert BAD_BASE64 in refused.stderr


def test_the_smoke_test_meets_the_golden_scores(
    deployed: Commands, archive: Path, files: Storage, cloud_environment: CloudEnvironment
) -> None:
    files.write(f"{ARCHIVES}/{archive.name}", archive.read_bytes())
    settings = {
        "project": "demo-project",
        "region": "us-central1",
        "model": {"name": NAME, "image": IMAGE},
        "endpoint": {"name": NAME},
    }
    done = subprocess.run(
        [sys.executable, "-m", "vertex.step", "smoke", json.dumps(settings), ARCHIVES],
        env=cloud_environment(deployed.standin),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"7 golden texts: largest difference 0\.00000\d\n", done.stdout)


def test_a_batch_of_labels(deployed: Commands, files: Storage) -> None:
    rows = [*TEXTS, PAIR]
    files.write("gs://inputs/reviews.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows).encode())
    told = deployed.json(
        *("batch-predict", "--from", "gs://inputs/reviews.jsonl", "--to", "gs://outputs/labels"),
        *("--parameters", '{"output": "label"}'),
    )
    assert (told["predicted"], told["failed"]) == (4, 0)
    answers = lines(files.read(f"{told['output']}/{RESULTS}").decode())
    assert answers == [
        {"instance": row, "prediction": label} for row, label in zip(rows, [*LABELS, "Positive"], strict=True)
    ]


def test_the_end(deployed: Commands) -> None:
    """Runs last in this file: it takes away what the others use."""
    deployed.standin.calls.clear()
    assert deployed.run("clean-up", "--yes").stdout == f"nothing is left of {NAME} in demo-project\n"
    assert deployed.standin.calls.changed() == ["UndeployModel", "DeleteEndpoint", "DeleteModel"]
