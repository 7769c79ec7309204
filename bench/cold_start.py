"""Cold start: from the start of the process to the first vector, the files already in the page cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.display import Display
from bench.entry import Entry
from bench.result import ColdStart
from bench.server import ServerError


def cold_starts(entries: Sequence[Entry], starts: int, folder: Path, display: Display) -> list[ColdStart]:
    """Start each system several times, one after another in turns; a start that fails is said and left out.

    Args:
        entries: Who is started.
        starts: How often; one more at the beginning, which brings the files into the page cache, is not counted.
        folder: For logs.
        display: Where progress is shown.
    """
    display.expect(len(entries) * (starts + 1))
    found = []
    for number in range(-1, starts):
        for entry in entries:
            name = entry.system.name
            try:
                with entry.server(folder / f"{name}-start-{number}.log") as server:
                    if number >= 0:
                        found.append(ColdStart(entry.prepared.model.name, name, number, server.ready_after_s))
            except ServerError as err:
                display.say(f"{entry.system.title}: {err}")
            display.advance(f"{name} starts")
    return found
