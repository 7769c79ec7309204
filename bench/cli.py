"""The commands: each measures something, writes result.json and report.md into a folder, and prints the report."""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from bench import corpora, machine, model, report, systems
from bench.comparison import Plan, compare
from bench.display import Display
from bench.drive import Window
from bench.load import LOADS, Load
from bench.result import Result

RESULTS = Path(__file__).resolve().parent / "results"
QUICK_LOADS = ("1x1", "16x1", "4x32")

app = typer.Typer(help="Measure Marvec beside what a user would pick instead.", no_args_is_help=True)
Output = Annotated[Path | None, typer.Option(help="Folder for the result.  [default: bench/results/TIME]")]


@app.command()
def run(
    models: Annotated[str, typer.Option("--model", help="Of minilm, e5, large; several with commas.")] = "minilm,e5",
    system: Annotated[str, typer.Option("--systems", help="Several with commas.  [default: all]")] = "",
    loads: Annotated[str, typer.Option(help="CLIENTSxTEXTS, several with commas.")] = ",".join(x.name for x in LOADS),
    corpus: Annotated[str, typer.Option("--corpora", help="Several with commas.")] = ",".join(corpora.NAMES),
    rounds: Annotated[int, typer.Option(min=1, help="How often each system is visited.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of each visit, after the warm-up.")] = 6.0,
    output: Output = None,
) -> None:
    """Compare systems: throughput and latency under several loads."""
    names = _split(system) or [one.name for one in systems.ALL]
    _compare(_split(models), names, _split(loads), _split(corpus), rounds, Window(seconds=seconds), output)


@app.command()
def quick(output: Output = None) -> None:
    """Compare Marvec with two others in under four minutes: minilm, mixed texts."""
    _compare(["minilm"], list(systems.QUICK), list(QUICK_LOADS), ["mixed"], 2, Window(seconds=4.0), output)


@app.command("report")
def render(file: Annotated[Path, typer.Argument(help="A result.json.")], output: Output = None) -> None:
    """Write tables and plots again, from the JSON of an earlier run."""
    sys.stdout.write(report.render(Result.read(file), output or file.parent))


def _compare(
    models: list[str],
    names: list[str],
    loads: list[str],
    corpus_names: list[str],
    rounds: int,
    window: Window,
    output: Path | None,
) -> None:
    chosen = systems.chosen(names)
    result = Result(
        command=f"python -m bench {' '.join(sys.argv[1:])}",
        started=datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds"),
        machine=machine.read(),
        baseline=systems.BASELINE,
    )
    with Display() as display, tempfile.TemporaryDirectory(prefix="marvec-bench-") as scratch:
        for name in models:
            served = model.get(name)
            texts = [corpora.build(one, served.language, served.tokenizer) for one in corpus_names]
            plan = Plan(served, chosen, texts, [Load.parse(load) for load in loads], rounds, window)
            folder = Path(scratch, name)
            folder.mkdir()
            compared = compare(plan, folder, display)
            result.contestants.extend(compared.contestants)
            result.samples.extend(compared.samples)
    _finish(result, output)


def _finish(result: Result, output: Path | None) -> None:
    folder = output or RESULTS / datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    result.write(folder / "result.json")
    sys.stdout.write(report.render(result, folder))
    sys.stdout.write(f"\nwritten to {folder}\n")


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
