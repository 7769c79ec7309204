"""The plots of a report, one SVG file each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.result import Result
from bench.summary import Cell
from bench.table import ordered_cells
from bench.table import title as title_of

MARVEC = "marvec"
WARM = ("#b30000", "#e34a33", "#fc8d59", "#fdbb84")  # Marvec's own
COOL = ("#08519c", "#3182bd", "#6baed6", "#2ca25f", "#99d8c9", "#969696")


def draw(result: Result, folder: Path) -> list[Path]:
    """Draw all that a result has something for.

    Args:
        result: What to show.
        folder: Where the files go.

    Returns:
        The files.
    """
    found = ordered_cells(result)
    files = []
    for model, corpus, cores in dict.fromkeys((cell.model, cell.corpus, cell.cores) for cell in found):
        chosen = [cell for cell in found if (cell.model, cell.corpus, cell.cores) == (model, corpus, cores)]
        if len({cell.load for cell in chosen}) > 1:
            name = f"{model}-{corpus}" + ("" if cores == result.machine.cores else f"-{cores}-cores")
            files.append(_throughput(result, chosen, folder / f"throughput-{name}.svg"))
            files.append(_latency(result, chosen, folder / f"latency-{name}.svg"))
    for model in dict.fromkeys(cell.model for cell in found):
        files += _scaling(result, [cell for cell in found if cell.model == model], folder, model)
    for soak in result.soaks:
        file = folder / f"memory-{soak.model}-{soak.system}.svg"
        with _axes(file, f"{soak.model}: memory at full load") as axes:
            minutes, mebibytes = [s / 60 for s in soak.seconds], [b / 2**20 for b in soak.pss_bytes]
            axes.plot(minutes, mebibytes, color=WARM[0], label=title_of(result, soak.system))
            axes.set(xlabel="minutes", ylabel="MiB (proportional set size)", ylim=(0, 1.15 * max(mebibytes)))
        files.append(file)
    return files


def _throughput(result: Result, chosen: Sequence[Cell], file: Path) -> Path:
    """Bars, with the lowest and the highest round."""
    loads = list(dict.fromkeys(cell.load for cell in chosen))
    with _axes(file, f"{chosen[0].model}, {chosen[0].corpus} texts: throughput") as axes:
        for system, place, width in _bars(chosen):
            for cell in chosen:
                speed = cell.texts_per_s
                if cell.system == system and speed is not None:
                    reach = [[speed.median - speed.low], [speed.high - speed.median]]
                    label = title_of(result, system) if cell.load == loads[0] else ""
                    at, color = loads.index(cell.load) + place, _color(chosen, system)
                    axes.bar(at, speed.median, width, yerr=reach, color=color, label=label, error_kw={"lw": 0.8})
        axes.set(ylabel="texts per second", xlabel="clients × texts in a request")
        axes.set_xticks(range(len(loads)), [load.replace("x", " × ") for load in loads])
    return file


def _latency(result: Result, chosen: Sequence[Cell], file: Path) -> Path:
    """Median latencies against load, with a line up to the one that 95 % stay under."""
    loads = list(dict.fromkeys(cell.load for cell in chosen))
    with _axes(file, f"{chosen[0].model}, {chosen[0].corpus} texts: latency, median and 95th percentile") as axes:
        for system, place, _ in _bars(chosen):
            own = [cell for cell in chosen if cell.system == system and cell.texts_per_s is not None]
            axes.errorbar(
                [loads.index(cell.load) + place for cell in own],
                [1000 * cell.p50_s for cell in own],
                yerr=[[0.0] * len(own), [1000 * (cell.p95_s - cell.p50_s) for cell in own]],
                fmt="o",
                color=_color(chosen, system),
                label=title_of(result, system),
            )
        axes.set(ylabel="milliseconds", xlabel="clients × texts in a request", yscale="log")
        axes.set_xticks(range(len(loads)), [load.replace("x", " × ") for load in loads])
    return file


def _scaling(result: Result, found: Sequence[Cell], folder: Path, model: str) -> list[Path]:
    """Lines over text length, texts in a request and cores, where there are enough points for a line."""
    full = [cell for cell in found if cell.cores == result.machine.cores]
    by_length = [cell for cell in full if cell.corpus.startswith("length-")]
    by_batch = [cell for cell in full if cell.corpus == "mixed" and cell.load.startswith("1x")]
    files = []
    if len({cell.corpus for cell in by_length}) > 2:
        x = {cell: int(cell.corpus.removeprefix("length-")) for cell in by_length}
        files.append(_lines(result, x, folder / f"scaling-length-{model}.svg", f"{model}: length of texts", "tokens"))
    if len({cell.load for cell in by_batch}) > 2:
        x = {cell: int(cell.load.removeprefix("1x")) for cell in by_batch}
        title = f"{model}: texts in a request, one client"
        files.append(_lines(result, x, folder / f"scaling-batch-{model}.svg", title, "texts in a request"))
    loads = dict.fromkeys(cell.load for cell in found if cell.cores != result.machine.cores)
    for load in loads:
        x = {cell: cell.cores for cell in found if (cell.corpus, cell.load) == ("mixed", load)}
        title = f"{model}: cores, {load.replace('x', ' × ')}"
        files.append(_lines(result, x, folder / f"scaling-cores-{model}-{load}.svg", title, "cores"))
    return files


def _lines(result: Result, x: dict[Cell, int], file: Path, title: str, xlabel: str) -> Path:
    with _axes(file, title) as axes:
        for system in dict.fromkeys(cell.system for cell in x):
            own = sorted((at, cell.texts_per_s) for cell, at in x.items() if cell.system == system and cell.texts_per_s)
            reach = [[s.median - s.low for _, s in own], [s.high - s.median for _, s in own]]
            color = _color(list(x), system)
            medians = [speed.median for _, speed in own]
            axes.errorbar(
                [at for at, _ in own], medians, reach, marker="o", color=color, label=title_of(result, system)
            )
        ticks = sorted(set(x.values()))
        axes.set(xlabel=xlabel, ylabel="texts per second", yscale="log")
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
    return file


@contextmanager
def _axes(file: Path, title: str) -> Iterator[Axes]:
    """A figure of one pair of axes, written when the block ends; the same data give the same bytes."""
    with mpl.rc_context({"svg.hashsalt": MARVEC, "svg.fonttype": "path", "font.size": 9}):
        figure = Figure(figsize=(8, 4), layout="constrained")
        axes = figure.add_subplot()
        yield axes
        axes.set_title(title, loc="left")
        axes.grid(axis="y", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(file, metadata={"Date": None})


def _bars(chosen: Sequence[Cell]) -> Iterator[tuple[str, float, float]]:
    """Each system with its place beside a load's tick, and a bar's width."""
    systems = list(dict.fromkeys(cell.system for cell in chosen))
    width = 0.8 / len(systems)
    for i, system in enumerate(systems):
        yield system, (i - (len(systems) - 1) / 2) * width, width


def _color(chosen: Sequence[Cell], system: str) -> str:
    own = system.startswith(MARVEC)
    kin = [name for name in dict.fromkeys(cell.system for cell in chosen) if name.startswith(MARVEC) == own]
    colors = WARM if own else COOL
    return colors[kin.index(system) % len(colors)]
