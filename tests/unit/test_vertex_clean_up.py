"""The end: in the order that Google allows, and never without traffic's heirs."""

from __future__ import annotations

import pytest

from tests.unit.vertex_samples import ENDPOINT, MODEL, deployed, endpoint, settings, two_versions, version
from vertex import clean_up
from vertex.found import Found
from vertex.gcloud import body

THREE = Found(
    (version(1), version(2), version(3)),
    endpoint(deployed("11", 1), deployed("22", 2), deployed("33", 3), split={"11": 20, "22": 30, "33": 50}),
)


def undeployed(one: str, split: dict[str, int] | None = None) -> dict[str, object]:
    """Return the request that takes one off the endpoint."""
    request: dict[str, object] = {"endpoint": ENDPOINT, "deployedModelId": one}
    return request if split is None else {**request, "trafficSplit": split}


@pytest.mark.parametrize(
    ("found", "ids", "requests"),
    [
        (two_versions({"22": 100}), [], []),
        (two_versions({"22": 100}), ["11"], [undeployed("11")]),
        (two_versions({"22": 100}), ["22"], [undeployed("22", {"11": 100})]),
        (two_versions({"11": 40, "22": 60}), ["11"], [undeployed("11", {"22": 100})]),
        (two_versions({"11": 40, "22": 60}), ["11", "22"], [undeployed("11", {"22": 100}), undeployed("22")]),
        (two_versions({}), ["22", "11"], [undeployed("22"), undeployed("11")]),
        (THREE, ["33"], [undeployed("33", {"11": 40, "22": 60})]),
        (THREE, ["22", "11"], [undeployed("22", {"11": 29, "33": 71}), undeployed("11", {"33": 100})]),
    ],
)
def test_traffic_goes_to_those_that_stay(found: Found, ids: list[str], requests: list[dict[str, object]]) -> None:
    assert [body(step) for step in clean_up.undeploying(settings(), found, ids)] == requests


def test_the_last_one_is_undeployed_with_its_traffic() -> None:
    found = Found((version(1),), endpoint(deployed("11", 1), split={"11": 100}))
    (request,) = clean_up.undeploying(settings(), found, ["11"])
    assert (request.deployed_model_id, dict(request.traffic_split)) == ("11", {})


def test_all_goes_those_without_traffic_first() -> None:
    assert [body(step) for step in clean_up.plan(settings(), two_versions({"11": 100}))] == [
        undeployed("22"),
        undeployed("11"),
        {"name": ENDPOINT},
        {"name": MODEL},
    ]


def test_traffic_is_passed_on_until_nothing_is_left() -> None:
    assert [body(step) for step in clean_up.plan(settings(), THREE)] == [
        undeployed("11", {"22": 38, "33": 62}),
        undeployed("22", {"33": 100}),
        undeployed("33"),
        {"name": ENDPOINT},
        {"name": MODEL},
    ]


@pytest.mark.parametrize(
    ("found", "requests"),
    [
        (Found(), []),
        (Found((version(1),)), [{"name": MODEL}]),
        (Found((), endpoint()), [{"name": ENDPOINT}]),
    ],
)
def test_what_is_not_there_is_not_deleted(found: Found, requests: list[dict[str, object]]) -> None:
    assert [body(step) for step in clean_up.plan(settings(), found)] == requests


def test_what_will_go_is_told_in_words() -> None:
    found = two_versions({"22": 100})
    assert list(clean_up.told(settings(), found)) == [
        "minilm-1 on n1-standard-4, with 0 % of the requests, leaves the endpoint",
        "minilm-2 on n1-standard-4, with 100 % of the requests, leaves the endpoint",
        "the endpoint search is deleted: its callers get 404",
        "the model minilm is deleted, with its versions 1, 2",
    ]
    assert list(clean_up.told(settings(), Found())) == []
