"""The pipelines, compiled by Kubeflow's compiler: their steps, their order, and that each command line is ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup

from marvec_cli.main import app as marvec
from tests.cloud.compiled import IMAGE, containers, tasks, written
from tests.cloud.pipeline_service import SETTINGS
from tests.install.other_pythons import ROOT
from vertex import pipeline
from vertex.command import app as vertex
from vertex.errors import VertexError
from vertex.pipeline_run import PipelineRun, read_spec
from vertex.settings import from_mapping

RUNS = "gs://bucket/runs"
CHECKED = from_mapping(SETTINGS, "vertex.yaml")
# Each key of the file, none as it is by default.
ALL_SETTINGS = {
    "project": "my-project",
    "region": "europe-west1",
    "model": {
        **SETTINGS["model"],  # type: ignore[dict-item]
        "served_as": "e5",
        "artifact_uri": "gs://bucket/archives",
        "description": "2026-01-01",
        "version_aliases": ["stable", "best"],
        "labels": {"team": "search"},
        "environment": {"MARVEC_WORDS": "ä {\"a\": '$b'}"},
        "schema_folder": "gs://bucket/schemas",
        "shared_memory_mb": 256,
        "startup_timeout_s": 900,
        "deployment_timeout_s": 3600,
    },
    "endpoint": {
        "name": "minilm",
        "dedicated": True,
        "labels": {"team": "search"},
        "log_table": "bq://my-project.logs.requests",
        "log_share": 0.1,
    },
    "deployment": {
        "machine": "n1-standard-8",
        "accelerator": "NVIDIA_TESLA_T4",
        "accelerator_count": 2,
        "min_replicas": 2,
        "max_replicas": 4,
        "target_per_cent": 70,
        "traffic_per_cent": 0,
        "service_account": "server@my-project.iam.gserviceaccount.com",
        "spot": True,
        "access_logging": True,
        "container_logging": False,
    },
    "batch": {"replicas": 3, "instances_per_request": 16},
    "kms_key": "projects/my-project/locations/europe-west1/keyRings/ring/cryptoKeys/key",
    "api_transport": "rest",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return both compiled pipelines."""
    return written(tmp_path_factory.mktemp("compiled"))


def parse(command_line: list[str]) -> dict[str, Any]:
    """Return what the command line `marvec …` means to the command; a wrong one raises."""
    words = command_line[1:]
    app, words = (vertex, words[1:]) if words[0] == "vertex" else (marvec, words)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    values: dict[str, Any] = group.commands[words[0]].make_context(words[0], words[1:]).params
    return values


def test_the_steps_and_their_order() -> None:
    after = {name: sorted(task.get("dependentTasks", [])) for name, task in tasks("endpoint").items()}
    assert after == {"pack": [], "upload": ["pack"], "deploy": ["pack", "upload"], "smoke": ["deploy", "pack"]}
    assert list(tasks("batch")) == ["batch"]
    for name in pipeline.PIPELINES:
        assert all(task["cachingOptions"] == {} for task in tasks(name).values())


def test_what_each_step_runs() -> None:
    steps = containers()
    assert {name: step["image"] for name, step in steps.items()} == dict.fromkeys(steps, IMAGE)
    settings, archive = "{{$.inputs.parameters['settings']}}", "{{$.inputs.artifacts['archive'].uri}}"
    made, model = "{{$.outputs.artifacts['archive'].uri}}", "{{$.inputs.parameters['model']}}"
    options = "{{$.inputs.parameters['options']}}"
    source, target = "{{$.inputs.parameters['source']}}", "{{$.inputs.parameters['destination']}}"
    step, file = ["python", "-m", "vertex.step"], ["--settings", "vertex.yaml"]
    batch = ["batch-predict", *file, "--from", source, "--to", target]
    assert {name: [*one["command"], *one["args"]] for name, one in steps.items()} == {
        "pack": [*step, "pack", settings, made, model, options, "--", "marvec", "pack"],
        "upload": [*step, "run", settings, archive, "-", "--", "marvec", "vertex", "upload", *file],
        "deploy": [*step, "run", settings, archive, "-", "--", "marvec", "vertex", "deploy", *file],
        "smoke": [*step, "smoke", settings, archive],
        "batch": [*step, "run", settings, "-", options, "--", "marvec", "vertex", *batch],
    }
    assert steps["pack"]["resources"]["resourceMemoryLimit"] == "16G"


def test_every_command_line_is_one_of_ours() -> None:
    steps = containers()
    lines = {name: step["args"][step["args"].index("--") + 1 :] for name, step in steps.items() if "--" in step["args"]}
    assert sorted(lines) == ["batch", "deploy", "pack", "upload"]
    for name in ("upload", "deploy"):
        assert parse(lines[name])["settings"] == Path("vertex.yaml")
    # What vertex/step.py adds, and what the documentation gives as options.
    packed = parse([*lines["pack"], "--target", "any", "gs://b/m", "--name", "minilm", "--model-store", "packed"])
    assert (packed["model"], packed["name"], packed["target"]) == ("gs://b/m", "minilm", "any")
    asked = parse([*lines["batch"], "--column", "text", "--parameters", '{"outputDimensionality": 256}'])
    assert (asked["column"], asked["settings"]) == ("text", Path("vertex.yaml"))
    assert asked["source"] == "{{$.inputs.parameters['source']}}"
    with pytest.raises(Exception, match="No such option: --no-such-option"):
        parse([*lines["deploy"], "--no-such-option"])


def test_a_run_as_google_gets_it(compiled: dict[str, Path]) -> None:
    spec = read_spec(compiled["endpoint"])
    given = {"model": "gs://bucket/minilm"}
    job = PipelineRun(spec, CHECKED, RUNS, given, "steps@my-project.iam.gserviceaccount.com").job()
    values = {name: value.string_value for name, value in type(job).pb(job).runtime_config.parameter_values.items()}
    assert json.loads(values.pop("settings")) == SETTINGS
    assert values == {"model": "gs://bucket/minilm"}
    assert (job.runtime_config.gcs_output_directory, job.labels) == (RUNS, {"made-with": "marvec"})
    assert job.service_account == "steps@my-project.iam.gserviceaccount.com"
    assert job.runtime_config.failure_policy.name == "PIPELINE_FAILURE_POLICY_FAIL_FAST"
    assert job.pipeline_spec["root"]["dag"]["tasks"]["pack"]["cachingOptions"] == {}
    cached = PipelineRun(spec, CHECKED, RUNS, given, cache=True).job().pipeline_spec["root"]["dag"]["tasks"]
    assert {name: dict(task["cachingOptions"]) for name, task in cached.items()} == {
        "pack": {"enableCache": True},
        "upload": {},
        "deploy": {},
        "smoke": {},
    }
    assert "cachingOptions" in str(spec)  # untouched
    assert tasks("endpoint") == spec["root"]["dag"]["tasks"]  # type: ignore[index]


@pytest.mark.parametrize("content", [SETTINGS, ALL_SETTINGS], ids=["short", "all"])
def test_the_steps_read_the_settings_that_were_checked(compiled: dict[str, Path], content: dict[str, object]) -> None:
    given = from_mapping(content, "vertex.yaml")
    job = PipelineRun(read_spec(compiled["endpoint"]), given, RUNS, {"model": "a"}).job()
    sent = type(job).pb(job).runtime_config.parameter_values["settings"].string_value
    assert json.loads(sent) == content
    assert from_mapping(json.loads(sent), "settings") == given


@pytest.mark.parametrize(
    ("root", "parameters", "reason"),
    [
        ("bucket/runs", {"model": "a"}, "--root: expected gs://BUCKET/FOLDER, got 'bucket/runs'"),
        (RUNS, {}, "marvec-endpoint needs --parameter model=…"),
        (RUNS, {"modell": "a"}, "--parameter modell: unknown to marvec-endpoint; known: model, pack_options"),
        (RUNS, {"settings": "a"}, "--parameter settings: unknown to marvec-endpoint; known: model, pack_options"),
    ],
)
def test_what_is_refused_before_anything_is_sent(
    compiled: dict[str, Path], root: str, parameters: dict[str, str], reason: str
) -> None:
    with pytest.raises(VertexError) as caught:
        PipelineRun(read_spec(compiled["endpoint"]), CHECKED, root, parameters)
    assert str(caught.value) == reason


def test_files_that_are_no_pipeline(tmp_path: Path) -> None:
    settings_file = tmp_path / "vertex.yaml"
    settings_file.write_text(yaml.safe_dump(SETTINGS))
    with pytest.raises(VertexError, match=r"no\.yaml: No such file or directory: python -m vertex.pipeline compile "):
        read_spec(tmp_path / "no.yaml")
    with pytest.raises(VertexError, match=r"vertex\.yaml is no compiled pipeline: python -m vertex.pipeline compile "):
        read_spec(settings_file)


def test_without_kfp_it_says_what_to_install(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vertex.pipeline", "compile", str(tmp_path / "a.yaml"), "--image", IMAGE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == f"error: compiling needs kfp: {sys.executable} -m pip install '.[pipeline]', best apart\n"
