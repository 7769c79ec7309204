"""What there is: the same for people and for scripts."""

from __future__ import annotations

import pytest
from google.cloud import aiplatform_v1

from tests.unit.vertex_google import Google
from tests.unit.vertex_samples import ENDPOINT, IMAGE, MODEL, deployed, endpoint, settings, two_versions, version
from vertex import status
from vertex.found import Found

HOST = "europe-west1-aiplatform.googleapis.com"
EMPTY = ("", "", "", "", "")


def of(found: Found) -> status.Status:
    """Return the status where nothing is going on."""
    return status.of(Google(found), settings(), found)


def health(least: int, available: int, message: str = "") -> str:
    """Return what is told of a deployment of so many replicas."""
    one = deployed("11", 1, replicas=least)
    one.status = aiplatform_v1.DeployedModel.Status(available_replica_count=available, message=message)
    return of(Found((version(1),), endpoint(one)))["deployed"][0]["health"]


def test_nothing() -> None:
    told = of(Found())
    assert (told["model"], told["endpoint"], told["host"]) == (MODEL, None, None)
    assert (told["versions"], told["deployed"], told["others"], told["running"]) == ([], [], [], [])
    assert list(status.rows(told)) == []
    assert list(status.notes(told)) == ["the model is not uploaded: marvec vertex upload", "endpoint: none"]


def test_two_versions_of_which_one_has_traffic() -> None:
    told = of(two_versions({"22": 100}))
    assert told["versions"] == [
        {"version": "1", "aliases": [], "image": IMAGE, "uploaded": "2026-01-01 00:01"},
        {"version": "2", "aliases": ["default"], "image": IMAGE, "uploaded": "2026-01-01 00:02"},
    ]
    assert (told["endpoint"], told["host"]) == (ENDPOINT, HOST)
    assert told["deployed"][1] == {
        "version": "2",
        "id": "22",
        "machine": "n1-standard-4",
        "min_replicas": 1,
        "max_replicas": 1,
        "available_replicas": 0,
        "traffic": 100,
        "health": "starting",
    }
    assert list(status.rows(told)) == [
        ("2", "default", "2026-01-01 00:02", "22", "n1-standard-4", "0 of 1", "100 %", "starting"),
        ("1", "", "2026-01-01 00:01", "11", "n1-standard-4", "0 of 1", "0 %", "starting"),
    ]
    assert list(status.notes(told)) == [
        f"endpoint: https://{HOST}/v1/{ENDPOINT}",
        "without traffic, and not without cost: version 1; marvec vertex undeploy ends that",
    ]


def test_the_columns_of_a_version_that_is_not_deployed_and_of_one_that_is_twice() -> None:
    there = endpoint(deployed("11", 1), deployed("12", 1, at=9), split={"12": 100})
    told = of(Found((version(1, "default", "canary"), version(2)), there))
    rows = list(status.rows(told))
    assert rows == [
        ("2", "", "2026-01-01 00:02", *EMPTY),
        ("1", "canary, default", "2026-01-01 00:01", "11", "n1-standard-4", "0 of 1", "0 %", "starting"),
        ("1", "canary, default", "2026-01-01 00:01", "12", "n1-standard-4", "0 of 1", "100 %", "starting"),
    ]
    assert {len(row) for row in rows} == {len(status.COLUMNS)}


def test_machines_and_replicas() -> None:
    one = deployed("11", 1, machine="g2-standard-24", replicas=2)
    resources = one.dedicated_resources
    resources.machine_spec.accelerator_type, resources.machine_spec.accelerator_count = "NVIDIA_L4", 2
    resources.max_replica_count = 5
    resources.spot = True
    one.status.available_replica_count = 3
    (row,) = status.rows(of(Found((version(1),), endpoint(one, split={"11": 100}))))
    assert row[3:] == ("11", "g2-standard-24 + 2 x NVIDIA_L4 spot", "3 of 2 to 5", "100 %", "ready")


@pytest.mark.parametrize(
    ("least", "available", "message", "told"),
    [
        (2, 0, "", "starting"),
        (2, 1, "", "some start"),
        (2, 2, "", "ready"),
        (2, 4, "", "ready"),
        (2, 1, "no more n1-standard-4", "no more n1-standard-4"),
    ],
)
def test_health(least: int, available: int, message: str, told: str) -> None:
    assert health(least, available, message) == told


def test_a_dedicated_endpoint_has_its_own_host() -> None:
    told = of(Found((version(1),), endpoint(dedicated=True)))
    assert list(status.notes(told)) == [f"endpoint: https://1.europe-west1-2.prediction.vertexai.goog/v1/{ENDPOINT}"]


def test_what_is_going_on() -> None:
    google = Google(two_versions({"11": 50, "22": 50}))
    google.begin(aiplatform_v1.UploadModelRequest())
    google.begin(aiplatform_v1.DeployModelRequest())
    told = status.of(google, settings(), two_versions({"11": 50, "22": 50}))
    assert told["running"] == [
        f"upload (begun earlier) as {MODEL}/operations/1",
        f"deployment (begun earlier) as {ENDPOINT}/operations/2",
    ]
    assert list(status.notes(told))[1:] == told["running"]


def test_another_model_on_the_same_endpoint_is_told_and_not_taken_for_a_version() -> None:
    other = deployed("99", 1, at=1)
    other.model, other.display_name = f"{MODEL}-other@1", "other-1"
    found = Found((version(1),), endpoint(other, deployed("11", 1, at=2), split={"99": 30, "11": 70}))
    told = of(found)
    assert [one["id"] for one in told["deployed"]] == ["11"]
    assert told["others"] == ["other-1: 30 %"]
    assert "also on the endpoint, of another model: other-1: 30 %" in status.notes(told)
