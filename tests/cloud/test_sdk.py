"""Google's own SDK, unchanged, against a stand-in, with real servers of ours behind it: gRPC and REST, by the proxy."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from tests.cloud.client import ANSWERED
from tests.cloud.conftest import CloudEnvironment, OpenStandIn
from tests.cloud.images import MINILM, STUB, TINY
from tests.cloud.standin.images import Image
from tests.cloud.standin.stand_in import StandIn
from tests.server.running import Server

SCRIPT = Path(__file__).resolve().with_name("sdk_script.py")
TEXTS = ["query: a rose farm", "日本の薔薇農家", "", "A longer text, of which more than one token is made."]
_MINILM = {"image": MINILM, "served_as": "minilm"}
_TINY = {"image": TINY, "served_as": "tiny"}
# One run with servers of ours alone; in the other the second version is a stub, which is quicker.
IMAGES = {"grpc": (_MINILM, _TINY), "rest": (_TINY, {"image": STUB, "served_as": "stub"})}
DIMENSIONS = {"grpc": 384, "rest": 32}


@pytest.fixture(scope="module")
def local_vectors(minilm_store: Path) -> list[list[float]]:
    """Return what the archive answers when it is served here, without Vertex AI."""
    with Server(minilm_store, "minilm") as server:
        answer = requests.post(server.predictions("minilm"), json={"instances": TEXTS}, timeout=60)
    vectors: list[list[float]] = answer.json()["predictions"]
    return vectors


@pytest.fixture(scope="module", params=["grpc", "rest"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def watched(open_standin: OpenStandIn, images: Mapping[str, Image], transport: str) -> Iterator[StandIn]:
    """Run a stand-in for one run of the script."""
    with open_standin(images) as running:
        yield running


@pytest.fixture(scope="module")
def seen(watched: StandIn, transport: str, cloud_environment: CloudEnvironment) -> Mapping[str, Any]:
    """Run the script, and return what it saw."""
    first, second = IMAGES[transport]
    b64 = base64.b64encode(TEXTS[1].encode()).decode()
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=cloud_environment(watched, transport),
        input=json.dumps({"first": first, "second": second, "texts": TEXTS, "b64": b64}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_vectors_are_those_of_a_local_server(
    seen: Mapping[str, Any], transport: str, request: pytest.FixtureRequest
) -> None:
    # Over REST, where the tiny model serves, what raw_predict hands on untouched says what is right.
    expected = np.array(request.getfixturevalue("local_vectors") if transport == "grpc" else seen["raw"])
    assert expected.shape == (len(TEXTS), DIMENSIONS[transport])
    np.testing.assert_allclose(seen["vectors"], expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(seen["raw"], expected, rtol=0, atol=1e-6)
    # As Google's own notebooks send texts.
    np.testing.assert_allclose(seen["b64"], expected[1:2], rtol=0, atol=1e-6)


def test_parameters_and_many_instances(seen: Mapping[str, Any]) -> None:
    # The script's 16 arrives as 16.0.
    assert seen["many"] == [101, [16]]


def test_who_answered(seen: Mapping[str, Any]) -> None:
    assert seen["model"] == [f"{ANSWERED}/models/embedder", "1"]
    assert set(seen["raw_headers"]) == {"X-Vertex-AI-Endpoint-Id", "X-Vertex-AI-Deployed-Model-Id"}
    assert seen["raw_headers"]["X-Vertex-AI-Endpoint-Id"] == "search"


def test_the_size_of_a_request(seen: Mapping[str, Any]) -> None:
    assert seen["large"] == 14
    assert "Request payload size exceeds the limit: 1500000 bytes." in seen["too_large"]
    assert seen["dns"] == "large.us-central1-123456789012.prediction.vertexai.goog"
    assert seen["dedicated_large"] == 16


def test_what_is_wrong_with_an_instance_is_told(seen: Mapping[str, Any]) -> None:
    assert "instances[0]: " in seen["bad"]


def test_versions_and_traffic(seen: Mapping[str, Any]) -> None:
    assert seen["version"] == ["2", ["canary"]]
    assert seen["split"] == {"1": 80, "2": 20}
    assert seen["left"] == ["2"]


def test_nothing_is_left(seen: Mapping[str, Any], watched: StandIn) -> None:
    assert seen["models"] == []
    ended = ["UndeployModel", "DeleteEndpoint"]
    assert [method for method in watched.calls.changed() if method.startswith(("Undeploy", "Delete"))] == [
        "UndeployModel",
        *ended,
        *ended,
        "DeleteModel",
    ]
    assert {call.outcome for call in watched.calls.changes()} == {"OK"}


def test_calls_came_over_the_wire_that_was_asked_for(seen: Mapping[str, Any], watched: StandIn, transport: str) -> None:
    assert seen["models"] == []
    assert {call.wire for call in watched.calls.of("UploadModel", "DeployModel", "GetOperation")} == {transport}
    assert {call.wire for call in watched.calls.of("RawPredict")} == {"rest"}
    (upload, _) = watched.calls.of("UploadModel")
    container = upload.body["model"]["containerSpec"]
    assert container["startupProbe"] == {
        "exec": {"command": ["python", "/home/model-server/serving/ready.py", "--wait", "170"]},
        "periodSeconds": 180,
        "timeoutSeconds": 180,
    }
