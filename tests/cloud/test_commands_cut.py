"""`marvec vertex` interrupted, cut off and refused, against a stand-in: nothing twice, and one line with the mend."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cloud.commands import ANSWERED, Commands
from tests.cloud.conftest import CloudEnvironment, OpenStandIn
from tests.cloud.images import BROKEN, STUB

if TYPE_CHECKING:
    from tests.cloud.standin.stand_in import StandIn


@pytest.fixture
def commands(stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path) -> Commands:
    """Return the commands over gRPC."""
    return Commands(stub_standin, cloud_environment, tmp_path, STUB)


def wait_for_call(standin: StandIn, *methods: str) -> None:
    """Wait until calls of these methods have come, one after another."""
    deadline = time.monotonic() + ANSWERED
    while not _in_order(methods, [call.method for call in standin.calls.all()]):
        assert time.monotonic() < deadline, f"{methods} did not come"
        time.sleep(0.02)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_deployment_that_is_ended_goes_on_when_it_is_run_again(
    open_standin: OpenStandIn, cloud_environment: CloudEnvironment, tmp_path: Path, end: signal.Signals
) -> None:
    from tests.cloud.standin.images import stub_image

    with open_standin({STUB: stub_image(STUB_READY_AFTER_S="9")}) as standin:
        commands = Commands(standin, cloud_environment, tmp_path, STUB)
        commands.run("upload")
        with commands.start("deploy") as process:
            wait_for_call(standin, "DeployModel", "GetOperation")
            os.killpg(process.pid, end)
            _, err = process.communicate(timeout=ANSWERED)
        if end == signal.SIGINT:
            assert process.returncode == 130
            assert err.endswith(": the same command again follows it to its end\n")
        again = commands.run("deploy")
        assert "deployment (begun earlier): done after " in again.stderr
        assert standin.calls.changed() == ["UploadModel", "CreateEndpoint", "DeployModel"]


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_an_answer_that_is_lost_is_looked_for_and_not_asked_for_again(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path, transport: str
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB, transport=transport)
    for method in ("UploadModel", "CreateEndpoint", "DeployModel"):
        stub_standin.trouble.cut(method)
    commands.run("upload")
    commands.run("deploy")
    assert stub_standin.calls.changed() == ["UploadModel", "CreateEndpoint", "DeployModel"]
    status = commands.json("status")
    assert (len(_list(status["versions"])), len(_list(status["deployed"]))) == (1, 1)


def test_a_moment_without_service_passes_unseen(commands: Commands) -> None:
    from tests.cloud.standin.errors import Code

    for method in ("ListModelVersions", "GetEndpoint", "UploadModel", "GetOperation"):
        commands.standin.trouble.fail(method, Code.UNAVAILABLE)
    commands.run("upload")
    assert commands.standin.trouble.left() == 0
    assert [call.outcome for call in commands.standin.calls.of("UploadModel")] == ["UNAVAILABLE", "OK"]


@pytest.mark.parametrize(
    ("method", "code", "status", "told"),
    [
        (
            "UploadModel",
            "PERMISSION_DENIED",
            3,
            "not permitted in demo-project: who is logged in needs roles/aiplatform.user (docs/vertex.md). Google said:"
            " Permission denied on resource project demo-project.",
        ),
        (
            "UploadModel",
            "RESOURCE_EXHAUSTED",
            5,
            "a quota of demo-project in us-central1 is used up: take fewer or smaller machines or another region, or "
            "ask for more at https://console.cloud.google.com/iam-admin/quotas?project=demo-project. Google said: ",
        ),
        (
            "UploadModel",
            "NOT_FOUND",
            4,
            "what is needed does not exist: check project, region and names. Google said: The requested resource is "
            "not found.",
        ),
        ("UploadModel", "INVALID_ARGUMENT", 1, "Vertex AI refused: INVALID_ARGUMENT"),
    ],
)
def test_what_is_refused_is_one_line_with_the_mend(
    commands: Commands, method: str, code: str, status: int, told: str
) -> None:
    from tests.cloud.standin.errors import Code

    commands.standin.trouble.fail(method, Code[code])
    failed = commands.run("upload", expect=status)
    assert failed.stdout == ""
    assert failed.stderr.startswith(f"error: {told}")
    assert failed.stderr.count("\n") == 1


def test_nobody_is_logged_in(commands: Commands) -> None:
    commands.environment["GOOGLE_APPLICATION_CREDENTIALS"] = ""
    commands.environment |= {"NO_GCE_CHECK": "true", "CLOUDSDK_CONFIG": str(commands.folder / "none")}
    assert commands.run("upload", expect=3).stderr == (
        "error: nobody is logged in to Google Cloud: run gcloud auth application-default login, or name a service "
        "account's key file in GOOGLE_APPLICATION_CREDENTIALS\n"
    )
    shown = commands.run("deploy", "--dry-run").stdout
    assert "# so this is for a project in which nothing exists yet\n" in shown
    assert "--model=stub@1" in shown


def test_a_login_that_is_refused(commands: Commands) -> None:
    commands.standin.trouble.refuse_tokens = True
    failed = commands.run("upload", expect=3)
    assert failed.stderr.startswith("error: the login is not accepted: run gcloud auth application-default login")


def test_a_container_that_never_becomes_ready(commands: Commands) -> None:
    commands.change(model={"image": BROKEN, "startup_timeout_s": 10})
    commands.run("upload")
    failed = commands.run("deploy", expect=6)
    said = failed.stderr.splitlines()[-1]
    assert said.startswith(
        "error: deployment of stub@1 failed: the container never became READY, and its log says why. Google said: Model"
        " server never became ready."
    )
    assert said.endswith("resource.labels.endpoint_id%3D%22stub%22")
    commands.change(model={"image": STUB})
    commands.run("upload")
    commands.run("deploy")


def test_an_operation_that_fails_for_want_of_quota(commands: Commands) -> None:
    from tests.cloud.standin.errors import Code

    commands.run("upload")
    commands.standin.trouble.fail_operation("DeployModel", Code.RESOURCE_EXHAUSTED)
    failed = commands.run("deploy", expect=5)
    assert "error: a quota of demo-project in us-central1 is used up" in failed.stderr
    assert commands.json("status")["deployed"] == []


def test_two_at_once_make_one_endpoint(commands: Commands) -> None:
    commands.run("upload")
    both = [commands.start("deploy") for _ in range(2)]
    ends = [process.communicate(timeout=ANSWERED) for process in both]
    done = [call.method for call in commands.standin.calls.changes() if call.outcome == "OK"]
    assert done == ["UploadModel", "CreateEndpoint", "DeployModel"], ends
    assert {process.returncode for process in both} == {0}, ends


def _in_order(methods: Sequence[str], came: list[str]) -> bool:
    left = iter(came)
    return all(method in left for method in methods)


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
