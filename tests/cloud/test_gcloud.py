"""The real gcloud, unchanged, against a stand-in: upload, deploy, predict, undeploy, delete."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests

from tests.cloud.client import ANSWERED, PARENT
from tests.cloud.conftest import GcloudEnvironment, OpenStandIn
from tests.cloud.images import TINY
from tests.cloud.standin.images import marvec_image
from tests.cloud.standin.stand_in import StandIn

pytestmark = pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")

REGION = "--region=us-central1"
TEXTS = ["query: a rose farm", "日本の薔薇農家"]
READY = "python,/home/model-server/serving/ready.py"


class Gcloud:
    """gcloud with one stand-in behind it.

    Args:
        environment: Its variables.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `gcloud ai …` in the region."""
        return subprocess.run(
            ["gcloud", "ai", *arguments, REGION],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def do(self, *arguments: str) -> str:
        """Run what must succeed, and return its standard output."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def read(self, *arguments: str) -> Any:  # noqa: ANN401
        """Run what must succeed, and return its JSON."""
        return json.loads(self.do(*arguments, "--format=json"))


@pytest.fixture(scope="module")
def watched(open_standin: OpenStandIn, tiny_store: Path) -> Iterator[StandIn]:
    with open_standin({TINY: marvec_image(tiny_store)}) as running:
        yield running


@pytest.fixture(scope="module")
def gcloud(watched: StandIn, gcloud_environment: GcloudEnvironment) -> Gcloud:
    return Gcloud(gcloud_environment(watched))


@pytest.fixture(scope="module")
def deployed(gcloud: Gcloud) -> str:
    """Upload and deploy, and return the deployed model's id."""
    uploaded = gcloud.do(
        "models",
        "upload",
        "--display-name=embedder",
        "--model-id=embedder",
        f"--container-image-uri={TINY}",
        "--container-predict-route=/predictions/tiny",
        "--container-health-route=/ping",
        "--container-ports=7080",
        "--container-env-vars=MARVEC_LOG_LEVEL=info",
        "--container-deployment-timeout-seconds=900",
        "--container-shared-memory-size-mb=64",
        f"--container-startup-probe-exec={READY},--wait,170",
        "--container-startup-probe-period-seconds=180",
        "--container-startup-probe-timeout-seconds=180",
        f"--container-health-probe-exec={READY}",
        "--container-health-probe-period-seconds=30",
        "--container-health-probe-timeout-seconds=30",
        "--version-aliases=stable",
        "--labels=team=search",
        "--format=value(model)",
    )
    assert uploaded == f"{ANSWERED}/models/embedder"
    made = gcloud.do("endpoints", "create", "--display-name=search", "--endpoint-id=search", "--format=value(name)")
    assert made == f"{ANSWERED}/endpoints/search"
    gcloud.do(
        "endpoints",
        "deploy-model",
        "search",
        "--model=embedder",
        "--display-name=embedder-1",
        "--machine-type=n1-standard-4",
        "--accelerator=type=nvidia-tesla-t4,count=1",
        "--min-replica-count=1",
        "--max-replica-count=2",
        "--traffic-split=0=100",
    )
    (one,) = gcloud.read("endpoints", "describe", "search")["deployedModels"]
    return str(one["id"])


@pytest.fixture(scope="module")
def vectors(watched: StandIn, deployed: str) -> np.ndarray:
    """Return what plain HTTP says, without any client of Google's."""
    assert deployed
    answer = requests.post(
        f"{watched.address}/v1/{PARENT}/endpoints/search:predict",
        json={"instances": TEXTS},
        headers={"Authorization": "Bearer a-token"},
        timeout=60,
    )
    return np.array(answer.json()["predictions"])


def test_what_was_uploaded_and_deployed(gcloud: Gcloud, watched: StandIn, deployed: str) -> None:
    (upload,) = watched.calls.of("UploadModel")
    assert upload.body["model"]["containerSpec"] == {
        "imageUri": TINY,
        "predictRoute": "/predictions/tiny",
        "healthRoute": "/ping",
        "ports": [{"containerPort": 7080}],
        "env": [{"name": "MARVEC_LOG_LEVEL", "value": "info"}],
        "deploymentTimeout": "900s",
        "sharedMemorySizeMb": "64",
        "startupProbe": {
            "exec": {"command": ["python", "/home/model-server/serving/ready.py", "--wait", "170"]},
            "periodSeconds": 180,
            "timeoutSeconds": 180,
        },
        "healthProbe": {
            "exec": {"command": ["python", "/home/model-server/serving/ready.py"]},
            "periodSeconds": 30,
            "timeoutSeconds": 30,
        },
    }
    model = gcloud.read("models", "describe", "embedder@stable")
    assert (model["versionId"], model["labels"]) == ("1", {"team": "search"})
    endpoint = gcloud.read("endpoints", "describe", "search")
    assert endpoint["trafficSplit"] == {deployed: 100}
    (one,) = endpoint["deployedModels"]
    assert (one["model"], one["modelVersionId"]) == (f"{ANSWERED}/models/embedder", "1")
    assert one["dedicatedResources"]["machineSpec"] == {
        "machineType": "n1-standard-4",
        "acceleratorType": "NVIDIA_TESLA_T4",
        "acceleratorCount": 1,
    }
    assert one["status"]["availableReplicaCount"] == 1


def test_predict(gcloud: Gcloud, vectors: np.ndarray, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"instances": TEXTS, "parameters": {"outputDimensionality": 8}}))
    answer = gcloud.read("endpoints", "predict", "search", f"--json-request={request}")
    predictions = np.array(answer["predictions"] if isinstance(answer, dict) else answer)
    shortened = vectors[:, :8] / np.linalg.norm(vectors[:, :8], axis=1, keepdims=True)
    np.testing.assert_allclose(predictions, shortened, rtol=0, atol=1e-6)


def test_raw_predict(gcloud: Gcloud, watched: StandIn, vectors: np.ndarray, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"instances": TEXTS}))
    answer = gcloud.read("endpoints", "raw-predict", "search", f"--request=@{request}")
    np.testing.assert_allclose(np.array(answer["predictions"]), vectors, rtol=0, atol=1e-6)
    # gcloud tells no content type: the server must do without.
    assert watched.calls.of("RawPredict")[-1].body["contentType"] == ""


def test_a_wrong_instance_is_told(gcloud: Gcloud, deployed: str, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"instances": ["fine", {"txt": "x"}]}))
    done = gcloud.run("endpoints", "predict", "search", f"--json-request={request}")
    assert done.returncode == 1
    assert "instances[1]: " in done.stderr
    assert re.search("INVALID_ARGUMENT|400", done.stderr)


def test_the_end(gcloud: Gcloud, watched: StandIn, deployed: str) -> None:
    """Runs last in this file: it takes away what the others use."""
    refused = gcloud.run("models", "delete", "embedder")
    assert refused.returncode == 1
    assert "is deployed or being deployed at the following Endpoint(s)" in refused.stderr
    gcloud.do("endpoints", "undeploy-model", "search", f"--deployed-model-id={deployed}")
    gcloud.do("endpoints", "delete", "search")
    gcloud.do("models", "delete", "embedder")
    assert gcloud.read("models", "list") == []
    assert gcloud.read("endpoints", "list") == []
    assert watched.calls.changed()[-4:] == ["DeleteModel", "UndeployModel", "DeleteEndpoint", "DeleteModel"]
