"""The package on the other Pythons: installed from a fresh copy, without torch, with the unit tests that need none."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from tests.install.other_pythons import ROOT, copy_project, environment_with, find_python, run

CONSTRAINTS = ROOT / "requirements" / "constraints.txt"


def python_or_skip(version: str) -> Path:
    python = find_python(version)
    if python is None:
        pytest.skip(f"no working Python {version} on this machine")
    return python


def base_and_test_requirements() -> list[str]:
    """Return what setup.cfg installs without any extra, and what the `test` extra adds."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    listed = setup["options"]["install_requires"] + setup["options.extras_require"]["test"]
    return [line for line in listed.split("\n") if line]


def run_torch_free_tests(python: Path, project: Path) -> int:
    """Run the unit tests that need no torch in a project's copy; return how many passed."""
    selection: list[str | Path] = ["-m", "unit and not torch", "-p", "no:cacheprovider", "--quiet", "tests/unit"]
    said = run([python, "-m", "pytest", *selection], cwd=project)
    passed = re.search(r"^(\d+) passed", said.splitlines()[-1])
    return int(passed.group(1)) if passed else 0


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12"])
def test_the_base_install_works_and_passes_the_torch_free_unit_tests(version: str, tmp_path: Path) -> None:
    python = environment_with(python_or_skip(version), base_and_test_requirements(), CONSTRAINTS)
    project = copy_project(tmp_path / "project")
    pip: list[str | Path] = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "install", "--no-deps", "--force-reinstall", project])

    code = "import importlib.metadata as m; print(*map(str, m.files('marvec')), sep='\\n')"
    installed = set(run([python, "-c", code], cwd=tmp_path).splitlines())
    written = {str(file.relative_to(project / "handler")) for file in (project / "handler").rglob("*.py")}
    for package in ("archiver", "serving", "marvec_cli"):
        written |= {str(file.relative_to(project)) for file in (project / package).rglob("*.py")}
    assert {file for file in written if "/" in file or file == "embedding_handler.py"} - installed == set()

    # From elsewhere, so that the installed files answer and not the copy beside them.
    said = run([python.parent / "marvec", "--help"], cwd=tmp_path)
    assert "pack" in said
    assert "serve" in said
    run([*pip, "check"], cwd=tmp_path)

    assert run_torch_free_tests(python, project) > 100


def test_the_handlers_torch_free_unit_tests_pass_on_python_39(tmp_path: Path) -> None:
    requirements = (ROOT / "requirements" / "python3.9.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in requirements if not line.startswith("#")]
    python = environment_with(python_or_skip("3.9"), pins)
    assert run_torch_free_tests(python, copy_project(tmp_path / "project")) > 100
