"""Tiny classifiers, and what asks them; each made once for the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.options import PackOptions
from tests.models import classifiers
from tests.sentiment.asked import Asked, pack


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
