"""Tables and plots of a result."""

from __future__ import annotations

from pathlib import Path

from bench import report, table
from tests.bench import made_up

OVERVIEW = """\
| system | 1 × 1, median ms | 1 × 1, texts/s | 4 × 32, texts/s |
| --- | --- | --- | --- |
| Marvec, float32 | 11.0 | 91.7 (1.83 ×) | 11733.3 (1.83 ×) |
| FastAPI | 20.0 | 50.0 (1.00 ×) | 6400.0 (1.00 ×) |
"""
DETAILS = """\
| clients × texts | system | texts/s | lowest to highest | × FastAPI | p50 ms | p95 ms | p99 ms |
| --- | --- | --- | --- | --- | --- | --- | --- |
| 1 × 1 | Marvec, float32 | 91.7 | 83.3 to 100.0 | 1.83 | 11.0 | 11.0 | 11.0 |
| 1 × 1 | FastAPI | 50.0 | 50.0 to 50.0 | 1.00 | 20.0 | 20.0 | 20.0 |
| 4 × 32 | Marvec, float32 | 11733.3 | 10666.7 to 12800.0 | 1.83 | 11.0 | 11.0 | 11.0 |
| 4 × 32 | FastAPI | 6400.0 | 6400.0 to 6400.0 | 1.00 | 20.0 | 20.0 | 20.0 |
"""
CONTESTANTS = """\
| model | system | cosine to sentence-transformers (least) | versions | remarks |
| --- | --- | --- | --- | --- |
| tiny | Marvec, float32 | 1.0000 (0.9999) | torch 2.13.0 |  |
| tiny | FastAPI | 1.0000 (1.0000) | fastapi 0.165.0, torch 2.13.0 |  |
| tiny | Other |  |  | pip / ended with status 1 |
"""
ENGINE = """\
| model | engine | corpus | texts a call | texts/s | lowest to highest | ms a call | GFLOP/s | float32 GEMM | share |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| tiny | Marvec, float32 | mixed | 32 | 128.0 | 128.0 to 128.0 | 250.0 | 80 | 100 | 0.80 |
"""
COLD_STARTS = """\
| model | system | start to first answer, s | lowest to highest |
| --- | --- | --- | --- |
| tiny | FastAPI | 5.0 | 4.0 to 6.0 |
"""
MEMORY = """\
| model | system | idle MiB | most under load MiB |
| --- | --- | --- | --- |
| tiny | FastAPI | 500 | 750 |
"""
SOAKS = """\
| model | system | minutes | requests | first MiB | most MiB | last MiB | growth over the second half | came to rest |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| tiny | Marvec, float32 | 3.0 | 99 | 1 | 4 | 4 | +0.0% | yes |
"""


def test_each_table_says_what_was_measured() -> None:
    result = made_up.result()
    assert table.overview(result, "tiny", "mixed", 2) == OVERVIEW
    assert table.details(result, "tiny", "mixed", 2) == DETAILS
    assert table.contestants(result) == CONTESTANTS
    assert table.engine(result) == ENGINE
    assert table.cold_starts(result) == COLD_STARTS
    assert table.memory(result) == MEMORY
    assert table.soaks(result) == SOAKS
    assert table.json_shares(result) == ""


def test_a_report_holds_the_tables_and_shows_the_plots_beside_it(tmp_path: Path) -> None:
    text = report.render(made_up.result(), tmp_path)
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == text
    for part in (OVERVIEW, DETAILS, CONTESTANTS, ENGINE, COLD_STARTS, MEMORY, SOAKS):
        assert part in text
    machine = "commit 0123456789ab, a processor, 2 cores (avx2), 8 GB memory"
    assert f"`python -m bench run`\n\n2026-12-01T12:00:00+00:00, {machine}\n" in text
    drawn = ["latency-tiny-mixed.svg", "memory-tiny-marvec-float32.svg", "throughput-tiny-mixed.svg"]
    assert sorted(file.name for file in tmp_path.glob("*.svg")) == drawn
    for name in drawn:
        assert f"]({name})" in text
        assert (tmp_path / name).read_text(encoding="utf-8").startswith('<?xml version="1.0"')


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        report.render(made_up.result(), tmp_path / name)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
