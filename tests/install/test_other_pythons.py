"""The package on the other Pythons: installed from a fresh copy, without torch, with the unit tests that need none."""

from __future__ import annotations

import configparser
import re
import sys
import zipfile
from pathlib import Path

import pytest

from tests.install.other_pythons import ROOT, copy_project, environment_with, find_python, pip, run

PACKAGES = ("archiver", "serving", "image", "vertex", "marvec_cli")
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project as a fresh clone would have it."""
    return copy_project(tmp_path_factory.mktemp("fresh") / "project")


@pytest.fixture(scope="module")
def wheel(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that pip builds of the copy."""
    folder = tmp_path_factory.mktemp("wheel")
    pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", folder, project)
    (file,) = folder.glob("*.whl")
    return file


def test_the_wheel_holds_every_module_and_data_file_of_its_packages(project: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    written = set()
    for base, folder in (("handler", "handler"), *((".", one) for one in PACKAGES)):
        for file in (project / folder).rglob("*"):
            if file.suffix in (".py", ".xml", ".yaml", ".properties") and "build" not in file.parts:
                written.add(str(file.relative_to(project / base)))
    assert sorted(packed) == sorted(written)


@pytest.mark.parametrize("version", ["3.10", "3.12"])
def test_the_base_install_works_and_passes_the_torch_free_unit_tests(
    version: str, project: Path, wheel: Path, tmp_path: Path
) -> None:
    python = environment_with(python_or_skip(version), base_and_test_requirements(), CONSTRAINTS)
    pip(python, "install", "--no-deps", "--force-reinstall", wheel)
    pip(python, "check")

    # From elsewhere, so that the installed files answer and not the copy beside them.
    said = run([python.parent / "marvec", "--help"], cwd=tmp_path)
    assert "pack" in said
    assert "serve" in said

    assert run_torch_free_tests(python, project) > 100


def test_the_handlers_torch_free_unit_tests_pass_on_python_39(project: Path) -> None:
    requirements = (ROOT / "requirements" / "python3.9.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in requirements if not line.startswith("#")]
    python = environment_with(python_or_skip("3.9"), pins)
    assert run_torch_free_tests(python, project) > 100
