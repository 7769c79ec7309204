"""The tables of a report, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from bench.result import Result
from bench.summary import Cell, cells, ratio


def contestants_table(result: Result) -> str:
    """Who took part, with which versions, and how near their vectors are."""
    rows = []
    for one in result.contestants:
        cosine = "" if one.cosine is None else f"{one.cosine:.4f} ({one.least_cosine:.4f})"
        versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
        rows.append([one.model, one.title, cosine, versions, one.problem])
    return markdown(["model", "system", "cosine to sentence-transformers (least)", "versions", "remarks"], rows)


def throughput_table(result: Result, model: str, corpus: str) -> str:
    """Texts per second and latencies of each system under each load, for one model and corpus."""
    titles = {one.system: one.title for one in result.contestants}
    chosen = [cell for cell in cells(result.samples) if (cell.model, cell.corpus) == (model, corpus)]
    baseline = {cell.load: cell for cell in chosen if cell.system == result.baseline}
    loads = list(dict.fromkeys(cell.load for cell in chosen))
    rows = [
        [load.replace("x", " × "), title, *_figures(cell, baseline.get(load))]
        for load in loads
        for system, title in titles.items()
        for cell in chosen
        if (cell.load, cell.system) == (load, system)
    ]
    against = titles.get(result.baseline, result.baseline)
    head = ["clients × texts", "system", "texts/s", "lowest to highest", f"× {against}", "p50 ms", "p95 ms", "p99 ms"]
    return markdown(head, rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, cells as they are but for `|` and line breaks, which would end them."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in line)} |\n" for line in lines)


def _figures(cell: Cell, baseline: Cell | None) -> list[str]:
    if cell.texts_per_s is None:
        return [f"failed: {cell.problem}", "", "", "", "", ""]
    times = ratio(cell, baseline)
    speed = cell.texts_per_s
    return [
        f"{speed.median:.1f}",
        f"{speed.low:.1f} to {speed.high:.1f}",
        "" if times is None else f"{times:.2f}",
        *(f"{1000 * seconds:.1f}" for seconds in (cell.p50_s, cell.p95_s, cell.p99_s)),
    ]
