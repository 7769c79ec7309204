"""A process of its own, as a worker is one: `python -m bench.engine_process ARCHIVE_FOLDER < JSON > JSON`.

In: {"batches": [[texts of one call of the embedder, ...], ...], "repeats": 5}. Out: a list of
{"seconds", "flops", "gemm_flops_per_s"}, one for each time that all batches were embedded.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from bench.gemm import gemm_flops_per_s
from marvec.embedder import Embedder
from marvec.settings import Settings


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
    settings = Settings.from_mapping(yaml.safe_load((folder / "model-config.yaml").read_text())["handler"])
    config = json.loads((folder / "model" / "config.json").read_text())
    embedder = Embedder.load(folder / "model", settings)
    batches: list[list[str]] = asked["batches"]
    flops = forward_flops([len(tokens.ids) for texts in batches for tokens in embedder.tokenizer.encode(texts)], config)
    measured = []
    for number in range(asked["repeats"] + 1):
        gemm = gemm_flops_per_s()
        began_s = time.perf_counter()
        for texts in batches:
            embedder.embed_texts(texts)
        seconds = time.perf_counter() - began_s
        if number > 0:  # the first time warms up
            measured.append({"seconds": seconds, "flops": flops, "gemm_flops_per_s": gemm})
    json.dump(measured, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
