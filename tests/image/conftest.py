"""An engine, a copy of the project with the demo model's archive, and the images made of it, as a user makes them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.image.machine import Machine, Unavailable, prepare
from tests.install.other_pythons import copy_project

OFFICIAL = "docker.io/pytorch/torchserve:0.12.0-cpu"
BUILD_S = 1200


@pytest.fixture(scope="session")
def machine() -> Machine:
    """Return podman, or skip with the reason."""
    try:
        return prepare()
    except Unavailable as err:
        pytest.skip(str(err))


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, minilm_store: Path) -> Path:
    """Return a copy of the project whose model store holds minilm.mar."""
    copy = copy_project(tmp_path_factory.mktemp("image") / "project")
    shutil.copyfile(minilm_store / "minilm.mar", copy / "model_store" / "minilm.mar")
    return copy


Marvec = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def marvec(project: Path) -> Marvec:
    """Return what runs the copy's `marvec` with an environment."""

    def run(*arguments: str, environment: dict[str, str], check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", "from marvec_cli.main import app; app(prog_name='marvec')", *arguments],
            cwd=project,
            env=environment | {"PYTHONPATH": os.pathsep.join((str(project), str(project / "handler")))},
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )
        assert not check or done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def minilm_image(machine: Machine, marvec: Marvec) -> str:
    """Return the image of minilm.mar on our own base, built by `marvec image build`."""
    marvec("image", "build", "minilm", "--tag", "localhost/minilm:test", environment=machine.building)
    return "localhost/minilm:test"


@pytest.fixture(scope="session")
def server_image(machine: Machine, marvec: Marvec, minilm_image: str) -> str:
    """Return the image without a model."""
    marvec("image", "build", "--no-model", "--tag", "localhost/server:test", environment=machine.building)
    return "localhost/server:test"


@pytest.fixture(scope="session")
def official_base(machine: Machine, minilm_image: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a base under the official name: our own, dressed as the official one is, entrypoint and all."""
    (base,) = machine.podman("images", "--filter", "reference=marvec-base", "--format", "{{.ID}}").stdout.split()[:1]
    folder = tmp_path_factory.mktemp("official")
    (folder / "entrypoint.sh").write_text('#!/bin/bash\nset -e\neval "$@"\ntail -f /dev/null\n')
    (folder / "Dockerfile").write_text(
        f"""FROM {base}
USER root
COPY --chmod=755 entrypoint.sh /usr/local/bin/dockerd-entrypoint.sh
RUN echo model_store=/home/model-server/model-store > /home/model-server/config.properties
USER model-server
EXPOSE 8080 8081 8082 7070 7071
ENTRYPOINT ["/usr/local/bin/dockerd-entrypoint.sh"]
CMD ["serve"]
"""
    )
    machine.podman("build", "--tag", OFFICIAL, str(folder), timeout_s=BUILD_S)
    return OFFICIAL


@pytest.fixture
def docker(machine: Machine, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return an environment in which docker's own client builds and runs, on an engine that speaks its protocol."""
    if shutil.which("docker") is None:
        pytest.skip("docker's client is not installed")
    socket = tmp_path / "docker.sock"
    command = ["podman", "system", "service", "--time", "0", f"unix://{socket}"]
    service = subprocess.Popen(command, env=machine.building, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        # The client's newer builder speaks to Docker's own engine alone.
        chosen = {"DOCKER_HOST": f"unix://{socket}", "DOCKER_BUILDKIT": "0", "MARVEC_CONTAINER_ENGINE": "docker"}
        yield {**machine.environment, **chosen}
    finally:
        service.terminate()
        service.wait(30)
