"""Containers as strict platforms run them: read-only, any uid, no network, little memory, ports by variables."""

from __future__ import annotations

import pytest

from tests.image.container import Container
from tests.image.machine import Machine

TEXTS = ["hello world", ""]
STRICT = (
    "--read-only",
    "--tmpfs",
    "/tmp",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--network",
    "none",
)


@pytest.fixture(scope="module")
def expected(machine: Machine, minilm_image: str) -> list[list[float]]:
    """Return the vectors that an unlimited container gives."""
    with Container(machine, minilm_image, "--network", "none") as container:
        vectors: list[list[float]] = container.ask("minilm", TEXTS)
        return vectors


def test_read_only_with_one_tmpfs_and_no_capability(
    machine: Machine, minilm_image: str, expected: list[list[float]]
) -> None:
    with Container(machine, minilm_image, *STRICT) as container:
        assert container.probe().returncode == 0
        assert container.ask("minilm", TEXTS) == [pytest.approx(vector, abs=1e-5) for vector in expected]
        assert container.messages("WARNING") == []


@pytest.mark.parametrize("uid", ["12345:0", "2147483647:2147483647"])
def test_any_uid(machine: Machine, minilm_image: str, uid: str, expected: list[list[float]]) -> None:
    """OpenShift and the like choose one that no file knows."""
    with Container(machine, minilm_image, "--user", uid, *STRICT) as container:
        assert container.ask("minilm", TEXTS) == [pytest.approx(vector, abs=1e-5) for vector in expected]


def test_one_core_and_two_gigabytes(machine: Machine, minilm_image: str) -> None:
    with Container(machine, minilm_image, "--network", "none", "--memory", "2g", "--cpus", "1") as container:
        (plan,) = (message for message in container.messages() if message.startswith("serving minilm"))
        assert plan.startswith("serving minilm 1.0 with 1 worker x 1 threads (1 cores for 1 model; about ")
        assert plan.endswith("GB of 2.1 GB memory)")
        answers = container.ask("minilm", ["a text of some length, again and again " * 20] * 256)
        assert len(answers) == 256
        assert container.inspect()["State"]["OOMKilled"] is False


@pytest.mark.parametrize(
    ("variables", "port"),
    [
        ({"AIP_HTTP_PORT": "8080", "AIP_HEALTH_ROUTE": "/ping", "AIP_PREDICT_ROUTE": "/predictions/minilm"}, 8080),
        ({"PORT": "9000"}, 9000),
        ({"AIP_HTTP_PORT": "8080", "PORT": "9000", "AIP_STORAGE_URI": ""}, 8080),
    ],
)
def test_ports_and_routes_as_the_platform_sets_them(
    machine: Machine, minilm_image: str, variables: dict[str, str], port: int
) -> None:
    options = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
    with Container(machine, minilm_image, "--network", "none", *options) as container:
        assert len(container.ask("minilm", TEXTS, port)) == 2


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"AIP_HTTP_PORT": "http"}, "AIP_HTTP_PORT='http': expected a port number from 1 to 65535"),
        ({"PORT": "0"}, "PORT='0': expected a port number from 1 to 65535"),
        (
            {"AIP_HTTP_PORT": "8080", "MARVEC_METRICS_PORT": "8080"},
            "AIP_HTTP_PORT and MARVEC_METRICS_PORT are both port 8080: give each its own",
        ),
        (
            {"AIP_PREDICT_ROUTE": "/v1/endpoints/1/deployedModels/2:predict"},
            "AIP_PREDICT_ROUTE='/v1/endpoints/1/deployedModels/2:predict' leads nowhere: upload the model with "
            "serving_container_predict_route=/predictions/minilm or /invocations",
        ),
        (
            {"AIP_HEALTH_ROUTE": "/healthz"},
            "AIP_HEALTH_ROUTE='/healthz' leads nowhere: upload the model with serving_container_health_route=/ping",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    machine: Machine, minilm_image: str, variables: dict[str, str], reason: str
) -> None:
    options = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
    with Container(machine, minilm_image, "--network", "none", *options, wait=False) as container:
        assert container.wait_exit() == 1
        assert container.messages() == [reason]
