"""One command at work: its settings, Google's API, and what is printed where.

Results go to stdout, for people or with `--json` for scripts; progress goes to stderr. With `--dry-run` nothing is
changed: the lines on stdout are a script for the shell, and the requests that they stand for are comments in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from vertex import api_errors, found, gcloud, settings
from vertex.api import Api
from vertex.carry_out import Plan, begun, carry_out, follow_begun, wait_for_begun
from vertex.errors import AbsentError, LoginError
from vertex.found import Found
from vertex.progress import Progress
from vertex.titles import operation_title, title

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import Endpoint
    from proto import Message

_INTERRUPTED = 130
# A table is folded to a terminal's width, and in a file to none.
_FILE_WIDTH = 1000


class Work:
    """What every command needs.

    Args:
        file: The settings file.
        dry_run: Print what would be sent, and change nothing.
        as_json: Print the result as JSON.

    Attributes:
        settings: The file's content, checked.
        dry_run: As given.
        as_json: As given.
        progress: To stderr.
        out: Stdout.
    """

    def __init__(self, file: Path, *, dry_run: bool = False, as_json: bool = False) -> None:
        self.settings = settings.read(file)
        self.dry_run = dry_run
        self.as_json = as_json
        self.progress = Progress(Console(stderr=True, highlight=False))
        terminal = Console(highlight=False)
        self.out = terminal if terminal.is_terminal else Console(highlight=False, width=_FILE_WIDTH)

    @cached_property
    def api(self) -> Api:
        """Google's API, asked for when it is needed: a login is sought then."""
        return Api(self.settings)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Turn what Google's clients raise into a VertexError, and Ctrl-C into its exit status."""
        try:
            with api_errors.explained(self.settings):
                yield
        except KeyboardInterrupt as err:
            raise typer.Exit(_INTERRUPTED) from err

    def read(self) -> Found:
        """Return what there is."""
        return found.read(self.api, self.settings)

    def look(self) -> Found:
        """Return what there is, whoever made it."""
        return found.look(self.api, self.settings)

    def settled(self) -> Found:
        """Return what there is after what was begun earlier has ended; a dry run does not wait."""
        if not self.dry_run:
            follow_begun(self.api, self.settings, self.progress)
        return self.read()

    def endpoint(self) -> Endpoint:
        """Return the endpoint.

        Raises:
            AbsentError: There is none.
        """
        endpoint = self.api.endpoint(self.settings.endpoint_name)
        if endpoint is None:
            name = self.settings.endpoint.name
            raise AbsentError(f"there is no endpoint {name} in {self.settings.region}: marvec vertex deploy")
        return endpoint

    def carry_out(self, plan: Plan) -> Found:
        """Do what a plan asks for; returns what there is in the end."""
        return carry_out(self.api, self.settings, plan, self.progress)

    def wait_for_begun(self) -> None:
        """Wait for what was begun earlier, however it ends."""
        wait_for_begun(self.api, self.settings, self.progress)

    def show(
        self,
        plan: Callable[[Found], Sequence[Message]],
        before: Sequence[str] = (),
        unseen: Found | None = None,
    ) -> None:
        """Print what a plan would send, from what there is.

        Args:
            plan: From what there is to what would be sent.
            before: Lines for the shell that come first, if anything is sent.
            unseen: What is supposed to be there when nobody is logged in; None when that cannot be shown.
        """
        try:
            with api_errors.explained(self.settings):
                there = self.read()
                notes = [f"first: {operation_title(one)} is waited for" for one in begun(self.api, self.settings)]
        except LoginError as err:
            if unseen is None:
                raise
            there = unseen
            notes = [f"{err}", "so this is for a project in which nothing exists yet"]
        self.show_steps(plan(there), notes, before)

    def show_steps(self, steps: Sequence[Message], notes: Sequence[str] = (), before: Sequence[str] = ()) -> None:
        """Print requests as lines for a shell, each after its body as a comment.

        Args:
            steps: The requests.
            notes: Printed before them, as comments.
            before: Lines for the shell that come first, if there are steps.
        """
        shown = [
            {"title": title(step), "line": gcloud.line(step, self.settings), "request": gcloud.body(step)}
            for step in steps
        ]
        if self.as_json:
            self.result({"notes": list(notes), "before": list(before) if steps else [], "steps": shown})
            return
        for note in notes if steps else (*notes, "nothing is to be done"):
            self.say(f"# {note}")
        for line in before if steps else ():
            self.say(line)
        for one in shown:
            self.say(f"# {one['title']}")
            for line in json.dumps(one["request"], indent=2, ensure_ascii=False).split("\n"):
                self.say(f"#   {line}")
            self.say(str(one["line"]))

    def say(self, line: str) -> None:
        """Print a line of the result for people."""
        typer.echo(line)

    def result(self, content: Mapping[str, object]) -> None:
        """Print the result for scripts."""
        typer.echo(json.dumps(content, ensure_ascii=False))
