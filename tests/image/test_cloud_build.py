"""The steps of docker/cloudbuild.yaml, run as Cloud Build runs them: scripts with the substitutions as variables."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.image.machine import Machine

ROOT = Path(__file__).resolve().parents[2]


def step(name: str) -> tuple[str, dict[str, str]]:
    """Return a step's script and the substitutions' defaults."""
    config = yaml.safe_load((ROOT / "docker" / "cloudbuild.yaml").read_text())
    (script,) = (one["script"] for one in config["steps"] if one["id"] == name)
    return script, config["substitutions"]


def run(
    name: str, project: Path, environment: dict[str, str], **substitutions: str
) -> subprocess.CompletedProcess[str]:
    script, defaults = step(name)
    variables = environment | defaults | substitutions
    return subprocess.run(
        ["bash", "-c", script], cwd=project, env=variables, capture_output=True, text=True, timeout=1200, check=False
    )


def test_the_image_is_built(machine: Machine, project: Path, official_base: str, docker: dict[str, str]) -> None:
    given = {"_IMAGE": "localhost/cloud:1", "_BASE_IMAGE": official_base, "_MODEL_ID": "all-MiniLM-L6-v2"}
    for name in ("archive", "image"):
        done = run(name, project, docker, **given)
        assert done.returncode == 0, done.stdout + done.stderr
    labels = machine.podman("image", "inspect", "--format", "{{json .Config.Labels}}", "localhost/cloud:1").stdout
    assert '"marvec.model.id":"all-MiniLM-L6-v2"' in labels
    assert '"org.opencontainers.image.revision":""' in labels, "only a trigger's builds know the commit"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "_IMAGE is not set: give it as --substitutions=_IMAGE=REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG"),
        (
            {"_IMAGE": "x/y:1", "_ARCHIVE": "none.mar"},
            "model_store/none.mar is not there: pack it, or give _ARCHIVE_URI=gs://BUCKET/FOLDER/NAME.mar",
        ),
    ],
)
def test_what_is_missing_is_told_before_anything_is_built(project: Path, given: dict[str, str], reason: str) -> None:
    done = run("archive", project, {"PATH": "/usr/bin:/bin"}, **given)
    assert (done.returncode, done.stderr) == (1, f"{reason}\n")


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_sends_what_is_built_from_and_nothing_else(project: Path) -> None:
    """Archives go along, which git does not take; environments and caches stay."""
    (project / ".venv").mkdir(exist_ok=True)
    (project / ".venv" / "secret.txt").touch()
    command = ["gcloud", "meta", "list-files-for-upload", str(project)]
    sent = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    tracked = [path.relative_to(ROOT) for folder in ("docker", "serving") for path in (ROOT / folder).rglob("*")]
    wanted = {str(path) for path in tracked if (ROOT / path).is_file() and "__pycache__" not in path.parts}
    assert set(sent) - {"model_store/README.md"} == wanted | {"config.properties", "model_store/minilm.mar"}


def test_an_engine_is_sent_what_the_dockerfiles_copy() -> None:
    copied = set()
    for dockerfile in (ROOT / "docker").glob("*Dockerfile"):
        if dockerfile.with_name(f"{dockerfile.name}.dockerignore").exists():
            continue  # goes by that
        copied |= set(re.findall(r"^COPY ([a-z_.]+)(?:/\S*)? ", dockerfile.read_text(), flags=re.MULTILINE))
    lines = (ROOT / ".dockerignore").read_text().split()
    assert {re.split("[/*]", line[1:])[0] for line in lines if line.startswith("!")} == copied
