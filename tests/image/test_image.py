"""What is in an image, and what is not: labels, user, ports, size, layers, strays and secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.image.conftest import Marvec
from tests.image.container import Container
from tests.image.machine import Machine

ENTRYPOINT = ["python", "/home/model-server/serving/launch.py"]


def config_of(machine: Machine, image: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(machine.podman("image", "inspect", image).stdout)[0]
    return found


def run_once(machine: Machine, image: str, script: str) -> list[str]:
    """Run a shell script in the image as root and return its lines."""
    done = machine.podman(
        "run", "--rm", "--user", "0", "--network", "none", "--entrypoint", "bash", image, "-c", script
    )
    return done.stdout.splitlines()


def test_labels_user_ports_and_entrypoint(machine: Machine, minilm_image: str) -> None:
    config = config_of(machine, minilm_image)["Config"]
    labels = config["Labels"]
    assert config["User"] == "1000:1000"
    assert list(config["ExposedPorts"]) == ["7080/tcp"]
    assert config["Entrypoint"] == ENTRYPOINT
    assert config.get("Cmd") in (None, [])
    assert labels["marvec.model.id"] == "all-MiniLM-L6-v2"
    assert labels["org.opencontainers.image.version"] == "1.0"
    assert "marvec.model.revision" in labels
    assert "org.opencontainers.image.revision" in labels


def test_the_official_base_serves_with_our_entrypoint(machine: Machine, marvec: Marvec, official_base: str) -> None:
    """Its own would swallow every signal and outlive the server."""
    tag = "localhost/minilm:official"
    arguments = ("image", "build", "minilm", "--tag", tag, "--base-image", official_base)
    marvec(*arguments, environment=machine.building)
    assert config_of(machine, tag)["Config"]["Entrypoint"] == ENTRYPOINT
    assert config_of(machine, tag)["Config"].get("Cmd") in (None, [])
    with Container(machine, tag, "--network", "none") as container:
        assert len(container.ask("minilm", ["hello world"])[0]) == 384
        container.signal("TERM")
        assert container.wait_exit() == 143


def test_models_share_all_layers_but_the_last(machine: Machine, minilm_image: str, server_image: str) -> None:
    model, server = (config_of(machine, image)["RootFS"]["Layers"] for image in (minilm_image, server_image))
    assert model[: len(server)] == server
    assert len(model) == len(server) + 1


def test_size(machine: Machine, minilm_image: str, record_testsuite_property: Callable[[str, object], None]) -> None:
    """The size and what it is made of, for the log; a bound that a forgotten cache or a second torch would break."""
    size = config_of(machine, minilm_image)["Size"]
    parts = run_once(
        machine,
        minilm_image,
        "cd /home/venv/lib/python3*/site-packages; du -sm /usr /home/venv torch openvino transformers ts google sympy "
        "/home/model-server/model_store /usr/lib/jvm 2>/dev/null",
    )
    record_testsuite_property("image_bytes", size)
    print(f"\nimage: {size / 1e6:.0f} MB\n" + "\n".join(parts))  # noqa: T201
    assert size < 1_800_000_000


def test_no_compiler_no_cache_no_stray(machine: Machine, minilm_image: str) -> None:
    script = """
for program in gcc g++ cc make git curl wget javac; do command -v $program; done
find / -xdev \\( -path '*/.cache/*' -o -path '/var/lib/apt/lists/*_*' -o -path '/var/cache/apt/*.deb' \\
    -o -path '/tmp/*' -o -path "$HOME/.*" -a -type d -o -name '*.mar' -a -type f -o -name '*.whl' \\) \\
    -not -name .bashrc -not -name .profile -print
"""
    assert run_once(machine, minilm_image, script) == []


def test_only_what_serves_is_beside_the_model(machine: Machine, minilm_image: str) -> None:
    script = "cd /home/model-server && find . -mindepth 1 -maxdepth 2 -not -name '*.py' -not -name '.*rc' | sort"
    found = [line for line in run_once(machine, minilm_image, script) if not re.match(r"\./\.(bash|profile)", line)]
    assert found == [
        "./config.properties",
        "./model-store",
        "./model_store",
        "./model_store/minilm.mar",
        "./serving",
        "./serving/__pycache__",
        "./serving/log4j2.xml",
        "./serving/metrics.yaml",
        "./tmp",
    ]


def test_no_secret(machine: Machine, minilm_image: str) -> None:
    """Neither keys nor tokens are in files, environment or history."""
    patterns = r"BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|\"private_key_id\"|ya29\.[0-9A-Za-z_-]{20}|hf_[A-Za-z]{34}"
    # Tests and samples of libraries hold made-up keys; they come with the packages, whose hashes are checked.
    script = (
        f"grep -rIlE --exclude-dir site-packages '{patterns}' /home /etc /opt ~ /tmp /srv /usr/local 2>/dev/null; true"
    )
    assert run_once(machine, minilm_image, script) == []
    config = config_of(machine, minilm_image)
    assert not re.search(patterns, json.dumps([config["History"], config["Config"]]))
    names = {variable.split("=")[0] for variable in config["Config"]["Env"]}
    assert names <= {"PATH", "TEMP", "TMPDIR", "PYTHONUNBUFFERED", "LANG", "container"}


@pytest.mark.parametrize("path", ["/home/model-server/serving/launch.py", "/home/model-server/config.properties"])
def test_the_server_cannot_change_its_own_code(machine: Machine, minilm_image: str, path: str) -> None:
    script = f"test -r {path} && ! test -w {path}"
    machine.podman("run", "--rm", "--network", "none", "--entrypoint", "bash", minilm_image, "-c", script)
