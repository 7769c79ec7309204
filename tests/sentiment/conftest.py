"""Tiny classifiers, what asks them, and the classifiers of the example; each made once for the session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.options import PackOptions
from tests.models import classifiers
from tests.sentiment.asked import Asked, pack

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def classifier_dirs(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a maker of tiny classifiers: kind, labels, problem_type."""
    made: dict[tuple[object, ...], Path] = {}

    def make(kind: str, labels: tuple[str, ...] = classifiers.LABELS, problem_type: str | None = None) -> Path:
        key = (kind, labels, problem_type)
        if key not in made:
            made[key] = classifiers.write(tmp_path_factory.mktemp(kind) / kind, kind, labels, problem_type)
        return made[key]

    return make


@pytest.fixture(scope="session")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Asked]:
    """Return a maker of what `marvec pack` would serve of a directory; the options are those of PackOptions."""

    def ask(directory: Path, **options: object) -> Asked:
        staged = tmp_path_factory.mktemp("asked") / "staged"
        return pack(directory, staged, PackOptions("-", **options))  # type: ignore[arg-type]

    return ask


def _train(output: Path, *arguments: str) -> Path:
    command = [sys.executable, str(ROOT / "examples" / "sentiment" / "train.py"), "--output", str(output), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (output.parent / "told").write_text(done.stdout)
    return output


@pytest.fixture(scope="session")
def sentiment_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what examples/sentiment/train.py makes of the demo encoder; beside it lies `told`, what it printed."""
    return _train(tmp_path_factory.mktemp("sentiment") / "sentiment-model")


@pytest.fixture(scope="session")
def multilingual_dir(tmp_path_factory: pytest.TempPathFactory, e5_dir: Path) -> Path:
    """Return what it makes of the multilingual encoder, as the example's README has it."""
    arguments = ("--model", str(e5_dir), "--languages", "en", "ja", "--epochs", "3")
    return _train(tmp_path_factory.mktemp("multilingual") / "multilingual-model", *arguments)
