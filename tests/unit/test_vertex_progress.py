"""What is told of long work: a line at its beginning and its end, and one a minute between."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from vertex.progress import Progress, lasted


class Clock:
    """Time that passes when it is told to; stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of vertex.progress alone."""
    clock = Clock()
    monkeypatch.setattr("vertex.progress.time", clock)
    return clock


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (125.2, "2 min 5 s"),
        (3600, "60 min 0 s"),
    ],
)
def test_a_duration(seconds: float, told: str) -> None:
    assert lasted(seconds) == told


def test_a_line_is_told_as_it_is() -> None:
    file = StringIO()
    Progress(Console(file=file, width=40)).tell("[red]a[/red] :smile: " + "長い" * 30)
    assert file.getvalue() == "[red]a[/red] :smile: " + "長い" * 30 + "\n"


def test_a_file_gets_a_line_a_minute(clock: Clock) -> None:
    file = StringIO()
    with Progress(Console(file=file)).during("deployment of minilm@2") as show:
        for seconds, detail in ((30, "a"), (29, "b"), (1, "c"), (59, "d"), (6, ""), (60, "e")):
            clock.now += seconds
            show(detail)
    assert file.getvalue().splitlines() == [
        "deployment of minilm@2 …",
        "deployment of minilm@2, 1 min 0 s, c",
        "deployment of minilm@2, 2 min 5 s",
        "deployment of minilm@2, 3 min 5 s, e",
        "deployment of minilm@2: done after 3 min 5 s",
    ]


def test_what_fails_is_not_told_as_done() -> None:
    file = StringIO()
    with pytest.raises(KeyboardInterrupt), Progress(Console(file=file)).during("the work"):
        raise KeyboardInterrupt
    assert file.getvalue() == "the work …\n"


def test_a_terminal_keeps_the_end_alone(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setenv("TERM", "xterm")
    file = StringIO()
    progress = Progress(Console(file=file, force_terminal=True, color_system=None, width=60))
    with progress.during("[the] work") as show:
        clock.now += 61
        show("12 rows")
    written = file.getvalue()
    assert "[the] work" in written
    assert written.endswith("[the] work: done after 1 min 1 s\n")
    assert "…" not in written
