"""What exists: versions and what is deployed, in order, found by number, alias or id; and what is not ours."""

from __future__ import annotations

import pytest

from tests.unit.vertex_google import Google
from tests.unit.vertex_samples import deployed, endpoint, settings, two_versions, version
from vertex.errors import AbsentError, VertexError
from vertex.found import Found, look, read


def test_nothing_exists() -> None:
    assert read(Google(), settings()) == Found((), None)
    assert Found().deployed == ()
    assert Found().split == {}


def test_what_exists_is_read() -> None:
    there = two_versions({"22": 100})
    assert read(Google(there), settings()) == there


def test_what_other_names_have_is_not_read() -> None:
    other = settings(model={"name": "e5"}, endpoint={"name": "questions"})
    assert read(Google(two_versions({"22": 100})), other) == Found((), None)


def test_deployed_models_are_in_the_order_of_their_creation() -> None:
    there = endpoint(
        deployed("7", 1, at=30), deployed("9", 2, at=10), deployed("8", 3, at=20), split={"8": 60, "7": 40}
    )
    found = Found((), there)
    assert [one.id for one in found.deployed] == ["9", "8", "7"]
    assert list(found.split.items()) == [("9", 0), ("8", 60), ("7", 40)]


@pytest.mark.parametrize(
    ("wanted", "number"), [(None, "12"), ("1", "1"), ("12", "12"), ("default", "12"), ("canary", "2"), ("v2", "2")]
)
def test_a_version_by_number_or_alias(wanted: str | None, number: str) -> None:
    found = Found((version(1), version(2, "canary", "v2"), version(12, "default")))
    assert found.version(wanted).version_id == number


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(AbsentError) as caught:
        Found((version(1), version(2, "canary", "v2"))).version("3")
    assert str(caught.value) == "there is no version 3; there are 1, 2 (canary, v2)"


@pytest.mark.parametrize("wanted", [None, "1"])
def test_no_version_at_all(wanted: str | None) -> None:
    with pytest.raises(AbsentError) as caught:
        Found().version(wanted)
    assert str(caught.value) == "the model is not uploaded: marvec vertex upload"


@pytest.mark.parametrize(("wanted", "one"), [("1", "11"), ("2", "22"), ("default", "22"), ("22", "22")])
def test_what_is_deployed_of_a_version(wanted: str, one: str) -> None:
    assert two_versions({"22": 100}).deployed_as(wanted).id == one


def test_a_version_that_is_not_deployed() -> None:
    with pytest.raises(AbsentError) as caught:
        two_versions({"22": 100}).deployed_as("3")
    assert str(caught.value) == "version 3 is not deployed on the endpoint; deployed: 1, 2"
    with pytest.raises(AbsentError) as caught:
        Found((version(1),)).deployed_as("1")
    assert str(caught.value) == "version 1 is not deployed on the endpoint; deployed: none"


def test_a_version_that_is_deployed_twice() -> None:
    there = endpoint(deployed("11", 1), deployed("12", 1, at=2, machine="g2-standard-4"), split={"11": 100})
    found = Found((version(1, "default"),), there)
    for wanted in ("1", "default"):
        with pytest.raises(VertexError) as caught:
            found.deployed_as(wanted)
        assert str(caught.value) == (
            f"version {wanted} is deployed more than once: name one of 11 (n1-standard-4), 12 (g2-standard-4)"
        )
    assert found.deployed_as("12").dedicated_resources.machine_spec.machine_type == "g2-standard-4"


def test_a_model_that_somebody_else_made() -> None:
    with pytest.raises(VertexError) as caught:
        read(Google(Found((version(1, labels={"team": "search"}),))), settings())
    assert str(caught.value) == (
        "the model minilm of my-project was not uploaded by marvec, so it is left alone: choose another model.name"
    )


def test_a_version_that_somebody_else_added_to_ours() -> None:
    there = Found((version(1), version(2, labels={})))
    assert read(Google(there), settings()) == there


@pytest.mark.parametrize("labels", [{}, {"made-with": "terraform"}])
def test_an_endpoint_that_somebody_else_made(labels: dict[str, str]) -> None:
    with pytest.raises(VertexError) as caught:
        read(Google(Found((), endpoint(labels=labels))), settings())
    assert str(caught.value) == (
        "the endpoint search was not made by marvec, so it is left alone: choose another endpoint.name, or hand it "
        "over with: gcloud ai endpoints update search --project=my-project --region=europe-west1 "
        "--update-labels=made-with=marvec"
    )


def test_an_endpoint_that_serves_another_model_too_is_left_alone() -> None:
    other = deployed("99", 1)
    other.model, other.display_name = "projects/p/locations/l/models/e5@1", "e5-1"
    there = Found((version(1),), endpoint(other, deployed("11", 1), split={"99": 30, "11": 70}))
    with pytest.raises(VertexError) as caught:
        read(Google(there), settings())
    assert str(caught.value) == (
        "the endpoint search serves another model too (e5-1), so it is left alone: choose another endpoint.name; an "
        "endpoint is for the versions of one model"
    )
    assert look(Google(there), settings()) == there
