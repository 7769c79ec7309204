"""The commands. Each measures something, writes JSON, tables and plots into a folder, and prints the tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

from bench import cold_start, corpora, engine, json_cost, memory, model, report, scaling, soak, systems
from bench.comparison import Plan, compare
from bench.display import Display
from bench.drive import Window
from bench.load import LOADS, Load
from bench.qualifying import Field
from bench.result import Result, ResultError
from bench.session import measure_models
from bench.systems.system import System

QUICK_LOADS = "1x1,16x1,4x32"

app = typer.Typer(help="Measure Marvec beside what a user would pick instead.", no_args_is_help=True)


def _listed(check: Callable[[str], object], option: str, what: str) -> OptionInfo:
    """An option that takes several names with commas, each of which `check` refuses with a ValueError if wrong."""

    def checked(text: str) -> str:
        try:
            for name in _split(text):
                check(name)
        except ValueError as err:
            raise typer.BadParameter(str(err)) from err
        return text

    listed: OptionInfo = typer.Option(option, help=f"{what}; several with commas.", callback=checked)
    return listed


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


Models = Annotated[str, _listed(model.check, "--model", f"Of {', '.join(model.NAMES)}")]
Systems = Annotated[str, _listed(systems.find, "--systems", f"Of {', '.join(one.name for one in systems.ALL)}")]
OwnSystems = Annotated[str, _listed(systems.find_own, "--systems", f"Of {', '.join(one.name for one in systems.OWN)}")]
Loads = Annotated[str, _listed(Load.parse, "--loads", "CLIENTSxTEXTS, such as 16x1")]
Corpora = Annotated[str, _listed(corpora.lengths, "--corpora", f"Of {', '.join(corpora.NAMES)}, length-N")]
Rounds = Annotated[int, typer.Option("--rounds", min=1, help="How often each system is visited.")]
Seconds = Annotated[float, typer.Option("--seconds", min=0.1, help="Of each visit, after the warm-up.")]
Output = Annotated[Path | None, typer.Option(help="Folder for the result.  [default: bench/results/TIME]")]
ALL_LOADS = ",".join(load.name for load in LOADS)
ALL_CORPORA = ",".join(corpora.NAMES)
ALL_SYSTEMS = ",".join(one.name for one in systems.ALL)
QUICK_SYSTEMS = ",".join(systems.QUICK)
OWN_SYSTEMS = ",".join(one.name for one in systems.OWN)


@app.command()
def run(
    models: Models = "minilm,e5",
    names: Systems = ALL_SYSTEMS,
    loads: Loads = ALL_LOADS,
    corpus: Corpora = ALL_CORPORA,
    rounds: Rounds = 3,
    seconds: Seconds = 6.0,
    output: Output = None,
) -> None:
    """Compare systems: throughput and latency under several loads."""
    parsed = [Load.parse(load) for load in _split(loads)]

    def measure(field: Field, folder: Path, display: Display, result: Result) -> None:
        plan = Plan(field.entries, _texts(field, corpus), parsed, rounds, Window(seconds=seconds))
        result.samples.extend(compare(plan, folder, display))

    measure_models(_split(models), _systems(names), measure, output)


@app.command()
def quick(output: Output = None) -> None:
    """Compare Marvec with two others in under four minutes: minilm, mixed texts."""
    run("minilm", QUICK_SYSTEMS, QUICK_LOADS, "mixed", 2, 4.0, output)


@app.command("scaling")
def scale(
    models: Models = "minilm",
    names: Systems = QUICK_SYSTEMS,
    rounds: Rounds = 2,
    seconds: Seconds = 3.0,
    output: Output = None,
) -> None:
    """Measure how speed changes with the length of texts, the texts in a request, and cores."""

    def measure(field: Field, folder: Path, display: Display, result: Result) -> None:
        result.samples.extend(scaling.scaling(field.entries, rounds, Window(seconds=seconds), folder, display))

    measure_models(_split(models), _systems(names), measure, output)


@app.command("json")
def json_answers(models: Models = "minilm", rounds: Rounds = 3, seconds: Seconds = 4.0, output: Output = None) -> None:
    """Measure which share of a request the JSON numbers of its answer cost."""

    def measure(field: Field, folder: Path, display: Display, result: Result) -> None:
        plan = Plan(field.entries, _texts(field, "mixed"), json_cost.LOADS, rounds, Window(seconds=seconds))
        result.samples.extend(compare(plan, folder, display))

    measure_models(_split(models), json_cost.VARIANTS, measure, output)


@app.command("engine")
def engine_alone(
    models: Models = "minilm",
    names: OwnSystems = OWN_SYSTEMS,
    corpus: Corpora = "mixed",
    rounds: Rounds = 5,
    output: Output = None,
) -> None:
    """Measure Marvec's engine without a server, against what the cores can do."""

    def measure(field: Field, folder: Path, display: Display, result: Result) -> None:
        for texts in _texts(field, corpus):
            result.engine.extend(engine.engine(field.entries, texts, rounds, folder, display))

    measure_models(_split(models), _systems(names), measure, output)


@app.command("cold-start")
def start(
    models: Models = "minilm",
    names: Systems = ALL_SYSTEMS,
    starts: Annotated[int, typer.Option(min=1, help="How often each system is started.")] = 5,
    output: Output = None,
) -> None:
    """Measure the time from a server's start to its first answer."""

    def measure(field: Field, folder: Path, display: Display, result: Result) -> None:
        result.cold_starts.extend(cold_start.cold_starts(field.entries, starts, folder, display))

    measure_models(_split(models), _systems(names), measure, output)


@app.command("memory")
def memory_used(
    models: Models = "minilm",
    names: Systems = ALL_SYSTEMS,
    loads: Loads = "16x1,4x32",
    seconds: Seconds = 6.0,
    output: Output = None,
) -> None:
    """Measure servers' memory: idle, and the most under load."""
    parsed = [Load.parse(load) for load in _split(loads)]

    def measure(field: Field, folder: Path, display: Display, result: Result) -> None:
        (texts,) = _texts(field, "mixed")
        window = Window(seconds=seconds)
        result.memory.extend(memory.memory(field.entries, texts, parsed, window, folder, display))

    measure_models(_split(models), _systems(names), measure, output)


@app.command("soak")
def soak_marvec(
    minutes: Annotated[float, typer.Option(min=0.05, help="How long.")] = 10.0,
    models: Models = "minilm",
    names: OwnSystems = "marvec-float32",
    output: Output = None,
) -> None:
    """Load Marvec for minutes with requests of random sizes, and tell whether its memory comes to rest."""

    def measure(field: Field, folder: Path, display: Display, result: Result) -> None:
        for entry in field.entries:
            display.say(f"{entry.system.title}: {minutes:g} minutes at full load")
            result.soaks.append(soak.soak(entry, minutes, folder))

    measure_models(_split(models), _systems(names), measure, output)


@app.command("report")
def render(
    file: Annotated[Path, typer.Argument(help="A result.json.")],
    output: Annotated[Path | None, typer.Option(help="Folder.  [default: the file's]")] = None,
) -> None:
    """Write tables and plots again, from the JSON of an earlier run."""
    try:
        result = Result.read(file)
    except (ResultError, OSError) as err:
        raise typer.BadParameter(str(err)) from err
    sys.stdout.write(report.render(result, output or file.parent))


def _texts(field: Field, names: str) -> list[corpora.Corpus]:
    served = field.entries[0].prepared.model
    return [corpora.build(name, served.language, served.tokenizer) for name in _split(names)]


def _systems(names: str) -> list[System]:
    return [systems.find(name) for name in _split(names)]
