"""The command line of Vertex AI: from an image to an endpoint, and back to nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from google.cloud.aiplatform_v1 import Model
from rich.table import Table

from vertex import clean_up as ending
from vertex import deploy as deployment
from vertex import gcloud, schemas, status, traffic, upload
from vertex.carry_out import carry_out_all
from vertex.errors import AbsentError, UnavailableError, VertexError
from vertex.found import Found
from vertex.options import VERTEX_YAML, DryRun, Json, SettingsFile
from vertex.predict_command import batch_predict, predict
from vertex.titles import title
from vertex.work import Work

if TYPE_CHECKING:
    from proto import Message

app = typer.Typer(
    help="Upload a model to Vertex AI, deploy it to an endpoint, ask it, and take it down again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


@app.command("upload")
def upload_(
    settings: SettingsFile = VERTEX_YAML,
    new_version: Annotated[
        bool, typer.Option("--new-version", help="Upload though the settings are those of the newest version.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Upload the image as a model, or as a new version of it.

    Example: marvec vertex upload --settings vertex.yaml
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    model = work.settings.model
    with work.going_on():
        if dry_run:
            files = [] if model.schema_folder is None else gcloud.schema_lines(model.schema_folder, model.task)
            work.show(lambda found: upload.plan(work.settings, found, again=new_version), files, Found())
            return
        before = len(work.read().versions)
        if model.schema_folder is not None:
            schemas.put(model.schema_folder, model.task)
        there = work.carry_out(
            lambda found: upload.plan(work.settings, found, again=new_version and len(found.versions) == before)
        )
        version = there.version(None)
        if len(there.versions) == before:
            work.progress.tell("the newest version has these settings; --new-version uploads another")
        if as_json:
            work.result({"model": work.settings.model_name, **status.of_version(version)})
        else:
            done = "as before" if len(there.versions) == before else "uploaded"
            work.say(f"{done}: {work.settings.model.name}, version {version.version_id}")
            work.say("\nnext: marvec vertex deploy")


@app.command("deploy")
def deploy(
    settings: SettingsFile = VERTEX_YAML,
    version: Annotated[str | None, typer.Option(help="A version's number or alias.  \\[default: the newest]")] = None,
    share: Annotated[
        int | None,
        typer.Option("--traffic", min=0, max=100, help="Per cent of the requests.  \\[default: the settings']"),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Deploy a version to the endpoint, which is made if need be; other versions stay, with what traffic is left.

    Example: marvec vertex deploy --traffic 10
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    with work.going_on():
        if dry_run:
            unseen = Found((Model(version_id="1"),))
            work.show(lambda found: deployment.plan(work.settings, found, found.version(version), share), unseen=unseen)
            return
        there = work.settled()
        chosen = there.version(version)
        if version is None and chosen.labels.get(upload.SETTINGS_LABEL) != upload.digest(work.settings):
            work.progress.tell(
                f"note: version {chosen.version_id} was uploaded with other settings of the model than the file has "
                "now; marvec vertex upload makes a version with these"
            )
        wanted = work.settings.deployment.traffic_per_cent if share is None else share
        if not there.deployed and wanted != traffic.WHOLE:
            work.progress.tell("note: the first version on an endpoint takes all requests")
        there = work.carry_out(lambda found: deployment.plan(work.settings, found, chosen, share))
        _show_traffic(work, there)
        if not as_json:
            work.say("\nnext: marvec vertex predict 'hello world'")


app.command("predict")(predict)
app.command("batch-predict")(batch_predict)


@app.command("traffic")
def traffic_(
    shares: Annotated[
        list[str], typer.Argument(metavar="VERSION=SHARE...", help="Number or alias, and per cent; 100 in all.")
    ],
    settings: SettingsFile = VERTEX_YAML,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Divide the requests among the versions that are deployed.

    Example: marvec vertex traffic 1=50 2=50
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    with work.going_on():
        _set_traffic(work, lambda found: traffic.named(_shares(found, shares)))


@app.command("rollback")
def rollback(
    settings: SettingsFile = VERTEX_YAML,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Give the newest version's requests back to the version before it; it stays deployed, without traffic.

    Example: marvec vertex rollback
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    with work.going_on():
        split = work.settled().split
        if not split:
            raise AbsentError("nothing is deployed on the endpoint")
        newest = list(split)[-1]
        if split[newest] == 0:
            work.progress.tell("the newest version has no traffic, so there is nothing to take back; see traffic")
        _set_traffic(work, lambda found: traffic.back_from(found.split, newest))


@app.command("status")
def status_(settings: SettingsFile = VERTEX_YAML, dry_run: DryRun = False, as_json: Json = False) -> None:
    """Tell which versions there are, where they run, and with what traffic.

    Example: marvec vertex status
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    with work.going_on():
        if dry_run:
            for line in gcloud.status_lines(work.settings):
                work.say(line)
            return
        content = status.of(work.api, work.settings, work.look())
        if as_json:
            work.result(content)
            return
        table = Table(*status.COLUMNS, box=None, pad_edge=False)
        for row in status.rows(content):
            table.add_row(*row)
        work.out.print(table)
        for line in status.notes(content):
            work.say(line)


@app.command("undeploy")
def undeploy(
    versions: Annotated[
        list[str] | None, typer.Argument(metavar="[VERSION]...", help="Versions.  \\[default: all without traffic]")
    ] = None,
    settings: SettingsFile = VERTEX_YAML,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take versions off the endpoint, so that they cost nothing; their traffic goes to those that stay.

    Example: marvec vertex undeploy 1
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    with work.going_on():
        leaving = _leaving(work.settled(), versions)

        def plan(found: Found) -> Sequence[Message]:
            return ending.undeploying(work.settings, found, [one for one in leaving if one in found.split])

        if dry_run:
            work.show(plan)
        else:
            _show_traffic(work, work.carry_out(plan))


@app.command("clean-up")
def clean_up(
    settings: SettingsFile = VERTEX_YAML,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Delete the endpoint and the model with all its versions, after a list of them and a question.

    Example: marvec vertex clean-up
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    with work.going_on():
        if dry_run:
            work.show(lambda found: ending.plan(work.settings, found))
            return
        work.wait_for_begun()
        found = work.read()
        steps = ending.plan(work.settings, found)
        for line in ending.told(work.settings, found):
            work.progress.tell(line)
        if steps and not yes and not _agreed("Do all of this? [y/N]: "):
            work.progress.tell("nothing was changed")
            raise typer.Exit(1)
        failures = carry_out_all(work.api, work.settings, steps, work.progress)
        left = [title(step) for step in ending.plan(work.settings, work.read())]
        if as_json:
            work.result({"left": left})
        elif not left:
            work.say(f"nothing is left of {work.settings.model.name} in {work.settings.project}")
        if left:
            count = f"{len(left)} of {len(steps)} could not be done, for the reasons above: run it again"
            raise type(failures[0])(count) if failures else UnavailableError(count)


def _agreed(question: str) -> bool:
    typer.echo(question, nl=False, err=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _shares(found: Found, shares: list[str]) -> dict[str, int]:
    named: dict[str, int] = {}
    for one in shares:
        version, _, share = one.partition("=")
        if not re.fullmatch(r"\d{1,3}", share, re.ASCII):
            raise VertexError(f"{one}: expected VERSION=SHARE, such as 2=50")
        named[found.deployed_as(version).id] = int(share)
    return named


def _leaving(found: Found, versions: list[str] | None) -> list[str]:
    if not versions:
        return [one for one, share in found.split.items() if share == 0]
    deployed = {one.model_version_id for one in found.deployed}
    # One that exists and is not deployed has left already.
    gone = {one for one in versions if found.is_version(one) and found.version(one).version_id not in deployed}
    # One may be named twice, by its number and by an alias.
    return list(dict.fromkeys(found.deployed_as(one).id for one in versions if one not in gone))


def _set_traffic(work: Work, split: Callable[[Found], dict[str, int]]) -> None:
    def plan(found: Found) -> Sequence[Message]:
        return deployment.traffic_plan(work.settings, found, split(found))

    if work.dry_run:
        work.show(plan)
    else:
        _show_traffic(work, work.carry_out(plan))


def _show_traffic(work: Work, found: Found) -> None:
    content = status.of(work.api, work.settings, found)
    if work.as_json:
        work.result(content)
        return
    for one in content["deployed"]:
        work.say(f"version {one['version']} on {one['machine']}: {one['traffic']} % of the requests")
    for line in status.notes(content):
        work.say(line)
