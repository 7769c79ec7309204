"""`marvec vertex predict` and `batch-predict` against a stand-in, with real servers of real archives behind it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import requests

from tests.cloud.commands import Commands
from tests.cloud.conftest import CloudEnvironment, OpenStandIn
from tests.cloud.images import BROKEN, MINILM, PICKY, STUB
from tests.server.running import Server

if TYPE_CHECKING:
    from tests.cloud.standin.images import Image
    from tests.cloud.standin.stand_in import StandIn

TEXTS = ["query: a rose farm", "日本の薔薇農家", "", "hello\u2028world"]


@pytest.fixture(scope="module")
def vectors(minilm_store: Path) -> Iterator[Server]:
    """Serve the same archive here."""
    with Server(minilm_store, "minilm") as server:
        yield server


@pytest.fixture(scope="module")
def deployed(
    open_standin: OpenStandIn,
    images: Mapping[str, Image],
    cloud_environment: CloudEnvironment,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Commands]:
    """Deploy MiniLM with the commands, to a dedicated endpoint; and take it down with them."""
    with open_standin({MINILM: images[MINILM]}) as standin:
        commands = Commands(standin, cloud_environment, tmp_path_factory.mktemp("minilm"), MINILM, "minilm")
        commands.change(endpoint={"dedicated": True})
        commands.run("upload")
        commands.run("deploy")
        yield commands
        assert commands.run("clean-up", "--yes").stdout == "nothing is left of minilm in demo-project\n"


def lines(out: str) -> list[object]:
    """Return the predictions of an output."""
    return [json.loads(line) for line in out.splitlines()]


def assert_close(one: object, other: object) -> None:
    """Make sure that two vectors, or lists of them, are the same."""
    np.testing.assert_allclose(np.array(one, np.float64), np.array(other, np.float64), rtol=0, atol=1e-5)


def local(server: Server, content: Mapping[str, object]) -> list[object]:
    """Return what the server here predicts."""
    answer = requests.post(server.predictions("minilm"), json=content, timeout=60)
    predictions: list[object] = answer.json()["predictions"]
    return predictions


def test_vectors_are_those_of_the_same_archive_here(deployed: Commands, vectors: Server) -> None:
    got = lines(deployed.run("predict", "--", *TEXTS).stdout)
    assert_close(got, local(vectors, {"instances": TEXTS}))


def test_a_file_of_any_size_in_any_form(deployed: Commands, tmp_path: Path) -> None:
    parameters = ("--parameters", '{"outputDimensionality": 4}')
    words = "word " * 10_000
    instances: list[object] = [{"text": f"{i} {words}"} for i in range(250)]
    file = tmp_path / "large.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in instances))
    assert file.stat().st_size > 12_000_000
    deployed.standin.calls.clear()
    few = lines(deployed.run("predict", "--file", str(file), *parameters).stdout)
    assert (len(few), {len(vector) for vector in few if isinstance(vector, list)}) == (250, {4})
    # At first 8, to see how large an answer is, and then as many as 10 MB hold.
    assert [len(call.body["instances"]) for call in deployed.standin.calls.of("Predict")] == [8, 199, 43]
    request = tmp_path / "request.json"
    encoded = base64.b64encode("日本".encode()).decode()
    content = {"instances": [{"data": {"b64": encoded}}, "日本"], "parameters": {"outputDimensionality": 4}}
    request.write_text(json.dumps(content))
    first, second = lines(deployed.run("predict", "--file", str(request)).stdout)
    assert first == second
    by_stdin = lines(deployed.run("predict", "-", *parameters, given="日本\nother\n").stdout)
    assert len(by_stdin) == 2
    assert_close(by_stdin[0], first)
    raw = json.loads(deployed.run("predict", "--raw", "--file", str(request)).stdout)
    assert_close(raw["predictions"][0], first)


def test_what_the_server_refuses_is_told_with_the_place_among_all(deployed: Commands, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('"text"\n' * 30 + '{"txt": 1}\n')
    failed = deployed.run("predict", "--file", str(file), expect=1)
    assert failed.stderr.startswith("error: the model server refused (400): instances[30]")
    assert len(failed.stdout.splitlines()) in range(31)
    file.write_text('"text"\n{"text": \n')
    assert deployed.run("predict", "--file", str(file), expect=1).stderr.startswith(
        f"error: {file}, line 2 is no JSON (Expecting value"
    )


def test_what_is_too_much_for_the_server_is_sent_in_parts(
    open_standin: OpenStandIn, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    from tests.cloud.standin.images import stub_image

    with open_standin({STUB: stub_image(STUB_MOST="10")}) as standin:
        commands = Commands(standin, cloud_environment, tmp_path, STUB)
        commands.run("upload")
        commands.run("deploy")
        (tmp_path / "texts").write_text("".join(f"{i}\n" for i in range(100)))
        answers = commands.json("predict", "--file", "texts")["predictions"]
    assert isinstance(answers, list)
    assert [answer["instance"] for answer in answers] == [str(i) for i in range(100)]


def test_there_is_nothing_to_ask(stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    assert commands.run("predict", "a", expect=4).stderr == (
        "error: there is no endpoint stub in us-central1: marvec vertex deploy\n"
    )
    assert commands.run("predict", expect=1).stderr == (
        "error: what is to be asked: texts on the command line, or --file FILE\n"
    )
    commands.change(model={"image": BROKEN, "startup_timeout_s": 10})
    commands.run("upload")
    commands.run("deploy", expect=6)
    assert commands.run("predict", "a", expect=4).stderr == (
        "error: nothing is deployed on the endpoint stub: marvec vertex deploy\n"
    )


def test_a_batch_with_a_bad_row(
    standin: StandIn, storage: str, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    commands = Commands(standin, cloud_environment, tmp_path, PICKY)
    commands.change(batch={"instances_per_request": 1})
    commands.run("upload")
    rows = ["one", "bad", "three"]
    _put(storage, "inputs", "rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ("batch-predict", "--from", "gs://inputs/rows.jsonl", "--to", "gs://outputs/vectors")
    failed = commands.run(*arguments, "--json", expect=8)
    told = json.loads(failed.stdout)
    assert (told["predicted"], told["failed"]) == (2, 1)
    assert told["output"].startswith("gs://outputs/vectors/prediction-")
    assert failed.stderr.splitlines()[-1].startswith(f"error: 1 rows failed, {told['output']} holds their errors")
    (job,) = standin.calls.of("CreateBatchPredictionJob")
    content = job.body["batchPredictionJob"]
    assert content["inputConfig"] == {"instancesFormat": "jsonl", "gcsSource": {"uris": ["gs://inputs/rows.jsonl"]}}
    assert content["manualBatchTuningParameters"] == {"batchSize": 1}
    standin.calls.clear()
    printed = commands.run(*arguments, "--dry-run").stdout
    assert standin.calls.changed() == []
    assert "/v1/projects/demo-project/locations/us-central1/batchPredictionJobs " in printed


def _put(storage: str, bucket: str, name: str, content: str) -> None:
    answer = requests.post(
        f"{storage}/upload/storage/v1/b/{bucket}/o",
        params={"uploadType": "media", "name": name},
        data=content.encode(),
        timeout=30,
    )
    answer.raise_for_status()
