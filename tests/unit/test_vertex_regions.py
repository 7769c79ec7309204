"""Regions: those of Google's SDK, and a hint for a slip."""

from __future__ import annotations

import pytest
from google.cloud.aiplatform.constants import base

from vertex import regions
from vertex.errors import VertexError


def test_they_are_those_of_the_sdk() -> None:
    assert base.SUPPORTED_REGIONS - {"global"} == regions.REGIONS


def test_a_slip_is_told_what_was_meant() -> None:
    with pytest.raises(VertexError) as caught:
        regions.check("europe-west11")
    assert str(caught.value) == (
        "'europe-west11' is no region of Vertex AI; such as europe-west1, europe-west12, europe-west9"
    )


def test_what_is_far_from_all_is_shown_all() -> None:
    with pytest.raises(VertexError, match=r"^'moon' is no region of Vertex AI; such as africa-south1, asia-east1, "):
        regions.check("moon")
