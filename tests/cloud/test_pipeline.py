"""The pipelines, compiled by Kubeflow's compiler: their steps, their order, and that each command line is ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from google.cloud.aiplatform_v1 import PipelineState
from typer.core import TyperGroup

from marvec_cli.main import app as marvec
from tests.cloud.compiled import IMAGE, containers, tasks, texts
from tests.cloud.pipeline_service import PARENT, Kept, pipeline_api
from tests.install.other_pythons import ROOT
from vertex import pipeline
from vertex.command import app as vertex
from vertex.errors import AbsentError, OperationError, VertexError
from vertex.pipeline_run import PipelineApi, PipelineRun, read_spec

SETTINGS = {
    "project": "my-project",
    "region": "europe-west1",
    "model": {"name": "minilm", "image": "europe-west1-docker.pkg.dev/my-project/models/server:1"},
    "endpoint": {"name": "minilm"},
}
RUNS = "gs://bucket/runs"
ENDED = PipelineState.PIPELINE_STATE_SUCCEEDED
RUNNING = PipelineState.PIPELINE_STATE_RUNNING


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return both compiled pipelines."""
    folder = tmp_path_factory.mktemp("compiled")
    for name, text in texts().items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.yaml" for name in pipeline.PIPELINES}


@pytest.fixture
def service() -> Iterator[tuple[PipelineApi, Kept]]:
    """Return Google's clients of pipelines and schedules, on services that keep what they are sent."""
    with pipeline_api() as running:
        yield running


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    """Return a settings file."""
    file = tmp_path / "vertex.yaml"
    file.write_text(yaml.safe_dump(SETTINGS))
    return file


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
    packed = parse([*lines["pack"], "--target", "any", "gs://b/m", "--name", "minilm", "--output", "packed"])
    assert (packed["model"], packed["name"], packed["target"]) == ("gs://b/m", "minilm", "any")
    asked = parse([*lines["batch"], "--column", "text", "--parameters", '{"outputDimensionality": 256}'])
    assert (asked["column"], asked["settings"]) == ("text", Path("vertex.yaml"))
    assert asked["source"] == "{{$.inputs.parameters['source']}}"
    with pytest.raises(Exception, match="No such option: --no-such-option"):
        parse([*lines["deploy"], "--no-such-option"])


def test_a_run_as_google_gets_it(compiled: dict[str, Path]) -> None:
    spec = read_spec(compiled["endpoint"])
    given = {"model": "gs://bucket/minilm"}
    job = PipelineRun(spec, SETTINGS, RUNS, given, "steps@my-project.iam.gserviceaccount.com").job()
    values = {name: value.string_value for name, value in type(job).pb(job).runtime_config.parameter_values.items()}
    assert values == {"settings": json.dumps(SETTINGS), "model": "gs://bucket/minilm"}
    assert (job.runtime_config.gcs_output_directory, job.labels) == (RUNS, {"made-with": "marvec"})
    assert job.service_account == "steps@my-project.iam.gserviceaccount.com"
    assert job.runtime_config.failure_policy.name == "PIPELINE_FAILURE_POLICY_FAIL_FAST"
    assert job.pipeline_spec["root"]["dag"]["tasks"]["pack"]["cachingOptions"] == {}
    cached = PipelineRun(spec, SETTINGS, RUNS, given, cache=True).job().pipeline_spec["root"]["dag"]["tasks"]
    assert {name: dict(task["cachingOptions"]) for name, task in cached.items()} == {
        "pack": {"enableCache": True},
        "upload": {},
        "deploy": {},
        "smoke": {},
    }
    assert "cachingOptions" in str(spec)  # untouched
    assert tasks("endpoint") == spec["root"]["dag"]["tasks"]  # type: ignore[index]


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
        PipelineRun(read_spec(compiled["endpoint"]), SETTINGS, root, parameters)
    assert str(caught.value) == reason


def test_files_that_are_no_pipeline(tmp_path: Path, settings_file: Path) -> None:
    with pytest.raises(VertexError, match=r"no\.yaml: No such file or directory: python -m vertex.pipeline compile "):
        read_spec(tmp_path / "no.yaml")
    with pytest.raises(VertexError, match=r"vertex\.yaml is no compiled pipeline: python -m vertex.pipeline compile "):
        read_spec(settings_file)


def test_without_kfp_it_says_what_to_install(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vertex.pipeline", "compile", str(tmp_path / "a.yaml"), "--image", IMAGE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == f"error: compiling needs kfp: {sys.executable} -m pip install '.[pipeline]', best apart\n"


def run(api: PipelineApi, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Run `python -m vertex.pipeline` on the services."""
    monkeypatch.setattr(PipelineApi, "connect", lambda settings: api)
    monkeypatch.setattr(pipeline, "_LOOK_S", 0.01)
    pipeline.app(list(words), standalone_mode=False)


def test_submit_and_wait(
    compiled: dict[str, Path],
    service: tuple[PipelineApi, Kept],
    settings_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api, kept = service
    words = ["submit", str(compiled["endpoint"]), "--settings", str(settings_file), "--root", f"{RUNS}/"]
    words += [
        "--parameter",
        "model=intfloat/multilingual-e5-small",
        "--parameter",
        "pack_options=--target any",
        "--wait",
    ]
    kept.states = [RUNNING, RUNNING, ENDED]
    run(api, monkeypatch, *words)
    (job,) = kept.jobs
    given = {"model": "intfloat/multilingual-e5-small", "pack_options": "--target any"}
    content = yaml.safe_load(settings_file.read_text())
    wanted = PipelineRun(read_spec(compiled["endpoint"]), content, RUNS, given).job()
    wanted.name, wanted.state = job.name, ENDED
    assert job == wanted
    assert capsys.readouterr().out.splitlines() == [
        f"begun: {PARENT}/pipelineJobs/run-0",
        "https://console.cloud.google.com/vertex-ai/pipelines/locations/europe-west1/runs/run-0?project=my-project",
        "succeeded",
    ]
    kept.states = [PipelineState.PIPELINE_STATE_FAILED]
    with pytest.raises(OperationError, match=r"run-1 ended as PIPELINE_STATE_FAILED: see its steps in the console"):
        run(api, monkeypatch, *words)


def test_a_dry_run_prints_the_body_and_sends_nothing(
    compiled: dict[str, Path],
    service: tuple[PipelineApi, Kept],
    settings_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api, kept = service
    words = ["submit", str(compiled["batch"]), "--settings", str(settings_file), "--root", RUNS, "--dry-run"]
    run(api, monkeypatch, *words, "--parameter", "source=gs://b/a.jsonl", "--parameter", "destination=gs://b/out")
    body = json.loads(capsys.readouterr().out)
    assert sorted(body) == ["displayName", "labels", "pipelineSpec", "runtimeConfig"]
    assert body["runtimeConfig"]["parameterValues"]["source"] == "gs://b/a.jsonl"
    assert body["pipelineSpec"] == yaml.safe_load(compiled["batch"].read_text())
    assert kept.calls == []


def test_schedules(
    compiled: dict[str, Path],
    service: tuple[PipelineApi, Kept],
    settings_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    api, kept = service
    words = ["schedule", str(compiled["batch"]), "--settings", str(settings_file), "--root", RUNS]
    words += ["--parameter", "source=gs://b/a.jsonl", "--parameter", "destination=gs://b/out"]
    run(api, monkeypatch, *words, "--cron", "TZ=Europe/Berlin 0 3 * * *")
    (made,) = kept.schedules
    assert (made.display_name, made.cron) == ("marvec-batch-minilm", "TZ=Europe/Berlin 0 3 * * *")
    assert made.max_concurrent_run_count == 1
    assert made.create_pipeline_job_request.parent == PARENT
    values = made.create_pipeline_job_request.pipeline_job.runtime_config.parameter_values
    assert (values["source"], values["destination"]) == ("gs://b/a.jsonl", "gs://b/out")

    with pytest.raises(VertexError) as caught:
        run(api, monkeypatch, *words, "--cron", "0 4 * * *")
    assert str(caught.value) == (
        "there is a schedule marvec-batch-minilm (TZ=Europe/Berlin 0 3 * * *): --replace puts this in its place"
    )
    run(api, monkeypatch, *words, "--cron", "0 4 * * *", "--replace")
    assert [one.cron for one in kept.schedules] == ["0 4 * * *"]
    assert kept.calls == ["CreateSchedule", "CreateSchedule", "DeleteSchedule"]

    run(api, monkeypatch, "unschedule", "marvec-batch-minilm", "--settings", str(settings_file))
    assert kept.schedules == []
    with pytest.raises(AbsentError, match=r"^there is no schedule marvec-batch-minilm$"):
        run(api, monkeypatch, "unschedule", "marvec-batch-minilm", "--settings", str(settings_file))
    assert capsys.readouterr().out.splitlines() == [
        f"scheduled: marvec-batch-minilm, TZ=Europe/Berlin 0 3 * * * ({PARENT}/schedules/1)",
        f"scheduled: marvec-batch-minilm, 0 4 * * * ({PARENT}/schedules/2)",
        "deleted: marvec-batch-minilm",
    ]
