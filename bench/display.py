"""What a person sees while a benchmark runs: lines, and a bar."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text


class Display:
    """Lines and a bar on stderr, for as long as a `with` block."""

    def __init__(self) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, TextColumn("{task.description}"), console=Console(stderr=True))
        self._task = self._progress.add_task("", total=0)

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(Text(line), soft_wrap=True)

    def expect(self, steps: int) -> None:
        """Make the bar longer."""
        self._progress.update(self._task, total=(self._progress.tasks[0].total or 0) + steps)

    def advance(self, label: str) -> None:
        """One step is done; `label` says which."""
        self._progress.update(self._task, advance=1, description=label)
