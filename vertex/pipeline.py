"""`python -m vertex.pipeline`: compiles the pipelines, runs them on Vertex AI, once or on a schedule.

Only `compile` needs kfp: the extra `pipeline`, in an environment of its own, since it asks for older releases than the
others do.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer
from google.cloud.aiplatform_v1 import PipelineJob, Schedule
from google.protobuf.json_format import MessageToDict

from marvec.errors import MarvecError
from vertex import api_errors, last_line
from vertex.errors import OperationError, UnavailableError, VertexError
from vertex.options import VERTEX_YAML, SettingsFile
from vertex.pipeline_run import BATCH, ENDED, ENDPOINT, PipelineApi, PipelineRun, read_spec
from vertex.settings import VertexSettings
from vertex.work import Work

PIPELINES = {"endpoint": ENDPOINT, "batch": BATCH}
_LOOK_S = 10.0

app = typer.Typer(
    help="Compile the pipelines, and run them on Vertex AI, once or on a schedule.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A compiled pipeline.")]
Root = Annotated[str, typer.Option(metavar="gs://…", help="Folder for what the steps make.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--parameter", metavar="NAME=VALUE", help="Of the pipeline; may be given several times."),
]
Account = Annotated[str | None, typer.Option(help="Whom the steps act as.  \\[default: Google's default account]")]
Cache = Annotated[bool, typer.Option("--cache", help="Take the archive of an earlier run that was given the same.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the request's body, and send nothing.")]


@app.command("compile")
def compile_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Written, as YAML.")],
    image: Annotated[str, typer.Option(help="What the steps run in: marvec with its extras pack and vertex.")],
    pipeline: Annotated[str, typer.Option(help="endpoint or batch.")] = "endpoint",
) -> None:
    """Compile a pipeline.

    Example: python -m vertex.pipeline compile endpoint.yaml --image REGION-docker.pkg.dev/PROJECT/REPOSITORY/marvec:1
    """
    if pipeline not in PIPELINES:
        raise VertexError(f"--pipeline: expected one of {', '.join(PIPELINES)}, got {pipeline!r}")
    try:
        from vertex.pipeline_tasks import compile_to
    except ImportError as err:
        raise VertexError(f"compiling needs kfp: {sys.executable} -m pip install '.[pipeline]', best apart") from err
    compile_to(str(file), PIPELINES[pipeline], image)
    typer.echo(f"compiled: {file}")


@app.command("submit")
def submit(
    file: File,
    root: Root,
    parameter: Parameters = None,
    settings: SettingsFile = VERTEX_YAML,
    service_account: Account = None,
    cache: Cache = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end; 6 is the exit status when it failed.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Run a pipeline.

    Example: python -m vertex.pipeline submit endpoint.yaml --root gs://BUCKET/runs --parameter model=gs://BUCKET/minilm
    """
    work = Work(settings)
    run = _run(file, root, parameter, work.settings, service_account, cache)
    if dry_run:
        _print(run.job())
        return
    run_id = f"{run.name}-{datetime.now(timezone.utc):%Y%m%d%H%M%S%f}"
    page = _page(run_id, work.settings)
    with _unanswered(f"it is not known whether the run began: look at {page} before you submit again"), work.going_on():
        api = PipelineApi.connect(work.settings)
        begun = api.submit(run.job(), run_id)
    work.say(f"begun: {begun.name}")
    work.say(page)
    if wait:
        with _unanswered(f"the run goes on, but Vertex AI does not say how far it is: look at {page}"), work.going_on():
            _follow(api, begun.name)
        work.say("succeeded")


@app.command("schedule")
def schedule(
    file: File,
    root: Root,
    cron: Annotated[str, typer.Option(help="When, as cron writes it; in UTC, or as 'TZ=Europe/Berlin 0 3 * * *'.")],
    parameter: Parameters = None,
    settings: SettingsFile = VERTEX_YAML,
    name: Annotated[
        str | None, typer.Option(help="The schedule's.  \\[default: the pipeline's and the model's]")
    ] = None,
    service_account: Account = None,
    cache: Cache = False,
    replace: Annotated[bool, typer.Option("--replace", help="Put it in the place of one of its name.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Run a pipeline again and again, never twice at once.

    Example: python -m vertex.pipeline schedule batch.yaml --root gs://BUCKET/runs --cron '0 3 * * *'
    --parameter source=gs://BUCKET/texts.jsonl --parameter destination=gs://BUCKET/predictions
    """
    work = Work(settings)
    run = _run(file, root, parameter, work.settings, service_account, cache)
    wanted = run.schedule(work.settings.location, name or f"{run.name}-{work.settings.model.name}", cron)
    if dry_run:
        _print(wanted)
        return
    with work.going_on():
        made = PipelineApi.connect(work.settings).put_schedule(wanted, replace=replace)
        work.say(f"scheduled: {made.display_name}, {made.cron} ({made.name})")


@app.command("unschedule")
def unschedule(
    name: Annotated[str, typer.Argument(help="The schedule's name.")], settings: SettingsFile = VERTEX_YAML
) -> None:
    """Delete a schedule; a run that has begun goes on.

    Example: python -m vertex.pipeline unschedule marvec-batch-minilm
    """
    work = Work(settings)
    with work.going_on():
        count = PipelineApi.connect(work.settings).delete_schedules(name)
        work.say(f"deleted: {name}" + (f" ({count} of that name)" if count > 1 else ""))


def _run(
    file: Path,
    root: str,
    parameters: list[str] | None,
    settings: VertexSettings,
    service_account: str | None,
    cache: bool,
) -> PipelineRun:
    given: dict[str, str] = {}
    for one in parameters or []:
        name, separator, value = one.partition("=")
        if not separator:
            raise VertexError(f"--parameter: expected NAME=VALUE, got {one!r}")
        given[name] = value
    return PipelineRun(read_spec(file), settings, root.rstrip("/"), given, service_account, cache)


@contextmanager
def _unanswered(said: str) -> Iterator[None]:
    """Where no answer comes, elsewhere the same command goes on; here it would begin another run."""
    try:
        yield
    except UnavailableError as err:
        raise UnavailableError(f"{said} ({api_errors.one_line(str(err.__cause__ or err))})") from err


def _follow(api: PipelineApi, name: str) -> None:
    while (run := api.run(name)).state not in ENDED:
        time.sleep(_LOOK_S)
    if run.state != ENDED[0]:
        raise OperationError(f"{name} ended as {run.state.name}: {run.error.message or 'see its steps in the console'}")


def _print(message: PipelineJob | Schedule) -> None:
    typer.echo(json.dumps(MessageToDict(type(message).pb(message)), indent=2, ensure_ascii=False))


def _page(run_id: str, settings: VertexSettings) -> str:
    return (
        f"https://console.cloud.google.com/vertex-ai/pipelines/locations/{settings.region}/runs/{run_id}"
        f"?project={settings.project}"
    )


def main() -> None:
    """Run the command; what Marvec raises on purpose becomes one red line."""
    try:
        app(prog_name="python -m vertex.pipeline")
    except MarvecError as err:
        sys.exit(last_line.tell(err))


if __name__ == "__main__":
    main()
