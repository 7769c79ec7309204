"""Scores against transformers' own text-classification pipeline: every family, pairs, long texts, odd texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sentiment.asked import Asked
from tests.sentiment.oracle import Oracle, require_equal

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
