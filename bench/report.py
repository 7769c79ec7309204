"""A result as a reader sees it: tables in report.md, plots beside it."""

from __future__ import annotations

from pathlib import Path

from bench import plots, table
from bench.machine import Machine
from bench.result import Result


def render(result: Result, folder: Path) -> str:
    """Write report.md and the plots into a folder.

    Args:
        result: What to tell.
        folder: Where they go; it is made if need be.

    Returns:
        The text of report.md.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_heading(result)]
    shown = dict.fromkeys((sample.model, sample.corpus, sample.cores) for sample in result.samples)
    for model, corpus, cores in shown:
        parts += [
            f"## {model}, {corpus}, {cores} core{'s' if cores > 1 else ''}\n",
            table.overview(result, model, corpus, cores),
        ]
        parts += [table.details(result, model, corpus, cores)]
    for rows, heading, tell in (
        (result.engine, "Engine", table.engine),
        (result.cold_starts, "Cold start", table.cold_starts),
        (result.memory, "Memory", table.memory),
        (result.soaks, "Soak", table.soaks),
    ):
        if rows:
            parts += [f"## {heading}\n", tell(result)]
    if shares := table.json_shares(result):
        parts += ["## Cost of decimal numbers over base64\n", shares]
    parts += ["## Who took part\n", table.contestants(result)]
    parts += [f"![{file.stem}]({file.name})\n" for file in plots.draw(result, folder)]
    text = "\n".join(parts)
    (folder / "report.md").write_text(text, encoding="utf-8")
    return text


def _heading(result: Result) -> str:
    told = f"{result.started}, commit {result.machine.commit}, {_machine(result.machine)}"
    return f"# Marvec beside its peers\n\n`{result.command}`\n\n{told}\n"


def _machine(machine: Machine) -> str:
    flags = ", ".join(machine.cpu_flags) or "no vector extensions"
    return f"{machine.cpu}, {machine.cores} cores ({flags}), {machine.memory_bytes / 1e9:.0f} GB memory"
