"""A whole run on a tiny model: packed, served, compared, and told; and what a wrong command line is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import corpora, engine, soak
from bench.cli import app
from bench.comparison import Plan, compare
from bench.display import Display
from bench.drive import Window
from bench.load import Load
from bench.model import Model
from bench.qualifying import Field, check, qualify
from bench.result import Result
from bench.systems.marvec import Marvec
from bench.systems.system import UnavailableError
from tests.bench import made_up
from tests.models.tiny import HIDDEN, TinyModels


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def field(folder: Path, tiny_models: TinyModels) -> Field:
    """Marvec with a tiny model, and a Marvec in a precision that there is none of."""
    model = Model("tiny", tiny_models("bert", pooling="mean", normalize=True))
    assert model.dimension == HIDDEN
    assert model.weight_bytes > 0
    systems = [Marvec("marvec-float32", "Marvec, float32"), Marvec("marvec-float7", "Marvec, float7", dtype="float7")]
    with Display() as display:
        return qualify(systems, model, folder, display)


def test_who_can_take_part_gives_the_right_vectors_and_the_others_are_told(field: Field) -> None:
    able, unable = field.contestants
    assert [entry.system.name for entry in field.entries] == [able.system] == ["marvec-float32"]
    assert able.problem == ""
    assert able.least_cosine == pytest.approx(1.0, abs=1e-6)
    assert sorted(able.versions) == ["marvec", "openvino", "torch", "torchserve"]
    assert unable.problem.startswith("marvec ended with status 1: error: --dtype: expected one of ")
    assert unable.cosine is None


def test_a_comparison_visits_every_cell_in_every_round(field: Field, folder: Path, tmp_path: Path) -> None:
    model = field.entries[0].prepared.model
    texts = [corpora.build(name, model.language, model.tokenizer) for name in ("queries", "documents")]
    plan = Plan(field.entries, texts, [Load(1, 1), Load(2, 16)], rounds=2, window=Window(0.1, 0.3, 30.0))
    with Display() as display:
        samples = list(compare(plan, folder, display))
    visits = [(sample.round, sample.corpus, sample.load) for sample in samples]
    one_round = [("queries", "1x1"), ("queries", "2x16"), ("documents", "1x1"), ("documents", "2x2")]
    assert visits == [(number, *cell) for number in (0, 1) for cell in one_round]
    assert [sample.problem for sample in samples] == [""] * 8
    assert all(len(sample.latencies_s) >= sample.clients for sample in samples)


def test_the_engine_alone_is_timed_against_the_machine(field: Field, folder: Path) -> None:
    model = field.entries[0].prepared.model
    texts = corpora.build("queries", model.language, model.tokenizer)
    with Display() as display:
        samples = engine.engine(field.entries, texts, 1, folder, display)
    assert [(sample.batch, sample.round, sample.texts) for sample in samples] == [
        (1, 0, 64),
        (32, 0, 256),
        (256, 0, 256),
    ]
    assert all(min(sample.seconds, sample.flops, sample.gemm_flops_per_s) > 0 for sample in samples)


def test_a_soak_watches_memory_under_random_requests(field: Field, folder: Path) -> None:
    (entry,) = field.entries
    soaked = soak.soak(entry, minutes=0.02, folder=folder)
    assert soaked.requests > 0
    assert soaked.pss_bytes[0] > 50_000_000
    requests = soak.random_requests(entry.prepared.model, 50)
    assert requests == soak.random_requests(entry.prepared.model, 50)
    assert {len(texts) for texts in requests} <= set(range(1, soak.MOST_TEXTS + 1))


def test_vectors_that_are_others_keep_a_system_out(field: Field, tmp_path: Path) -> None:
    wrong = [[1.0] + [0.0] * (HIDDEN - 1)]
    with pytest.raises(UnavailableError, match=r"^mean cosine -?0\.\d{4} to sentence-transformers$"):
        check(field.entries[0], ["one text"], wrong, tmp_path / "log")


def test_a_report_can_be_rendered_again(tmp_path: Path) -> None:
    made_up.result().write(tmp_path / "result.json")
    shown = CliRunner().invoke(app, ["report", str(tmp_path / "result.json")])
    assert (shown.exit_code, shown.output) == (0, (tmp_path / "report.md").read_text(encoding="utf-8"))
    assert Result.read(tmp_path / "result.json") == made_up.result()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--model", "bert"], "model 'bert' is unknown; the known ones are minilm, e5, large"),
        (["run", "--systems", "tei"], "system 'tei' is unknown; the known ones are marvec-float32,"),
        (["run", "--loads", "16x1,3"], "load '3': expected CLIENTSxTEXTS, such as 16x1"),
        (["run", "--corpora", "poems"], "corpus 'poems' is unknown; the known ones are queries, mixed, documents"),
        (["report", "no.json"], "No such file or directory"),
    ],
)
def test_a_wrong_command_line_is_told_before_any_work(arguments: list[str], message: str) -> None:
    refused = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "TERM": "dumb"})
    assert refused.exit_code == 2
    assert message in refused.output
