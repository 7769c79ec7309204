"""What a pipeline's step makes of its arguments, before anything of Google's is asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from vertex import step

IMAGE = "europe-west1-docker.pkg.dev/my-project/models/server:1.0"
SETTINGS = {
    "project": "my-project",
    "region": "europe-west1",
    "model": {"name": "minilm", "image": IMAGE},
    "endpoint": {"name": "minilm"},
}
TEXT = json.dumps(SETTINGS)
# Stands for marvec: copies what it was given to a place that outlives the step's folder.
NOTE = "import shutil, sys; shutil.copy('vertex.yaml', sys.argv[1]); print(*sys.argv[2:], sep='|')"


def test_a_command_runs_beside_its_settings_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "vertex.yaml"
    options = "--column 'the text' --json"
    command = [sys.executable, "-c", NOTE, str(copy)]
    assert step.main(["run", TEXT, "gs://bucket/run/archive", options, "--", *command]) == 0
    model = {**SETTINGS["model"], "artifact_uri": "gs://bucket/run/archive"}  # type: ignore[dict-item]
    assert yaml.safe_load(copy.read_text()) == {**SETTINGS, "model": model}
    assert capfd.readouterr().out.splitlines()[-1] == "--column|the text|--json"


def test_no_archive_and_no_options(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "vertex.yaml"
    assert step.main(["run", TEXT, "-", "-", "--", sys.executable, "-c", NOTE, str(copy)]) == 0
    assert yaml.safe_load(copy.read_text()) == SETTINGS
    assert capfd.readouterr().out.splitlines()[-1] == ""


def test_a_pack_that_fails_puts_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Were anything sent, it would end otherwise: nobody is logged in."""
    words = "import sys; print(*sys.argv[1:6], sep='|'); raise SystemExit(1)"
    command = [sys.executable, "-c", words]
    assert step.main(["pack", TEXT, "gs://bucket/run/archive", "intfloat/e5", "--target any", "--", *command]) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "--target|any|intfloat/e5|--name|minilm"


def test_the_exit_status_is_the_commands() -> None:
    assert step.main(["run", TEXT, "-", "-", "--", sys.executable, "-c", "raise SystemExit(6)"]) == 6


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "expected a step, one of pack, run, smoke, got ''"),
        (["deploy"], "expected a step, one of pack, run, smoke, got 'deploy'"),
        (["smoke", TEXT], "smoke: expected 2 arguments"),
        (["smoke", TEXT, "gs://b/a", "more"], "smoke: expected 2 arguments"),
        (["run", TEXT, "-", "marvec"], "run: expected 3 arguments, then -- and a command"),
        (["run", TEXT, "-", "-", "marvec"], "run: expected 3 arguments, then -- and a command"),
        (["run", TEXT, "-", "-", "--"], "run: expected 3 arguments, then -- and a command"),
        (
            ["run", "project: a", "-", "-", "--", "true"],
            "the settings are no JSON (Expecting value: line 1 column 1 (char 0))",
        ),
        (["run", "[]", "-", "-", "--", "true"], "the settings: expected an object"),
        (["run", "{}", "-", "-", "--", "true"], "settings: project: missing"),
        (
            ["run", TEXT, "/archive", "-", "--", "true"],
            "settings: model.artifact_uri: expected gs://BUCKET/FOLDER, got '/archive'",
        ),
        (["run", TEXT, "-", "--column 'a", "--", "true"], 'options "--column \'a": No closing quotation'),
    ],
)
def test_what_is_refused(arguments: list[str], reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert step.main(arguments) == 1
    assert capfd.readouterr().err == f"error: {reason}\n"
