"""Scores against transformers' own text-classification pipeline: every family, pairs, long texts, odd texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch
from transformers import pipeline

from archiver.options import PackOptions
from tests.models import classifiers
from tests.sentiment.asked import Asked, pack

MOST_DIFFERENCE = 1e-5
TEXTS = (
    "a rose",
    "the farm is small",
    "",
    "   ",
    "Grow the ROSE, in japan!",
    "日本の薔薇農家",
    "x" * 40,
    "the small model of a text " * 3,
    "the passage is a query; " * 40,  # cut
    "emoji 😀 and [SEP] <s> </s> as text",
)
PAIRS = (
    ("a rose", "the farm"),
    ("the farm", "a rose"),
    ("grow", "the small model of a text"),
    ("the passage " * 60, "a rose"),  # the first is cut
    ("a rose", "the passage " * 60),  # the second is cut
    ("the passage " * 50, "in the text of a farm " * 40),  # both are cut
    ("日本の薔薇農家", "食べられる"),
)
# Those whose hidden states share rows; the others are exported with one input in a row, or run on PyTorch.
SHARE_ROWS = (
    "bert",
    "roberta",
    "xlm-roberta",
    "distilbert",
    "modernbert",
    "albert",
    "electra",
    "mpnet",
    "gpt2",
    "qwen3",
)
PADDED = ("deberta-v2",)
ON_PYTORCH = ("bart",)

Ask = Callable[..., Asked]


class Oracle:
    """transformers on the source directory, one input at a time: nothing stands beside it."""

    def __init__(self, directory: Path) -> None:
        self._pipeline = pipeline("text-classification", model=str(directory), device="cpu", dtype=torch.float32)

    def scores(self, inputs: Sequence[object]) -> list[Mapping[str, float]]:
        found = [self._pipeline(one, top_k=None, truncation=True) for one in inputs]
        return [{item["label"]: item["score"] for item in one} for one in found]


@pytest.fixture(scope="session")
def classifier_dirs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    made: dict[tuple[object, ...], Path] = {}

    def make(kind: str, labels: tuple[str, ...] = classifiers.LABELS, problem_type: str | None = None) -> Path:
        key = (kind, labels, problem_type)
        if key not in made:
            made[key] = classifiers.write(tmp_path_factory.mktemp(kind) / kind, kind, labels, problem_type)
        return made[key]

    return make


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    def ask(directory: Path, **options: object) -> Asked:
        staged = tmp_path_factory.mktemp("asked") / "staged"
        return pack(directory, staged, PackOptions("-", **options))  # type: ignore[arg-type]

    return ask


def require_equal(given: Sequence[Mapping[str, float]], expected: Sequence[Mapping[str, float]]) -> None:
    assert len(given) == len(expected)
    for place, (ours, theirs) in enumerate(zip(given, expected, strict=True)):
        assert ours.keys() == theirs.keys()
        worst = max(abs(ours[label] - theirs[label]) for label in ours)
        assert worst <= MOST_DIFFERENCE, f"input {place}: {worst:.1e}"


@pytest.mark.parametrize("kind", [*SHARE_ROWS, *PADDED, *ON_PYTORCH])
def test_every_family_gives_the_pipelines_scores(kind: str, classifier_dirs: Callable[..., Path], asked: Ask) -> None:
    directory = classifier_dirs(kind)
    ours, oracle = asked(directory), Oracle(directory)
    expected = oracle.scores(TEXTS)
    assert max(abs(a["Positive"] - b["Positive"]) for a in expected for b in expected) > 0.05  # texts matter
    require_equal(ours.scores(TEXTS), expected)
    pairs = [{"text": first, "text_pair": second} for first, second in PAIRS]
    require_equal(ours.scores(pairs), oracle.scores(pairs))
    encoder = ours.service.describe()["engine"]
    assert isinstance(encoder, dict)
    assert encoder["encoder"] == ("transformers" if kind in ON_PYTORCH else "openvino")
    assert ours.service._model.encoder.policy.packs_rows is (kind in SHARE_ROWS)
