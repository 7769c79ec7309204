"""The deployment: what is sent for what there is, so that the endpoint serves a version as the settings say."""

from __future__ import annotations

import pytest

from tests.unit.vertex_samples import (
    ENDPOINT,
    KEY,
    LOCATION,
    MADE_HERE,
    MODEL,
    deployed,
    endpoint,
    settings,
    two_versions,
    version,
)
from vertex import deploy
from vertex.errors import VertexError
from vertex.found import Found
from vertex.gcloud import body

ONE = Found((version(1, "default"),), endpoint(deployed("11", 1), split={"11": 100}))
METRIC = "aiplatform.googleapis.com/prediction/online/"


def bodies(found: Found, number: int, share: int | None = None, **changes: object) -> list[dict[str, object]]:
    """Return what is sent to deploy a version."""
    return [body(step) for step in deploy.plan(settings(**changes), found, version(number), share)]


def deployment(number: int, split: dict[str, int]) -> dict[str, object]:
    """Return the least that deploys a version."""
    return {
        "endpoint": ENDPOINT,
        "deployedModel": {
            "model": f"{MODEL}@{number}",
            "displayName": f"minilm-{number}",
            "dedicatedResources": {
                "machineSpec": {"machineType": "n1-standard-4"},
                "minReplicaCount": 1,
                "maxReplicaCount": 1,
            },
        },
        "trafficSplit": split,
    }


def resources(**wanted: object) -> dict[str, object]:
    """Return the machines of a first deployment, as they are sent."""
    _, request = bodies(Found((version(1),)), 1, deployment=wanted)
    model = request["deployedModel"]
    assert isinstance(model, dict)
    content = model["dedicatedResources"]
    assert isinstance(content, dict)
    return content


def test_the_first_deployment_makes_the_endpoint() -> None:
    assert bodies(Found((version(1),)), 1, share=10) == [
        {
            "parent": LOCATION,
            "endpointId": "search",
            "endpoint": {"displayName": "search", "labels": MADE_HERE},
        },
        deployment(1, {"0": 100}),
    ]


def test_all_that_an_endpoint_can_be() -> None:
    wanted = {"dedicated": True, "labels": {"team": "search"}, "log_table": "bq://p.logs.requests", "log_share": 0.1}
    create, _ = bodies(Found((version(1),)), 1, endpoint=wanted, kms_key=KEY)
    assert create["endpoint"] == {
        "displayName": "search",
        "labels": {"team": "search", "made-with": "marvec"},
        "dedicatedEndpointEnabled": True,
        "encryptionSpec": {"kmsKeyName": KEY},
        "predictRequestResponseLoggingConfig": {
            "enabled": True,
            "samplingRate": 0.1,
            "bigqueryDestination": {"outputUri": "bq://p.logs.requests"},
        },
    }


def test_all_that_a_deployment_can_be() -> None:
    wanted = {
        "service_account": "serving@my-project.iam.gserviceaccount.com",
        "access_logging": True,
        "container_logging": False,
        "spot": True,
    }
    _, request = bodies(Found((version(1),)), 1, deployment=wanted)
    model = request["deployedModel"]
    assert isinstance(model, dict)
    assert model.pop("dedicatedResources")["spot"] is True
    assert model == {
        "model": f"{MODEL}@1",
        "displayName": "minilm-1",
        "serviceAccount": "serving@my-project.iam.gserviceaccount.com",
        "enableAccessLogging": True,
        "disableContainerLogging": True,
    }


@pytest.mark.parametrize(
    ("wanted", "machine"),
    [
        (
            {"machine": "n1-standard-8", "accelerator": "NVIDIA_TESLA_T4", "accelerator_count": 2},
            {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2},
        ),
        (
            {"machine": "g2-standard-24"},
            {"machineType": "g2-standard-24", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2},
        ),
    ],
)
def test_accelerators(wanted: dict[str, object], machine: dict[str, object]) -> None:
    assert resources(**wanted)["machineSpec"] == machine


@pytest.mark.parametrize(
    ("wanted", "metric", "target"),
    [
        ({}, "cpu/utilization", 60),
        ({"target_per_cent": 45}, "cpu/utilization", 45),
        ({"machine": "n1-standard-16"}, "cpu/utilization", 75),
        ({"machine": "g2-standard-4"}, "accelerator/duty_cycle", 60),
    ],
)
def test_more_replicas_come_when_those_that_run_are_full(wanted: dict[str, object], metric: str, target: int) -> None:
    content = resources(min_replicas=2, max_replicas=5, **wanted)
    assert (content["minReplicaCount"], content["maxReplicaCount"]) == (2, 5)
    assert content["autoscalingMetricSpecs"] == [{"metricName": METRIC + metric, "target": target}]


@pytest.mark.parametrize("wanted", [{"min_replicas": 3}, {"min_replicas": 3, "max_replicas": 3, "target_per_cent": 50}])
def test_a_fixed_number_of_replicas_has_no_target(wanted: dict[str, object]) -> None:
    content = resources(**wanted)
    assert (content["minReplicaCount"], content["maxReplicaCount"]) == (3, 3)
    assert "autoscalingMetricSpecs" not in content


@pytest.mark.parametrize(
    ("share", "changes", "split"),
    [
        (None, {}, {"0": 100}),
        (None, {"deployment": {"traffic_per_cent": 25}}, {"11": 75, "0": 25}),
        (10, {"deployment": {"traffic_per_cent": 25}}, {"11": 90, "0": 10}),
        (0, {}, {"11": 100}),
    ],
)
def test_a_new_version_beside_another(share: int | None, changes: dict[str, object], split: dict[str, int]) -> None:
    assert bodies(ONE, 2, share, **changes) == [deployment(2, split)]


def test_an_empty_endpoint_is_used() -> None:
    assert bodies(Found((version(1),), endpoint()), 1, share=0) == [deployment(1, {"0": 100})]


@pytest.mark.parametrize("share", [None, 100, 10])
def test_what_is_deployed_is_not_deployed_again(share: int | None) -> None:
    """The only one has all traffic, whatever share is named."""
    assert bodies(ONE, 1, share) == []


def test_what_is_deployed_keeps_its_traffic_unless_a_share_is_named() -> None:
    found = two_versions({"11": 100})
    assert bodies(found, 2) == []
    assert bodies(found, 2, 0) == []
    assert bodies(found, 2, 30) == [
        {"endpoint": {"name": ENDPOINT, "trafficSplit": {"11": 70, "22": 30}}, "updateMask": "trafficSplit"}
    ]


def test_other_replicas_change_what_runs() -> None:
    (request,) = bodies(ONE, 1, deployment={"min_replicas": 2, "max_replicas": 4})
    assert request == {
        "endpoint": ENDPOINT,
        "deployedModel": {
            "id": "11",
            "dedicatedResources": {
                "machineSpec": {"machineType": "n1-standard-4"},
                "minReplicaCount": 2,
                "maxReplicaCount": 4,
                "autoscalingMetricSpecs": [{"metricName": f"{METRIC}cpu/utilization", "target": 60}],
            },
        },
        "updateMask": "dedicatedResources.minReplicaCount,dedicatedResources.maxReplicaCount,"
        "dedicatedResources.autoscalingMetricSpecs",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"machine": "n1-standard-8"},
        {"accelerator": "NVIDIA_TESLA_T4"},
        {"spot": True},
        {"service_account": "serving@my-project.iam.gserviceaccount.com"},
        {"access_logging": True},
    ],
)
def test_what_cannot_be_changed_is_deployed_beside_it(changes: dict[str, object]) -> None:
    (request,) = deploy.plan(settings(deployment=changes), ONE, version(1), None)
    assert body(request)["trafficSplit"] == {"0": 100}
    assert request.deployed_model.model == f"{MODEL}@1"


def test_logging_is_changed_in_place() -> None:
    (request,) = bodies(ONE, 1, deployment={"container_logging": False})
    deployed_model = request["deployedModel"]
    assert isinstance(deployed_model, dict)
    assert (request["updateMask"], deployed_model["disableContainerLogging"]) == ("disableContainerLogging", True)


def test_what_google_adds_is_no_difference() -> None:
    one = deployed("11", 1)
    one.service_account = "of-google@somewhere.iam.gserviceaccount.com"
    one.dedicated_resources.autoscaling_metric_specs = [{"metric_name": f"{METRIC}cpu/utilization", "target": 60}]
    assert bodies(Found((version(1),), endpoint(one, split={"11": 100})), 1) == []


def test_a_model_is_known_without_its_version_in_its_name() -> None:
    one = deployed("11", 1)
    one.model = MODEL
    assert bodies(Found((version(1),), endpoint(one, split={"11": 100})), 1) == []


@pytest.mark.parametrize(("is_dedicated", "told"), [(False, "true"), (True, "false")])
def test_an_endpoint_never_becomes_one_of_the_other_kind(is_dedicated: bool, told: str) -> None:
    found = Found((version(1),), endpoint(dedicated=is_dedicated))
    with pytest.raises(VertexError) as caught:
        bodies(found, 1, endpoint={"dedicated": not is_dedicated})
    assert str(caught.value) == (
        f"endpoint.dedicated is {told}, and the endpoint that exists is of the other kind, which Google never changes: "
        "choose another endpoint.name"
    )


def test_a_request_for_traffic() -> None:
    assert body(deploy.traffic_request(settings(), {"11": 20, "22": 80})) == {
        "endpoint": {"name": ENDPOINT, "trafficSplit": {"11": 20, "22": 80}},
        "updateMask": "trafficSplit",
    }
