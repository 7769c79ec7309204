"""One run of a command: for each model, make the systems ready, measure, and write down what came of it."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

from bench import machine, report, systems
from bench.display import Display
from bench.model import get
from bench.qualifying import Field, qualify
from bench.result import Result
from bench.systems.system import System

RESULTS = Path(__file__).resolve().parent / "results"
RESULT_FILE = "result.json"
Measure = Callable[[Field, Path, Display, Result], None]
"""Takes who takes part, an empty folder, a display and the result, and adds to the result."""


def measure_models(models: Sequence[str], chosen: Sequence[System], measure: Measure, output: Path | None) -> Path:
    """Run a measurement for each model, and print its report.

    Args:
        models: Their names.
        chosen: Who is asked to take part.
        measure: What to do with those that can.
        output: The folder for the result; None for a new one in RESULTS.

    Returns:
        The folder that holds the result.
    """
    now = datetime.now(timezone.utc).astimezone()
    result = Result(
        command=shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        started=now.isoformat(timespec="seconds"),
        machine=machine.read(),
        baseline=systems.BASELINE,
    )
    folder = output or RESULTS / now.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    with Display() as display, tempfile.TemporaryDirectory(prefix="marvec-bench-") as scratch:
        try:
            for name in models:
                room = Path(scratch, name)
                room.mkdir()
                field = qualify(chosen, get(name), room, display)
                result.contestants.extend(field.contestants)
                if field.entries:
                    measure(field, room, display, result)
        finally:
            result.write(folder / RESULT_FILE)  # whatever ends it, hours of samples are kept
    sys.stdout.write(f"{report.render(result, folder)}\nwritten to {folder}\n")
    return folder
