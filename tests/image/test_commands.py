"""`marvec image build|run|push` as a user types them, with podman, and with docker's own client on podman's socket."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from serving.ports import free_ports
from tests.image.conftest import Marvec
from tests.image.machine import Machine


def test_build_says_what_it_made_and_what_is_next(machine: Machine, marvec: Marvec, minilm_image: str) -> None:
    done = marvec("image", "build", environment=machine.building)
    assert re.match(r"minilm:1\.0: [\d,]+ MB, of which images of other models share all but the model\n", done.stdout)
    assert done.stdout.endswith("\nnext: marvec image run minilm:1.0\n")
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("building "))
    assert re.fullmatch(r"building minilm:1\.0 on marvec-base:[0-9a-f]{12}", line), "the base is not built anew"


def test_run_waits_prints_curl_lines_and_leaves_it(machine: Machine, marvec: Marvec, minilm_image: str) -> None:
    (port,) = free_ports(1)
    arguments = ("image", "run", minilm_image, "--port", str(port), "--detach", "--", "--label", "marvec-test=detached")
    done = marvec(*arguments, environment=machine.environment)
    try:
        lines = done.stderr.splitlines()
        assert any(re.match(r"INFO     READY after [\d.]+ s: minilm 1\.0 on port 7080", line) for line in lines)
        (curl,) = (line for line in lines if line.startswith("curl "))
        answer = subprocess.run(["bash", "-c", curl], capture_output=True, text=True, check=True).stdout
        assert len(json.loads(answer)["predictions"][0]) == 384
        (stop,) = (line.split("to end it: ")[1] for line in lines if "to end it: " in line)
        subprocess.run(["bash", "-c", stop], env=machine.environment, check=True, capture_output=True)
    finally:
        machine.podman("rm", "--force", "--all", "--filter", "label=marvec-test=detached", check=False)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_run_hands_signals_on(
    machine: Machine, project: Path, minilm_image: str, number: signal.Signals, status: int
) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-c", "from marvec_cli.main import app; app()", "image", "run", minilm_image]
    url = f"http://127.0.0.1:{port}/predictions/minilm"
    with subprocess.Popen(
        [*command, "--port", str(port)],
        env=machine.environment | {"PYTHONPATH": os.pathsep.join((str(project), str(project / "handler")))},
        cwd=project,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # Whatever happens, nothing below waits for longer than this.
        watchdog = threading.Timer(180, process.kill)
        watchdog.start()
        try:
            assert process.stderr is not None
            seen = list(itertools.takewhile(lambda line: not line.startswith("curl "), process.stderr))
            assert requests.post(url, json={"instances": ["a"]}, timeout=30).status_code == 200, seen
            process.send_signal(number)
            rest = process.stderr.read()
            assert process.wait(60) == status, rest
        finally:
            watchdog.cancel()
            process.terminate()
    assert "stopping: what is in flight is answered first\n" in rest
    with pytest.raises(requests.ConnectionError):
        requests.post(url, json={"instances": ["a"]}, timeout=5)


def test_run_tells_why_a_container_ended(machine: Machine, marvec: Marvec, minilm_image: str) -> None:
    arguments = ("image", "run", minilm_image, "--port", str(free_ports(1)[0]), "--", "--env", "MARVEC_METRICS_PORT=x")
    done = marvec(*arguments, environment=machine.environment, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "CRITICAL MARVEC_METRICS_PORT='x': expected a port number from 1 to 65535",
        "error: it ended before it was READY, with exit status 1",
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("build", "other"), "holds no other.mar (it holds minilm.mar): pack it first"),
        (("build", "mine=minilm.mar"), "mine=minilm.mar: expected NAME or NAME.mar"),
        (("build", "minilm", "--no-model"), "minilm and --no-model: expected one of the two"),
        (("run", "localhost/none:1"), "there is no image localhost/none:1: marvec image build makes one"),
        (("push", "localhost/none:1", "127.0.0.1:1/none:1"), "there is no image localhost/none:1"),
        (("push", "localhost/minilm:test", "minilm:1.0"), "minilm:1.0: expected HOST/PATH/NAME:TAG"),
        (
            ("push", "localhost/minilm:test", "127.0.0.1:1/a/minilm:1"),
            "If it was not allowed: podman login 127.0.0.1:1",
        ),
    ],
)
def test_refusals(machine: Machine, marvec: Marvec, minilm_image: str, arguments: tuple[str, ...], reason: str) -> None:
    done = marvec("image", *arguments, environment=machine.environment, check=False)
    assert done.returncode == 1
    assert reason in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_without_an_engine_it_says_what_it_tried(marvec: Marvec, tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = marvec("image", "run", "minilm:1.0", environment=environment, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "error: no container engine works (docker: not installed; podman: not installed): "
        "install docker or podman, or start it\n"
    )


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Run a real registry on a free port; yields HOST:PORT."""
    program = shutil.which("docker-registry")
    if program is None:
        subprocess.run(["apt-get", "-qq", "install", "--yes", "docker-registry"], check=True, capture_output=True)
        program = "docker-registry"
    (port,) = free_ports(1)
    storage = f"storage:\n  filesystem:\n    rootdirectory: {folder}/registry\n"
    (folder / "registry.yml").write_text(f"version: 0.1\n{storage}http:\n  addr: 127.0.0.1:{port}\n")
    log = (folder / "registry.log").open("w")
    with log, subprocess.Popen([program, "serve", str(folder / "registry.yml")], stdout=log, stderr=log) as process:
        try:
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                try:
                    requests.get(f"http://127.0.0.1:{port}/v2/", timeout=5)
                    break
                except requests.ConnectionError:
                    time.sleep(0.1)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def test_push_to_a_real_registry(machine: Machine, marvec: Marvec, official_base: str, tmp_path: Path) -> None:
    """A small image is pushed: what matters is the road."""
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
    machine.podman("build", "--tag", "localhost/small:1", str(tmp_path))
    with registry(tmp_path) as host:
        (tmp_path / "registries.conf").write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
        environment = machine.environment | {"CONTAINERS_REGISTRIES_CONF": str(tmp_path / "registries.conf")}
        done = marvec("image", "push", "localhost/small:1", f"{host}/models/small:1", environment=environment)
        assert done.stdout == f"pushed: {host}/models/small:1\n"
        kind = {"Accept": "application/vnd.oci.image.manifest.v1+json"}
        manifest = requests.get(f"http://{host}/v2/models/small/manifests/1", headers=kind, timeout=10).json()
        (layer,) = manifest["layers"]
        assert requests.head(f"http://{host}/v2/models/small/blobs/{layer['digest']}", timeout=10).status_code == 200


def test_a_taken_port_is_told_before_anything_is_made(machine: Machine, marvec: Marvec, minilm_image: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = ("image", "run", minilm_image, "--port", str(port))
        done = marvec(*arguments, environment=machine.environment, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: port {port} cannot be used (Address already in use): stop what listens there, or give another with "
        "--port\n"
    )


def test_what_cannot_be_started_is_removed(machine: Machine, marvec: Marvec, minilm_image: str) -> None:
    extra = ("--label", "marvec-test=unstarted", "--entrypoint", "/none")
    arguments = ("image", "run", minilm_image, "--port", str(free_ports(1)[0]), "--", *extra)
    done = marvec(*arguments, environment=machine.environment, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: podman start: Error: ")
    assert "/none" in done.stderr
    left = machine.podman("ps", "--all", "--quiet", "--filter", "label=marvec-test=unstarted").stdout
    assert left == ""


def test_an_option_that_the_engine_does_not_know(machine: Machine, marvec: Marvec, minilm_image: str) -> None:
    arguments = ("image", "run", minilm_image, "--port", str(free_ports(1)[0]), "--", "--nonsense")
    done = marvec(*arguments, environment=machine.environment, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(": Error: unknown flag: --nonsense\n")


def test_without_an_archive_the_demo_is_packed_and_built(machine: Machine, project: Path, tmp_path: Path) -> None:
    """As an installed command sees it: only the packages of setup.cfg are on the path, not the checkout's root."""
    clone = tmp_path / "clone"
    shutil.copytree(project, clone, ignore=shutil.ignore_patterns("*.mar"))
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("archiver", "image", "marvec_cli", "serving"):
        (packages / name).symlink_to(clone / name)
    code = "import sys; sys.path.remove(''); from marvec_cli.main import app; app()"
    done = subprocess.run(
        [sys.executable, "-c", code, "image", "build", "--tag", "localhost/demo:test"],
        cwd="/",
        env=machine.building | {"PYTHONPATH": os.pathsep.join((str(packages), str(clone / "handler")))},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{clone / 'model_store'} is empty: packing the demo model minilm" in done.stderr
    assert (clone / "model_store" / "minilm.mar").is_file()
    assert machine.has("localhost/demo:test")


def test_docker_s_own_client(docker: dict[str, str], marvec: Marvec, minilm_image: str) -> None:
    marvec("image", "build", "minilm", "--tag", "localhost/minilm:docker", environment=docker)
    (port,) = free_ports(1)
    done = marvec("image", "run", "localhost/minilm:docker", "--port", str(port), "--detach", environment=docker)
    assert "READY after" in done.stderr
    (stop,) = (line.split("to end it: ")[1] for line in done.stderr.splitlines() if "to end it: " in line)
    subprocess.run(["bash", "-c", stop], env=docker, check=True, capture_output=True)
