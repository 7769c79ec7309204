"""Plans carried out, on a stand-in at our own seam (`vertex_google`): what is missing is sent, and once.

Real clients, real connections that are cut and a process that is killed are tried in tests/cloud.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import requests
from google.api_core import exceptions
from google.cloud.aiplatform_v1 import (
    CreateEndpointRequest,
    DeleteEndpointRequest,
    DeleteModelRequest,
    DeployModelRequest,
    Model,
    UndeployModelRequest,
    UploadModelRequest,
)
from google.rpc.code_pb2 import Code
from google.rpc.status_pb2 import Status

from tests.unit.vertex_google import Google, Trouble
from tests.unit.vertex_samples import MODEL, Told, deployed, endpoint, settings, two_versions, version
from vertex import clean_up, deploy, traffic, upload
from vertex.carry_out import carry_out, carry_out_all, wait_for_begun
from vertex.errors import OperationError, QuotaError
from vertex.found import Found

if TYPE_CHECKING:
    from proto import Message

CUTS: list[type[Exception]] = [
    exceptions.ServiceUnavailable,
    exceptions.DeadlineExceeded,
    exceptions.GatewayTimeout,
    exceptions.BadGateway,
    exceptions.AlreadyExists,
    exceptions.Aborted,
    exceptions.Conflict,
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
]
NO_LUCK = Status(code=Code.INTERNAL, message="out of luck")


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that vertex.carry_out would sleep, and let it not sleep."""
    slept: list[float] = []
    monkeypatch.setattr("vertex.carry_out.time", SimpleNamespace(sleep=slept.append))
    return slept


def deploy_one(found: Found) -> Sequence[Message]:
    """Plan the deployment of version 1."""
    return deploy.plan(settings(), found, version(1), None)


def upload_one(found: Found) -> Sequence[Message]:
    """Plan an upload."""
    return upload.plan(settings(), found)


def sent(google: Google) -> list[str]:
    """Return the kinds of what was sent."""
    return [type(request).__name__.removesuffix("Request") for request in google.sent]


def test_an_empty_plan_sends_nothing(slept: list[float]) -> None:
    told, google = Told(), Google(two_versions({"22": 100}))
    assert carry_out(google, settings(), lambda _: [], told.progress) == two_versions({"22": 100})
    assert (google.sent, told.lines, slept) == ([], [], [])


def test_it_is_planned_anew_after_each_step() -> None:
    told, google = Told(), Google(Found((version(1),)))
    seen: list[Found] = []

    def plan(found: Found) -> Sequence[Message]:
        seen.append(found)
        return deploy_one(found)

    there = carry_out(google, settings(), plan, told.progress)

    assert sent(google) == ["CreateEndpoint", "DeployModel"]
    assert [found.endpoint is not None for found in seen] == [False, True, True]
    assert [found.split for found in seen] == [{}, {}, {"11": 100}]
    assert there == seen[-1]
    assert told.lines == [
        "creation of the endpoint search …",
        "creation of the endpoint search: done after 0 s",
        "deployment of minilm@1 …",
        "deployment of minilm@1: done after 0 s",
    ]


def test_a_step_without_an_operation_is_done_at_once(slept: list[float]) -> None:
    told, google = Told(), Google(two_versions({"22": 100}))
    wanted = {"11": 50, "22": 50}

    def plan(found: Found) -> Sequence[Message]:
        return [] if found.split == wanted else [deploy.traffic_request(settings(), wanted)]

    assert carry_out(google, settings(), plan, told.progress).split == wanted
    assert sent(google) == ["UpdateEndpoint"]
    assert (told.lines, slept) == (["change of traffic: done"], [])


def test_an_operation_is_looked_at_less_and_less_often(slept: list[float]) -> None:
    google = Google()
    google.looks = 6
    carry_out(google, settings(), upload_one, Told().progress)
    assert slept == [0.5, 1.0, 2.0, 5.0, 5.0, 5.0]


def test_what_was_begun_earlier_is_waited_for_and_not_begun_twice() -> None:
    told, google = Told(), Google()
    google.begin(upload_one(Found())[0])
    there = carry_out(google, settings(), upload_one, told.progress)
    assert [one.version_id for one in there.versions] == ["1"]
    assert google.sent == []
    assert told.lines == [
        "upload (begun earlier) …",
        "upload (begun earlier): done after 0 s",
    ]


def test_what_was_begun_earlier_on_the_endpoint_too() -> None:
    google = Google(Found((version(1),), endpoint()))
    google.begin(deploy_one(Found((version(1),), endpoint()))[0])
    assert carry_out(google, settings(), deploy_one, Told().progress).split == {"11": 100}
    assert google.sent == []


@pytest.mark.parametrize("error", CUTS, ids=lambda error: error.__name__)
def test_a_request_that_was_heard_is_not_sent_again(error: type[Exception], slept: list[float]) -> None:
    told, google = Told(), Google()
    google.troubles = [Trouble(error, heard=True)]
    there = carry_out(google, settings(), upload_one, told.progress)
    assert [one.version_id for one in there.versions] == ["1"]
    assert sent(google) == ["UploadModel"]
    assert told.lines[0] == "upload (begun earlier) …"
    assert slept[0] == 2.0


@pytest.mark.parametrize("error", CUTS, ids=lambda error: error.__name__)
def test_a_request_that_was_not_heard_is_sent_again(error: type[Exception]) -> None:
    google = Google()
    google.troubles = [Trouble(error, heard=False)] * 3
    there = carry_out(google, settings(), upload_one, Told().progress)
    assert [one.version_id for one in there.versions] == ["1"]
    assert sent(google) == ["UploadModel"] * 4


def test_a_change_of_traffic_that_was_heard_is_not_sent_again() -> None:
    google = Google(two_versions({"22": 100}))
    google.troubles = [Trouble(exceptions.ServiceUnavailable, heard=True)]

    def plan(found: Found) -> Sequence[Message]:
        return [] if found.split["11"] else [deploy.traffic_request(settings(), traffic.back_from(found.split, "22"))]

    assert carry_out(google, settings(), plan, Told().progress).split == {"11": 100, "22": 0}
    assert sent(google) == ["UpdateEndpoint"]


def test_the_fourth_cut_is_the_end(slept: list[float]) -> None:
    google = Google()
    google.troubles = [Trouble(exceptions.ServiceUnavailable, heard=False)] * 4
    with pytest.raises(exceptions.ServiceUnavailable):
        carry_out(google, settings(), upload_one, Told().progress)
    assert sent(google) == ["UploadModel"] * 4
    assert slept == [2.0, 2.0, 2.0]


def test_a_refusal_is_not_sent_again() -> None:
    google = Google()
    google.troubles = [Trouble(exceptions.InvalidArgument, heard=False)]
    with pytest.raises(exceptions.InvalidArgument):
        carry_out(google, settings(), upload_one, Told().progress)
    assert sent(google) == ["UploadModel"]


def test_an_operation_that_failed_ends_it() -> None:
    told, google = Told(), Google(Found((version(1),), endpoint()))
    google.failing = {DeployModelRequest: NO_LUCK}
    with pytest.raises(OperationError) as caught:
        carry_out(google, settings(), deploy_one, told.progress)
    assert str(caught.value) == "deployment of minilm@1 failed: out of luck"
    assert told.lines == ["deployment of minilm@1 …"]
    google.failing = {}
    assert carry_out(google, settings(), deploy_one, told.progress).split == {"11": 100}


def test_ctrl_c_tells_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    told, google = Told(), Google()
    with monkeypatch.context() as patched:
        patched.setattr("vertex.carry_out.time", SimpleNamespace(sleep=interrupted))
        with pytest.raises(KeyboardInterrupt):
            carry_out(google, settings(), upload_one, told.progress)
    assert told.lines == [
        "upload of minilm …",
        f"upload of minilm goes on at Google as {MODEL}/operations/1: the same command again follows it to its end",
    ]

    there = carry_out(google, settings(), upload_one, told.progress)
    assert [one.version_id for one in there.versions] == ["1"]
    assert sent(google) == ["UploadModel"]


def test_all_goes_on_after_a_failure() -> None:
    told, google = Told(), Google(Found((version(1),), endpoint(deployed("11", 1), split={"11": 100})))
    google.troubles = [None, Trouble(exceptions.PermissionDenied, heard=False), None]
    google.failing = {UndeployModelRequest: NO_LUCK}
    steps = clean_up.plan(settings(), Found(tuple(google.versions), google.served))

    failures = carry_out_all(google, settings(), steps, told.progress)

    assert [type(step) for step in google.sent] == [UndeployModelRequest, DeleteEndpointRequest, DeleteModelRequest]
    denied = (
        "not permitted in my-project: who is logged in needs roles/aiplatform.user (docs/vertex.md). Google said: no"
    )
    assert [str(failure) for failure in failures] == ["undeployment of 11 failed: out of luck", denied]
    assert told.lines == [
        "undeployment of 11 …",
        "undeployment of 11 failed: out of luck",
        f"deletion of the endpoint search: {denied}",
        "deletion of the model minilm …",
        "deletion of the model minilm: done after 0 s",
    ]
    assert (google.versions, google.served is None) == ([], False)


def test_all_of_it_is_deleted() -> None:
    google = Google(two_versions({"11": 30, "22": 70}))
    steps = clean_up.plan(settings(), two_versions({"11": 30, "22": 70}))
    assert carry_out_all(google, settings(), steps, Told().progress) == []
    assert (google.versions, google.served) == ([], None)


def test_how_what_was_begun_ends_is_told_alone() -> None:
    told, google = Told(), Google(Found((version(1),)))
    google.begin(UploadModelRequest())
    google.begin(CreateEndpointRequest())
    google.failing = {
        UploadModelRequest: NO_LUCK,
        CreateEndpointRequest: Status(code=Code.RESOURCE_EXHAUSTED, message="no more"),
    }
    wait_for_begun(google, settings(), told.progress)
    assert told.lines[:2] == [
        "upload (begun earlier) …",
        "upload (begun earlier) failed: out of luck",
    ]
    assert told.lines[3].startswith("a quota of my-project in europe-west1 is used up: ")


def test_what_was_begun_earlier_and_failed_ends_a_plan() -> None:
    google = Google()
    google.begin(CreateEndpointRequest())
    google.failing = {CreateEndpointRequest: Status(code=Code.RESOURCE_EXHAUSTED, message="no more")}
    with pytest.raises(QuotaError):
        carry_out(google, settings(), upload_one, Told().progress)
    assert google.sent == []


def test_what_google_tells_in_other_words_is_done_once(slept: list[float]) -> None:
    class Forgetful(Google):
        """Does all, and tells nothing of it."""

        def model_versions(self, name: str) -> tuple[Model, ...]:
            return ()

    google = Forgetful()
    carry_out(google, settings(), lambda found: upload.plan(settings(), found), Told().progress)
    assert [type(one) for one in google.sent] == [UploadModelRequest]


def test_an_endpoint_that_is_busy_is_waited_for(slept: list[float]) -> None:
    class Busy(exceptions.FailedPrecondition):
        """What Google says while an operation runs on an endpoint."""

        def __init__(self, message: str) -> None:
            super().__init__(f"There are other operations running on the Endpoint: {message}")  # type: ignore[no-untyped-call]

    google = Google(Found((version(1),), endpoint()))
    google.troubles = [Trouble(Busy, heard=False)]
    carry_out(google, settings(), deploy_one, Told().progress)
    assert [type(one) for one in google.sent] == [DeployModelRequest, DeployModelRequest]
