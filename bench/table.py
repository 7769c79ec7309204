"""The tables of a report, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench import json_cost, soak
from bench.result import Result
from bench.summary import Cell, cells, ratio, spread

MIB = 2**20


def overview(result: Result, model: str, corpus: str, cores: int) -> str:
    """One line a system, for a README: a lone request's latency, then texts per second under each load."""
    chosen = _chosen(result, model, corpus, cores)
    by_place = {(cell.system, cell.load): cell for cell in chosen}
    loads = list(dict.fromkeys(cell.load for cell in chosen))
    rows = []
    for system in dict.fromkeys(cell.system for cell in chosen):
        lone = by_place.get((system, "1x1"))
        row = [title(result, system), f"{1000 * lone.p50_s:.1f}" if lone and lone.texts_per_s else ""]
        for load in loads:
            cell = by_place[system, load]
            times = ratio(cell, by_place.get((result.baseline, load)))
            share = "" if times is None else f" ({times:.2f} ×)"
            row.append(f"{cell.texts_per_s.median:.1f}{share}" if cell.texts_per_s else "failed")
        rows.append(row)
    return markdown(["system", "1 × 1, median ms", *(f"{_spaced(load)}, texts/s" for load in loads)], rows)


def details(result: Result, model: str, corpus: str, cores: int) -> str:
    """Every load and system with spreads, ratios to the baseline, and latencies."""
    chosen = _chosen(result, model, corpus, cores)
    baseline = {cell.load: cell for cell in chosen if cell.system == result.baseline}
    rows = [
        [_spaced(cell.load), title(result, cell.system), *_figures(cell, baseline.get(cell.load))]
        for load in dict.fromkeys(cell.load for cell in chosen)
        for cell in chosen
        if cell.load == load
    ]
    against = title(result, result.baseline)
    head = ["clients × texts", "system", "texts/s", "lowest to highest", f"× {against}", "p50 ms", "p95 ms", "p99 ms"]
    return markdown(head, rows)


def contestants(result: Result) -> str:
    """Who took part, with which versions, and how near their vectors are."""
    rows = []
    for one in result.contestants:
        cosine = "" if one.cosine is None else f"{one.cosine:.4f} ({one.least_cosine:.4f})"
        versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
        rows.append([one.model, one.title, cosine, versions, one.problem])
    return markdown(["model", "system", "cosine to sentence-transformers (least)", "versions", "remarks"], rows)


def cold_starts(result: Result) -> str:
    """Seconds from the start of a server to its first answer."""
    rows = []
    for model, system in dict.fromkeys((one.model, one.system) for one in result.cold_starts):
        found = spread([one.seconds for one in result.cold_starts if (one.model, one.system) == (model, system)])
        reach = f"{found.low:.1f} to {found.high:.1f}"
        rows.append([model, title(result, system), f"{found.median:.1f}", reach])
    return markdown(["model", "system", "start to first answer, s", "lowest to highest"], rows)


def memory(result: Result) -> str:
    """Memory of servers with all their processes."""
    rows = [
        [one.model, title(result, one.system), f"{one.idle_bytes / MIB:.0f}", f"{one.peak_bytes / MIB:.0f}"]
        for one in result.memory
    ]
    return markdown(["model", "system", "idle MiB", "most under load MiB"], rows)


def engine(result: Result) -> str:
    """The engine alone, against the machine's best."""
    rows = []
    keys = ((one.model, one.system, one.corpus, one.batch) for one in result.engine)
    for key in dict.fromkeys(keys):
        own = [one for one in result.engine if (one.model, one.system, one.corpus, one.batch) == key]
        model, system, corpus, batch = key
        speed = spread([one.texts / one.seconds for one in own])
        gflops = median(one.flops / one.seconds for one in own) / 1e9
        # Each time against the peak of the same minute: the machine's clock and its neighbours change.
        share = median(one.flops / one.seconds / one.gemm_flops_per_s for one in own)
        peak = median(one.gemm_flops_per_s for one in own) / 1e9
        figures = [f"{speed.median:.1f}", f"{speed.low:.1f} to {speed.high:.1f}"]
        figures += [f"{1000 * batch / speed.median:.1f}", f"{gflops:.0f}", f"{peak:.0f}", f"{share:.2f}"]
        rows.append([model, title(result, system), corpus, str(batch), *figures])
    head = ["model", "engine", "corpus", "texts a call", "texts/s", "lowest to highest", "ms a call", "GFLOP/s"]
    return markdown([*head, "float32 GEMM", "share"], rows)


def json_shares(result: Result) -> str:
    """What decimal numbers cost over base64; empty where base64 was not asked for."""
    shares = json_cost.shares(result.samples)
    rows = [
        [model, title(result, system), _spaced(load), f"{share:.1%}"] for (model, system, load), share in shares.items()
    ]
    return markdown(["model", "system", "clients × texts", "share of the median time"], rows) if rows else ""


def soaks(result: Result) -> str:
    """Memory over minutes."""
    rows = []
    for one in result.soaks:
        rest = f"failed: {one.problem}" if one.problem else "yes" if soak.at_rest(one) else "NO"
        growth = "" if one.problem else f"{soak.second_half_growth(one):+.1%}"  # a failure may come too soon for it
        figures = [f"{one.seconds[-1] / 60:.1f}", str(one.requests)]
        figures += [f"{size / MIB:.0f}" for size in (one.pss_bytes[0], max(one.pss_bytes), one.pss_bytes[-1])]
        rows.append([one.model, title(result, one.system), *figures, growth, rest])
    head = ["model", "system", "minutes", "requests", "first MiB", "most MiB", "last MiB"]
    return markdown([*head, "growth over the second half", "came to rest"], rows)


def ordered_cells(result: Result) -> list[Cell]:
    """The cells of a result, in the order of its contestants: rounds begin with another system each time."""
    systems = list(dict.fromkeys(one.system for one in result.contestants))
    return sorted(cells(result.samples), key=lambda cell: systems.index(cell.system))


def title(result: Result, system: str) -> str:
    """A system's title."""
    return next((one.title for one in result.contestants if one.system == system), system)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, cells as they are but for `|` and line breaks, which would end them."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(' '.join(cell.replace('|', '/').split()) for cell in line)} |\n" for line in lines)


def _chosen(result: Result, model: str, corpus: str, cores: int) -> list[Cell]:
    return [one for one in ordered_cells(result) if (one.model, one.corpus, one.cores) == (model, corpus, cores)]


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


def _spaced(load: str) -> str:
    return load.replace("x", " × ")
