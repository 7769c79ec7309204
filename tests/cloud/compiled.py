"""Both pipelines as Kubeflow's compiler writes them, made once for all tests."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tests.install.other_pythons import ROOT, environment_with
from vertex import pipeline

IMAGE = "europe-west1-docker.pkg.dev/my-project/models/marvec:1"
# What `python -m vertex.pipeline compile` does, twice in one process: the imports take seconds.
_COMPILE = """
import sys
from vertex import pipeline
for name in pipeline.PIPELINES:
    words = ["compile", f"{sys.argv[1]}/{name}.yaml", "--image", sys.argv[2], "--pipeline", name]
    pipeline.app(words, standalone_mode=False)
"""


@cache
def texts() -> Mapping[str, str]:
    """Return the pipelines by name, as a fresh environment with the extra `pipeline` compiles them."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read_string((ROOT / "setup.cfg").read_text(encoding="utf-8"))
    extras = setup["options.extras_require"]
    listed = "\n".join((setup["options"]["install_requires"], extras["vertex"], extras["pipeline"])).split("\n")
    python = environment_with(Path(sys.executable), [line for line in listed if line and line != "marvec[vertex]"])
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(python), "-c", _COMPILE, folder, IMAGE],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'handler'}"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        told = [f"compiled: {folder}/{name}.yaml" for name in pipeline.PIPELINES]
        assert (done.returncode, done.stdout.splitlines()) == (0, told), done.stderr
        return {name: Path(folder, f"{name}.yaml").read_text(encoding="utf-8") for name in pipeline.PIPELINES}


def written(folder: Path) -> dict[str, Path]:
    """Write both pipelines to files of a folder; return these by name."""
    files = {name: folder / f"{name}.yaml" for name in pipeline.PIPELINES}
    for name, text in texts().items():
        files[name].write_text(text, encoding="utf-8")
    return files


def tasks(name: str) -> dict[str, Any]:
    """Return a pipeline's tasks."""
    found: dict[str, Any] = yaml.safe_load(texts()[name])["root"]["dag"]["tasks"]
    return found


def containers() -> dict[str, Any]:
    """Return what the steps of both pipelines run, by the step's name."""
    found: dict[str, Any] = {}
    for text in texts().values():
        for name, executor in yaml.safe_load(text)["deploymentSpec"]["executors"].items():
            found[name.removeprefix("exec-")] = executor["container"]
    return found
