"""A model's life by `marvec vertex`, against a stand-in of Vertex AI: flows and requests, not Google's consent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cloud.client import Client
from tests.cloud.commands import Commands
from tests.cloud.conftest import CloudEnvironment
from tests.cloud.images import OTHER_STUB, STUB
from tests.cloud.standin.stand_in import StandIn

NEXT = "\nnext: marvec vertex deploy\n"


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_from_an_image_to_an_answer_and_back(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path, transport: str
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB, transport=transport)
    assert commands.run("upload").stdout == f"uploaded: stub, version 1\n{NEXT}"
    deployed = commands.run("deploy")
    assert deployed.stdout.startswith(
        "version 1 on n1-standard-4: 100 % of the requests\nendpoint: https://us-central1"
    )
    assert "deployment of stub@1: done after " in deployed.stderr
    answers = [json.loads(line) for line in commands.run("predict", "hello", "日本").stdout.splitlines()]
    assert answers == [
        {"version": "one", "instance": "hello", "parameters": None},
        {"version": "one", "instance": "日本", "parameters": None},
    ]
    ended = commands.run("clean-up", "--yes")
    assert ended.stdout == "nothing is left of stub in demo-project\n"
    assert stub_standin.calls.changed() == [
        *("UploadModel", "CreateEndpoint", "DeployModel"),
        *("UndeployModel", "DeleteEndpoint", "DeleteModel"),
    ]
    assert {call.wire for call in stub_standin.calls.changes()} == {transport}
    assert {call.wire for call in stub_standin.calls.of("Predict")} == {"rest"}


def test_a_command_that_is_repeated_changes_nothing(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    for command in ("upload", "deploy"):
        commands.run(command)
    stub_standin.calls.clear()
    again = commands.run("upload")
    assert again.stdout == f"as before: stub, version 1\n{NEXT}"
    assert again.stderr == "the newest version has these settings; --new-version uploads another\n"
    commands.run("deploy")
    commands.run("status")
    assert stub_standin.calls.changed() == []
    assert commands.json("upload", "--new-version")["version"] == "2"
    commands.run("clean-up", "--yes")
    stub_standin.calls.clear()
    assert commands.run("clean-up").stdout == "nothing is left of stub in demo-project\n"
    assert stub_standin.calls.changed() == []


def test_a_canary_and_the_way_back(stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    commands.run("upload")
    commands.run("deploy")
    commands.change(model={"image": OTHER_STUB, "version_aliases": ["canary"]})
    assert commands.run("deploy").stderr.startswith("note: version 1 was uploaded with other settings of the model")
    assert commands.json("upload")["aliases"] == ["canary", "default"]
    assert commands.traffic("deploy", "--traffic", "10") == {"1": 90, "2": 10}
    with Client(stub_standin) as client:
        answers = [client.predict(["x"], endpoint="stub").predictions[0]["version"] for _ in range(50)]
    assert answers.count("two") == 5

    assert commands.traffic("rollback") == {"1": 100, "2": 0}
    assert commands.traffic("deploy") == {"1": 100, "2": 0}
    assert commands.run("rollback").stderr == (
        "the newest version has no traffic, so there is nothing to take back; see traffic\n"
    )
    assert commands.traffic("traffic", "1=30", "canary=70") == {"1": 30, "2": 70}
    assert commands.traffic("deploy", "--traffic", "100") == {"1": 0, "2": 100}
    assert "without traffic, and not without cost: version 1" in commands.run("status").stdout
    assert commands.traffic("undeploy") == {"2": 100}
    assert commands.traffic("deploy", "--version", "1", "--traffic", "40") == {"2": 60, "1": 40}
    assert commands.traffic("undeploy", "2") == {"1": 100}


def test_replicas_are_changed_in_place_and_a_machine_is_not(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    commands.run("upload")
    commands.run("deploy")
    stub_standin.calls.clear()
    commands.change(deployment={"min_replicas": 2, "max_replicas": 6})
    commands.run("deploy")
    (change,) = stub_standin.calls.changes()
    assert (change.method, change.body["deployedModel"]["dedicatedResources"]) == (
        "MutateDeployedModel",
        {
            "machineSpec": {"machineType": "n1-standard-4"},
            "minReplicaCount": 2,
            "maxReplicaCount": 6,
            "autoscalingMetricSpecs": [
                {"metricName": "aiplatform.googleapis.com/prediction/online/cpu/utilization", "target": 60}
            ],
        },
    )
    commands.change(deployment={"machine": "n1-standard-8", "accelerator": "NVIDIA_TESLA_T4"})
    rows = commands.json("deploy")["deployed"]
    assert isinstance(rows, list)
    assert [(one["machine"], one["traffic"]) for one in rows] == [
        ("n1-standard-4", 0),
        ("n1-standard-8 + 1 x NVIDIA_TESLA_T4", 100),
    ]
    ambiguous = commands.run("undeploy", "1", expect=1).stderr
    assert ambiguous.startswith("error: version 1 is deployed more than once: name one of ")


def test_clean_up_asks_and_takes_no_for_no(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    commands.run("upload")
    stub_standin.calls.clear()
    refused = commands.run("clean-up", given="n\n", expect=1)
    assert refused.stderr == (
        "the model stub is deleted, with its versions 1\nDo all of this? [y/N]: nothing was changed\n"
    )
    assert stub_standin.calls.changed() == []
    commands.run("clean-up", given="y\n")
    assert stub_standin.calls.changed() == ["DeleteModel"]


def test_clean_up_goes_on_after_a_failure(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    from tests.cloud.standin.errors import Code

    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    commands.run("upload")
    commands.run("deploy")
    stub_standin.trouble.fail("DeleteEndpoint", Code.PERMISSION_DENIED)
    failed = commands.run("clean-up", "--yes", expect=3)
    assert "deletion of the endpoint stub: not permitted in demo-project" in failed.stderr
    assert failed.stderr.endswith("error: 1 of 3 could not be done, for the reasons above: run it again\n")
    assert commands.json("status")["versions"] == []
    assert commands.run("clean-up", "--yes").stdout == "nothing is left of stub in demo-project\n"


def test_what_others_made_is_left_alone(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    with Client(stub_standin) as client:
        client.upload("stub")
    for command in (("upload",), ("deploy",), ("clean-up", "--yes")):
        stub_standin.calls.clear()
        assert commands.run(*command, expect=1).stderr == (
            "error: the model stub of demo-project was not uploaded by marvec, so it is left alone: "
            "choose another model.name\n"
        )
        assert stub_standin.calls.changed() == []


def test_an_endpoint_of_others_can_be_handed_over(
    stub_standin: StandIn, cloud_environment: CloudEnvironment, tmp_path: Path
) -> None:
    commands = Commands(stub_standin, cloud_environment, tmp_path, STUB)
    with Client(stub_standin) as client:
        client.create("stub")
    commands.run("upload", expect=1)
    refused = commands.run("deploy", expect=1).stderr
    assert refused == (
        "error: the endpoint stub was not made by marvec, so it is left alone: choose another endpoint.name, or hand "
        "it over with: gcloud ai endpoints update stub --project=demo-project --region=us-central1 "
        "--update-labels=made-with=marvec\n"
    )
