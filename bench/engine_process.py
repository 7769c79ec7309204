"""A process of its own, as a worker is one: `python -m bench.engine_process ARCHIVE_FOLDER < JSON > JSON`.

In: {"cases": [[[text, ...], ...], ...], "repeats": 5}: cases of calls of texts. Out: for each case and repeat, in this
order, {"seconds", "flops", "gemm_flops_per_s"} of all its calls.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from bench.gemm import gemm_flops_per_s
from marvec import loading
from marvec.model import Model
from marvec.settings import read_settings


def forward_flops(lengths: Sequence[int], config: dict[str, int]) -> int:
    """Floating-point operations of a BERT-like encoder on texts of some lengths in tokens, padding not counted.

    Of a layer, two a weight and token: 4 matrices of hidden x hidden, 2 of hidden x intermediate; and for each pair of
    tokens two products of hidden numbers, scores and values.

    Args:
        lengths: Tokens of each text.
        config: The model's config.json.
    """
    hidden, inner, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    return sum(layers * (n * (8 * hidden**2 + 4 * hidden * inner) + 4 * n**2 * hidden) for n in lengths)


def main(folder: Path) -> None:
    """Load the archive's model and time it, a look at the machine's best before each time."""
    asked = json.load(sys.stdin)
    settings = read_settings(yaml.safe_load((folder / "model-config.yaml").read_text())["handler"])
    config = json.loads((folder / "model" / "config.json").read_text())
    model = loading.load(folder / "model", settings)
    measured = [times for calls in asked["cases"] for times in _time(model, config, calls, asked["repeats"])]
    json.dump(measured, sys.stdout)


def _time(
    model: Model, config: dict[str, int], calls: Sequence[Sequence[str]], repeats: int
) -> Iterator[dict[str, float]]:
    lengths = [len(tokens.ids) for texts in calls for tokens in model.tokenizer.encode(texts)]
    for number in range(repeats + 1):
        gemm = gemm_flops_per_s()
        began_s = time.perf_counter()
        for texts in calls:
            model.answer_texts(texts)
        seconds = time.perf_counter() - began_s
        if number > 0:  # the first time warms up
            yield {"seconds": seconds, "flops": forward_flops(lengths, config), "gemm_flops_per_s": gemm}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
