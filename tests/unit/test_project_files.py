"""What the tracked files may hold, and that metadata, pins and folders agree with each other."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20

# In pieces, since this file is checked too.
HOSTS = ("pypi", "pythonhosted", "download.pytorch", "registry.npmjs", "deb.debian")
PATHS = ("ro" + "ot", "wo" + "rk/main", "wo" + "rk/shared", "opt/py" + "pi", "opt/wh" + "eels")
FORBIDDEN = {
    "a registry's host": re.compile("|".join(re.escape(host) + r"\.(?:org|com)\b" for host in HOSTS)),
    "a path of one machine": re.compile("|".join(rf"(?<![\w.])/{path}/" for path in PATHS)),
}


def tracked_files() -> list[Path]:
    """Return the files that git tracks or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not in a git work tree")
    return [file for name in listed.stdout.split("\0")[:-1] if (file := ROOT / name).is_file()]


def read_setup() -> configparser.ConfigParser:
    """Return setup.cfg."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    return setup


def requirement_names(lines: str) -> set[str]:
    """Return the projects that a list of requirements names, without this one's own extras."""
    names = {re.split(r"[\s\[;=<>~!]", line.strip())[0] for line in lines.splitlines() if line.strip()}
    return {re.sub("[-_.]+", "-", name).lower() for name in names if not name.startswith("#")} - {"marvec"}


def test_no_tracked_file_is_over_one_mebibyte() -> None:
    assert [str(file) for file in tracked_files() if file.stat().st_size > MIB] == []


def test_no_tracked_file_names_a_registry_host_or_a_path_of_one_machine() -> None:
    found = []
    for file in tracked_files():
        text = file.read_bytes().decode("utf-8", "replace")
        for what, pattern in FORBIDDEN.items():
            found += [f"{file.relative_to(ROOT)}: {what}: {match.group()}" for match in pattern.finditer(text)]
    assert found == []


def test_setup_cfg_lists_every_package_folder() -> None:
    listed = read_setup()["options"]["packages"].split()
    found = set()
    for source in ("handler/marvec", "archiver", "serving", "image", "vertex", "marvec_cli"):
        for init in (ROOT / source).rglob("__init__.py"):
            found.add(".".join(init.parent.relative_to(ROOT).parts).removeprefix("handler."))
    assert sorted(listed) == sorted(found)


def test_the_image_of_the_pipelines_steps_is_sent_every_package() -> None:
    ignored = (ROOT / "docker" / "tools.Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert set(read_setup()["options"]["package_dir"].replace("=", " ").split()) <= sent
    assert all((ROOT / name).exists() for name in sent)


def test_every_requirement_is_pinned_by_the_constraints() -> None:
    setup = read_setup()
    wanted = requirement_names(setup["options"]["install_requires"])
    for name, extra in setup["options.extras_require"].items():
        if name != "pipeline":  # stands apart from dev, with pins of its own
            wanted |= requirement_names(extra)
    pinned = requirement_names((ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8"))
    assert wanted - pinned == set()


def test_every_requirement_of_python_39_is_an_exact_pin() -> None:
    lines = (ROOT / "requirements" / "python3.9.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9_.-]+==[0-9.]+", line)] == []


def test_handler_root_is_no_package_and_no_folder_shadows_a_module() -> None:
    assert not (ROOT / "handler" / "__init__.py").exists()
    assert not (ROOT / "docker" / "__init__.py").exists()
    assert not (ROOT / "triton").exists()


@pytest.mark.parametrize("folder", ["handler", "serving"])
def test_what_runs_in_an_archive_or_image_parses_as_python_39(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for file in files:
        ast.parse(file.read_text(encoding="utf-8"), filename=str(file), feature_version=(3, 9))


def test_serving_imports_the_standard_library_only() -> None:
    """But for the client of Cloud Storage, which only a boot that fetches imports."""
    standard = set(getattr(sys, "stdlib_module_names", ())) | {"serving"}
    if len(standard) == 1:
        pytest.skip("Python 3.9 does not list its own modules")
    foreign = []
    for file in sorted((ROOT / "serving").rglob("*.py")):
        allowed = standard | ({"google", "google_crc32c", "requests"} if file.name == "cloud_storage.py" else set())
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            foreign += [f"{file.name}: {name}" for name in names if name.split(".")[0] not in allowed]
    assert foreign == []


def test_starting_a_server_imports_no_client_of_cloud_storage() -> None:
    code = "import serving.launch, sys; print(sorted(set(sys.modules) & {'google', 'requests', 'google_crc32c'}))"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
