"""Runs and schedules of the pipelines from the command line, on services that keep what they are sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from google.api_core.retry import Retry
from google.cloud.aiplatform_v1 import PipelineState, Schedule

from tests.cloud.compiled import written
from tests.cloud.pipeline_service import PARENT, SETTINGS, Kept, pipeline_api
from vertex import pipeline, pipeline_run
from vertex.api import passing
from vertex.errors import AbsentError, OperationError, UnavailableError, VertexError
from vertex.pipeline_run import PipelineApi, PipelineRun, read_spec
from vertex.settings import from_mapping, read

RUNS = "gs://bucket/runs"
ENDED = PipelineState.PIPELINE_STATE_SUCCEEDED
PAGES = "https://console.cloud.google.com/vertex-ai/pipelines/locations/europe-west1/runs/"
RUNNING = PipelineState.PIPELINE_STATE_RUNNING


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return both compiled pipelines."""
    return written(tmp_path_factory.mktemp("compiled"))


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
    wanted = PipelineRun(read_spec(compiled["endpoint"]), from_mapping(SETTINGS, "vertex.yaml"), RUNS, given).job()
    wanted.name, wanted.state = job.name, ENDED
    assert job == wanted
    run_id = job.name.rpartition("/")[2]
    assert re.fullmatch(r"marvec-endpoint-\d{20}", run_id)
    assert capsys.readouterr().out.splitlines() == [
        f"begun: {PARENT}/pipelineJobs/{run_id}",
        f"{PAGES}{run_id}?project=my-project",
        "succeeded",
    ]
    kept.states = [PipelineState.PIPELINE_STATE_FAILED]
    with pytest.raises(OperationError) as caught:
        run(api, monkeypatch, *words)
    assert len({one.name for one in kept.jobs}) == 2
    said = f"{kept.jobs[1].name} ended as PIPELINE_STATE_FAILED: see its steps in the console"
    assert str(caught.value) == said


def test_an_answer_that_does_not_come(
    compiled: dict[str, Path],
    service: tuple[PipelineApi, Kept],
    settings_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A run is not begun twice, and one look that fails does not end the wait."""
    api, kept = service
    words = ["submit", str(compiled["endpoint"]), "--settings", str(settings_file), "--root", RUNS]
    words += ["--parameter", "model=a", "--wait"]
    kept.states, kept.unavailable = [RUNNING, RUNNING, ENDED], ["GetPipelineJob"]
    run(api, monkeypatch, *words)
    assert capsys.readouterr().out.splitlines()[-1] == "succeeded"
    assert (kept.calls, kept.unavailable) == (["CreatePipelineJob"], [])

    kept.unavailable = ["CreatePipelineJob"]
    with pytest.raises(UnavailableError) as caught:
        run(api, monkeypatch, *words)
    assert kept.calls == ["CreatePipelineJob", "CreatePipelineJob"]
    begun = kept.jobs[1].name.rpartition("/")[2]
    assert str(caught.value) == (
        f"it is not known whether the run began: look at {PAGES}{begun}?project=my-project before you submit again "
        "(503 broken pipe)"
    )
    assert capsys.readouterr().out == ""

    monkeypatch.setattr(pipeline_run, "READ", Retry(predicate=passing, initial=0.01, timeout=0.05))
    kept.unavailable = ["GetPipelineJob"] * 1000
    with pytest.raises(UnavailableError) as caught:
        run(api, monkeypatch, *words)
    begun = kept.jobs[2].name.rpartition("/")[2]
    said = f"the run goes on, but Vertex AI does not say how far it is: look at {PAGES}{begun}?project=my-project (Time"
    assert str(caught.value).startswith(said)


def test_a_date_in_the_settings_is_the_text_that_was_checked(
    compiled: dict[str, Path],
    service: tuple[PipelineApi, Kept],
    settings_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api, kept = service
    settings_file.write_text(settings_file.read_text().replace("model:\n", "model:\n  description: 2026-01-01\n"))
    words = ["submit", str(compiled["endpoint"]), "--settings", str(settings_file), "--root", RUNS]
    run(api, monkeypatch, *words, "--parameter", "model=a")
    sent = json.loads(kept.jobs[0].runtime_config.parameter_values["settings"])
    assert sent["model"]["description"] == "2026-01-01"
    assert from_mapping(sent, "settings") == read(settings_file)


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


def test_a_schedule_of_somebody_else_is_left_alone(
    compiled: dict[str, Path],
    service: tuple[PipelineApi, Kept],
    settings_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api, kept = service
    name = "marvec-batch-minilm"
    words = [
        "schedule",
        str(compiled["batch"]),
        "--settings",
        str(settings_file),
        "--root",
        RUNS,
        "--cron",
        "0 4 * * *",
    ]
    words += ["--parameter", "source=gs://b/a.jsonl", "--parameter", "destination=gs://b/out"]
    theirs = Schedule(name=f"{PARENT}/schedules/9", display_name=name, cron="0 1 * * *")
    kept.schedules, kept.unavailable = [theirs], ["ListSchedules"]
    for asked in (words, [*words, "--replace"], ["unschedule", name, "--settings", str(settings_file)]):
        with pytest.raises(VertexError) as caught:
            run(api, monkeypatch, *asked)
        assert str(caught.value) == (
            f"the schedule {name} ({PARENT}/schedules/9) was not made by marvec, so it is left alone: choose another "
            "name, or delete it in the console"
        )
    assert (kept.schedules, kept.calls, kept.unavailable) == ([theirs], [], [])
