"""How a test file's needs are read from its imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import imports

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty project that stands in for this one."""
    (tmp_path / "handler" / "marvec").mkdir(parents=True)
    (tmp_path / "handler" / "marvec" / "__init__.py").write_text("")
    monkeypatch.setattr(imports, "SOURCES", (tmp_path / "handler", tmp_path))
    return tmp_path


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_an_import_anywhere_in_a_test_file_counts(project: Path) -> None:
    test = write(project / "tests" / "test_a.py", "import json\n\ndef test() -> None:\n    import torch.nn\n")
    assert imports.reach(test) == {"json", "torch"}
    assert imports.needs_extras(test)


def test_an_import_behind_a_module_of_the_project_counts_when_it_runs_on_import(project: Path) -> None:
    write(project / "handler" / "marvec" / "pooling.py", "from __future__ import annotations\nimport torch\n")
    write(project / "handler" / "marvec" / "embedder.py", "from .pooling import pool\n")
    test = write(project / "tests" / "test_a.py", "from marvec import embedder\n")
    assert imports.reach(test) == {"__future__", "marvec", "torch"}


@pytest.mark.parametrize(
    "text",
    [
        "def load() -> None:\n    import torch\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        "import typing\nif typing.TYPE_CHECKING:\n    import torch\n",
    ],
)
def test_an_import_that_does_not_run_on_import_does_not_count(project: Path, text: str) -> None:
    write(project / "handler" / "marvec" / "settings.py", text)
    test = write(project / "tests" / "test_a.py", "import marvec.settings\n")
    assert not imports.needs_extras(test)


def test_the_package_of_a_module_is_read_too(project: Path) -> None:
    write(project / "handler" / "marvec" / "encoder" / "__init__.py", "import torch\n")
    write(project / "handler" / "marvec" / "encoder" / "protocol.py", "import typing\n")
    test = write(project / "tests" / "test_a.py", "from marvec.encoder.protocol import Encoder\n")
    assert imports.needs_extras(test)


def test_two_modules_that_import_each_other_end(project: Path) -> None:
    write(project / "handler" / "marvec" / "one.py", "from marvec import two\n")
    write(project / "handler" / "marvec" / "two.py", "from marvec import one\n")
    test = write(project / "tests" / "test_a.py", "import marvec.one\n")
    assert imports.reach(test) == {"marvec"}


def test_the_parts_that_need_python_310_are_known(project: Path) -> None:
    write(project / "archiver" / "__init__.py", "")
    assert imports.needs_python_310(write(project / "tests" / "test_a.py", "from archiver import build\n"))
    assert not imports.needs_python_310(write(project / "tests" / "test_b.py", "from marvec import build\n"))


def test_the_tiny_models_need_torch_and_the_fixtures_do_not_need_it_to_be_read() -> None:
    assert imports.needs_extras(ROOT / "tests" / "models" / "tiny.py")
    assert not imports.needs_extras(ROOT / "tests" / "unit" / "test_project_files.py")
