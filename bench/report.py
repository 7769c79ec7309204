"""A result as a reader sees it: one Markdown file, plots beside it."""

from __future__ import annotations

from pathlib import Path

from bench.machine import Machine
from bench.result import Result
from bench.table import contestants_table, throughput_table


def render(result: Result, folder: Path) -> str:
    """Write report.md into a folder.

    Args:
        result: What to tell.
        folder: Where the files go.

    Returns:
        The text of report.md.
    """
    parts = [_heading(result), contestants_table(result)]
    for model, corpus in dict.fromkeys((sample.model, sample.corpus) for sample in result.samples):
        parts += [f"## {model}, {corpus}\n", throughput_table(result, model, corpus)]
    text = "\n".join(parts)
    (folder / "report.md").write_text(text, encoding="utf-8")
    return text


def _heading(result: Result) -> str:
    return f"# {result.command}\n\n{result.started}, commit {result.machine.commit}, {_machine(result.machine)}\n"


def _machine(machine: Machine) -> str:
    flags = ", ".join(machine.cpu_flags) or "no vector extensions"
    return f"{machine.cpu}, {machine.cores} cores ({flags}), {machine.memory_bytes / 1e9:.0f} GB memory"
