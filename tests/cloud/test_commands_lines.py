"""What `--dry-run` prints, run by a shell and the real gcloud against a stand-in: the same requests as the commands."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cloud.commands import Commands
from tests.cloud.conftest import CloudEnvironment, GcloudEnvironment, OpenStandIn
from tests.cloud.images import OTHER_STUB, STUB

if TYPE_CHECKING:
    from tests.cloud.standin.stand_in import StandIn

pytestmark = pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
# Something for every option of gcloud's that is used.
FULL: Mapping[str, Mapping[str, object]] = {
    "model": {
        "description": "薔薇, and 'others'",
        "labels": {"team": "search"},
        "environment": {"MARVEC_LOG_LEVEL": "debug", "LIST": "a,b c"},
        "shared_memory_mb": 128,
        "version_aliases": ["canary"],
    },
    "endpoint": {"labels": {"stage": "test"}},
    "deployment": {
        "machine": "n1-standard-8",
        "accelerator": "NVIDIA_TESLA_T4",
        "accelerator_count": 2,
        "max_replicas": 4,
        "spot": True,
        "access_logging": True,
        "container_logging": False,
        "service_account": "server@demo-project.iam.gserviceaccount.com",
    },
}
# (command, what the settings are before it)
LIFE: list[tuple[tuple[str, ...], str]] = [
    (("upload",), STUB),
    (("deploy",), STUB),
    (("upload",), OTHER_STUB),
    (("deploy", "--traffic", "25"), OTHER_STUB),
    (("traffic", "1=50", "2=50"), OTHER_STUB),
    (("rollback",), OTHER_STUB),
    (("undeploy", "1"), OTHER_STUB),
    (("clean-up", "--yes"), OTHER_STUB),
]


def by_command(commands: Commands, command: tuple[str, ...]) -> None:
    """Do it."""
    commands.run(*command)


def by_lines(commands: Commands, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Let a shell do what the dry run prints."""
    commands.standin.calls.clear()
    printed = commands.run(*(word for word in command if word != "--yes"), "--dry-run").stdout
    assert commands.standin.calls.changed() == []
    done = subprocess.run(
        ["sh", "-e"], input=printed, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{printed}\n{done.stderr}"


def changes(standin: StandIn) -> list[tuple[str, Any]]:
    """Return what was asked for, without what differs from run to run."""
    return [(call.method, call.body) for call in standin.calls.changes()]


def test_the_lines_ask_for_what_the_commands_ask_for(
    open_standin: OpenStandIn,
    cloud_environment: CloudEnvironment,
    gcloud_environment: GcloudEnvironment,
    tmp_path: Path,
) -> None:
    from tests.cloud.images import stub_images

    with open_standin(stub_images()) as first, open_standin(stub_images()) as second:
        one, two = (Commands(standin, cloud_environment, tmp_path, STUB) for standin in (first, second))
        one.change(**FULL)
        environment = gcloud_environment(second)
        for command, image in LIFE:
            for commands in (one, two):
                commands.standin.calls.clear()
            one.change(model={"image": image})
            by_command(one, command)
            by_lines(two, command, environment)
            assert changes(second) == changes(first), command


def test_what_gcloud_cannot_say_is_said_by_curl(
    open_standin: OpenStandIn,
    cloud_environment: CloudEnvironment,
    gcloud_environment: GcloudEnvironment,
    tmp_path: Path,
) -> None:
    from tests.cloud.images import stub_images

    with open_standin(stub_images()) as standin:
        commands = Commands(standin, cloud_environment, tmp_path, STUB)
        commands.change(endpoint={"dedicated": True}, deployment={"max_replicas": 3})
        proxy = {"https_proxy": commands.environment["https_proxy"]}
        environment = {**gcloud_environment(standin), **proxy}
        for command in (("upload",), ("deploy",)):
            by_lines(commands, command, environment)
        commands.change(deployment={"min_replicas": 2})
        by_lines(commands, ("deploy",), environment)
        assert standin.calls.changed() == ["MutateDeployedModel"]
        printed = commands.run("predict", "日本", "--dry-run").stdout
        done = subprocess.run(
            ["sh", "-e"], input=printed, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert json.loads(done.stdout)["predictions"][0]["instance"] == "日本", done.stderr


def test_a_prediction_by_gcloud(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, gcloud_environment: GcloudEnvironment, tmp_path: Path
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    commands.run("upload")
    commands.run("deploy")
    (tmp_path / "body").write_text('{"instances": ["raw"]}')
    environment = gcloud_environment(stub_standin)
    for arguments in (("predict", "it's", "--parameters", '{"a": 1}'), ("predict", "--raw", "--file", "body")):
        printed = commands.run(*arguments, "--dry-run").stdout
        done = subprocess.run(
            ["sh", "-e"],
            input=printed,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{printed}\n{done.stderr}"
    assert [call.method for call in stub_standin.calls.of("Predict", "RawPredict")] == ["Predict", "RawPredict"]
    assert stub_standin.calls.of("Predict")[0].body["instances"] == ["it's"]
    assert stub_standin.calls.of("Predict")[0].body["parameters"] == {"a": 1.0}
