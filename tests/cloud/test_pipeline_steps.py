"""What the pipelines' steps do, in their order, against a stand-in: their own command lines, run as processes.

Only Kubeflow's launcher is missing, which needs a container engine; its placeholders are filled in here.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cloud.compiled import containers
from tests.cloud.images import SERVER

if TYPE_CHECKING:
    from tests.cloud.conftest import CloudEnvironment, OpenStandIn
    from tests.cloud.standin.stand_in import StandIn
    from tests.cloud.standin.storage import Storage
    from tests.models.tiny import TinyModels

ARCHIVE = "gs://outputs/runs/1/pack/archive"
SETTINGS = {
    "project": "demo-project",
    "region": "us-central1",
    "model": {"name": "road", "served_as": "tiny", "image": SERVER},
    "endpoint": {"name": "road"},
}
VALUES = {
    "settings": json.dumps(SETTINGS),
    "model": "gs://models/tiny-bert",
    "options": "--workers 1 --prompt 'query=query: '",
    "archive": ARCHIVE,
}
PLACEHOLDER = re.compile(r"\{\{\$\.(?:in|out)puts\.(?:parameters|artifacts)\['(\w+)'\](?:\.uri)?\}\}")


@dataclass(frozen=True)
class Road:
    """A stand-in, and the steps that were run on it.

    Attributes:
        standin: The stand-in.
        storage: Its Cloud Storage.
        environment: The variables of a step.
        done: What the steps of the pipeline ended with, by name.
    """

    standin: StandIn
    storage: Storage
    environment: Mapping[str, str]
    done: dict[str, subprocess.CompletedProcess[str]]

    def run(self, step: str, **values: str) -> subprocess.CompletedProcess[str]:
        """Run a step of the compiled pipeline with values for its placeholders."""
        container = containers()[step]
        given = {**VALUES, **values}
        words = [
            PLACEHOLDER.sub(lambda found: given[found[1]], word) for word in container["command"] + container["args"]
        ]
        assert not any("{{" in word for word in words)
        folder = Path(sys.executable).parent
        environment = {**self.environment, "PATH": f"{folder}:{self.environment['PATH']}"}
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def road(
    open_standin: OpenStandIn,
    storage: str,
    cloud_environment: CloudEnvironment,
    tiny_models: TinyModels,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Road]:
    """Return the stand-in after all steps of the pipeline, in their order; a step that fails ends it."""
    from tests.cloud.standin.images import marvec_image
    from tests.cloud.standin.storage import Storage
    from tests.contract.archives import PROMPTS

    folder = tiny_models("bert", pooling="mean", normalize=True, prompts=PROMPTS)
    bucket = Storage(storage)
    for file in folder.rglob("*"):
        if file.is_file():
            bucket.write(f"{VALUES['model']}/{file.relative_to(folder)}", file.read_bytes())
    images = {SERVER: marvec_image(tmp_path_factory.mktemp("empty-store"))}
    with open_standin(images, storage=storage) as standin:
        road = Road(standin, bucket, cloud_environment(standin), {})
        for step in ("pack", "upload", "deploy", "smoke"):
            road.done[step] = road.run(step)
            assert road.done[step].returncode == 0, road.done[step].stderr
        yield road
    bucket.close()


def test_pack_fetches_the_model_and_puts_the_archive(road: Road) -> None:
    said = road.done["pack"].stdout.splitlines()
    assert re.fullmatch(r"fetched \d+ files from gs://models/tiny-bert", said[0])
    assert said[1].startswith("$ marvec pack --workers 1 --prompt 'query=query: ' ")
    assert said[-1] == f"put {ARCHIVE}/tiny.mar"
    assert road.storage.find(f"{ARCHIVE}/*") == [f"{ARCHIVE}/tiny.mar"]
    with zipfile.ZipFile(io.BytesIO(road.storage.read(f"{ARCHIVE}/tiny.mar"))) as archive:
        assert "golden.json" in archive.namelist()


def test_upload_and_deploy_serve_that_archive(road: Road) -> None:
    assert road.standin.calls.changed()[:3] == ["UploadModel", "CreateEndpoint", "DeployModel"]
    (uploaded,) = road.standin.calls.of("UploadModel")
    assert uploaded.body["model"]["artifactUri"] == ARCHIVE
    assert uploaded.body["model"]["containerSpec"]["predictRoute"] == "/predictions/tiny"
    assert "version 1 on n1-standard-4: 100 % of the requests" in road.done["deploy"].stdout


def test_smoke_meets_the_golden_vectors(road: Road) -> None:
    assert re.fullmatch(r"7 golden texts: smallest cosine (1\.000000|0\.99999\d)\n", road.done["smoke"].stdout)


def test_smoke_refuses_another_archives_vectors(road: Road) -> None:
    other = "gs://outputs/runs/2/pack/archive"
    changed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(road.storage.read(f"{ARCHIVE}/tiny.mar"))) as old,
        zipfile.ZipFile(changed, "w") as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            if name == "golden.json":
                golden = json.loads(content)
                golden["answers"][2] = [-number for number in golden["answers"][2]]
                content = json.dumps(golden).encode()
            new.writestr(name, content)
    road.storage.write(f"{other}/tiny.mar", changed.getvalue())
    done = road.run("smoke", archive=other)
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr == (
        "error: the smallest cosine to the golden vectors is -1.000000, allowed is 0.9999 and above\n"
    )


def test_batch_predicts_every_row(road: Road) -> None:
    road.storage.write("gs://inputs/texts.jsonl", b'"a rose"\n{"content": "a farm"}\n')
    done = road.run("batch", source="gs://inputs/texts.jsonl", destination="gs://outputs/vectors", options="--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["predicted"], told["failed"]) == (2, 0)
    assert any("prediction.results" in name for name in road.storage.find("gs://outputs/vectors/*"))


def test_the_sdks_example_asks_the_endpoint_that_they_leave(road: Road) -> None:
    """A unit vector has a cosine of 1 with itself, and the table is symmetric."""
    script = Path(__file__).resolve().parents[2] / "examples" / "vertex_predict.py"
    asked = ["--project", "demo-project", "--region", "us-central1", "--endpoint", "road"]
    sentences = ["query: the rose farm", "query: grow a small model", "query: the rose farm"]
    done = subprocess.run(
        [sys.executable, str(script), *asked, *sentences],
        env=road.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["1", "2", "3"]
    rows = [line.split(maxsplit=4) for line in lines]
    assert [row[4] for row in rows] == sentences
    numbers = [[float(number) for number in row[1:4]] for row in rows]
    assert numbers[0] == [1.0, numbers[1][0], 1.0]
    assert numbers[0][1] == numbers[1][2] < 1
