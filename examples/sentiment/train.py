r"""Fine-tune a sentiment classifier on labelled sentences, and save it as an ordinary Hugging Face directory.

    python examples/sentiment/train.py --output sentiment-model
    python examples/sentiment/train.py --output multilingual-model \
        --model "$(python -m demo e5)" --languages en ja --epochs 3

By default it begins with the demo model all-MiniLM-L6-v2, which is English. A language is two files in sentences/, one
to train on and one held out; a line is a label, a tab and a text. It takes less than a minute on two
idle cores, and minutes on busy ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # for the demo model, wherever this is run from

from demo.models import fetch  # noqa: E402

LABELS = ("Negative", "Positive")
# Chosen by cross-validation on the sentences to train on.
BATCH = 16
ENCODER_RATE = 1e-4
HEAD_RATE = 1e-3  # the head begins with random weights
WARM_UP = 0.1
_HEAD = ("classifier", "pooler")


class Sentence(NamedTuple):
    """A text and the index of its label."""

    label: int
    text: str


def main() -> int:
    """Train, measure, save; return the exit status."""
    asked = _arguments().parse_args()
    started = time.monotonic()
    try:
        sentences = [one for language in asked.languages for one in read(f"train-{language}")]
        held_out = {language: read(f"held-out-{language}") for language in asked.languages}
        _require_free(asked.output)
        if asked.epochs < 1:
            raise ValueError(f"--epochs: expected at least 1, got {asked.epochs}")
        if asked.model is not None and not (asked.model / "config.json").is_file():
            raise ValueError(f"{asked.model}: no model directory; it should hold config.json")
    except ValueError as err:
        sys.stderr.write(f"error: {err}\n")
        return 1
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    classifier = Classifier(asked.model or fetch("minilm"), asked.seed)
    print(f"training on {len(sentences)} sentences, {asked.epochs} times each", flush=True)
    for epoch, loss in enumerate(classifier.train(sentences, asked.epochs, asked.seed), 1):
        print(f"epoch {epoch} of {asked.epochs}: loss {loss:.3f}", flush=True)
    for language, texts in held_out.items():
        print(f"held out, {language}: {classifier.right(texts)} of {len(texts)} right")
    classifier.save(asked.output)
    print(f"saved {asked.output} after {time.monotonic() - started:.0f} s")
    return 0


def read(name: str) -> list[Sentence]:
    """Read labelled sentences.

    Args:
        name: Of a file in sentences/.

    Raises:
        ValueError: There is no such file, or a line is not a label, a tab and a text.
    """
    file = HERE / "sentences" / f"{name}.tsv"
    if not file.is_file():
        raise ValueError(f"{file}: no such file")
    sentences = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        label, _, text = line.partition("\t")
        if label not in LABELS or not text:
            raise ValueError(f"{file}, line {number}: expected {' or '.join(LABELS)}, a tab and a text")
        sentences.append(Sentence(LABELS.index(label), text))
    return sentences


class Classifier:
    """A pretrained encoder with a head of its own."""

    def __init__(self, source: Path, seed: int) -> None:
        """Load the encoder of a directory; the seed settles the head's first weights."""
        torch.manual_seed(seed)
        self._tokenizer = AutoTokenizer.from_pretrained(source)
        self._model = AutoModelForSequenceClassification.from_pretrained(
            source,
            id2label=dict(enumerate(LABELS)),
            label2id={label: i for i, label in enumerate(LABELS)},
            problem_type="single_label_classification",
            dtype=torch.float32,
        )
        self._model.base_model.get_input_embeddings().weight.requires_grad_(False)

    def train(self, sentences: Sequence[Sentence], epochs: int, seed: int) -> Iterator[float]:
        """Fine-tune all but the word embeddings, and yield the mean loss of each epoch."""
        head: list[Tensor] = []
        encoder: list[Tensor] = []
        for name, weight in self._model.named_parameters():
            if weight.requires_grad:
                (head if any(part in name for part in _HEAD) else encoder).append(weight)
        optimizer = torch.optim.AdamW([{"params": encoder, "lr": ENCODER_RATE}, {"params": head, "lr": HEAD_RATE}])
        steps = epochs * -(-len(sentences) // BATCH)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _share(step, steps))
        shuffled = torch.Generator().manual_seed(seed)
        self._model.train()
        for _ in range(epochs):
            order = torch.randperm(len(sentences), generator=shuffled).tolist()
            total = 0.0
            for start in range(0, len(order), BATCH):
                chosen = [sentences[i] for i in order[start : start + BATCH]]
                loss = self._model(**self._encoded(chosen), labels=_labels(chosen)).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_([*encoder, *head], 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                total += float(loss.detach()) * len(chosen)
            yield total / len(sentences)
        self._model.eval()

    @torch.inference_mode()
    def right(self, sentences: Sequence[Sentence]) -> int:
        """Count the sentences that get their label."""
        logits = self._model(**self._encoded(sentences)).logits
        return int((logits.argmax(dim=1) == _labels(sentences)).sum())

    def save(self, folder: Path) -> None:
        """Write the model, its tokenizer, and index_to_name.json as TorchServe's samples have it."""
        self._model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)
        names = {str(i): label for i, label in enumerate(LABELS)}
        (folder / "index_to_name.json").write_text(json.dumps(names) + "\n", encoding="utf-8")

    def _encoded(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        texts = [one.text for one in sentences]
        return dict(self._tokenizer(texts, padding=True, truncation=True, return_tensors="pt"))


def _labels(sentences: Sequence[Sentence]) -> Tensor:
    return torch.tensor([one.label for one in sentences])


def _share(step: int, steps: int) -> float:
    """The share of the learning rates at a step: up to all of them, then down to none."""
    warm_up = max(1, int(steps * WARM_UP))
    return min((step + 1) / warm_up, (steps - step) / max(1, steps - warm_up))


def _require_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder}: is not an empty folder; name another one with --output")


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Fine-tune a sentiment classifier on labelled sentences.")
    parser.add_argument("--model", type=Path, help="the encoder's directory (default: the demo model minilm)")
    parser.add_argument("--languages", nargs="+", default=["en"], help="of the sentences: en, ja, or both")
    parser.add_argument("--output", type=Path, default=Path("sentiment-model"), help="a folder to be made")
    parser.add_argument("--epochs", type=int, default=6, help="how often each sentence is seen (default: 6)")
    parser.add_argument("--seed", type=int, default=0, help="settles the head's first weights and the order")
    return parser


if __name__ == "__main__":
    sys.exit(main())
