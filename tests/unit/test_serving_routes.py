"""Routes that Vertex AI asks: which lead to a served model, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.archives import Archive
from serving.errors import SettingsError
from serving.routes import check_health_route, check_predict_route

MINILM = Archive("minilm", "1.0", Path("minilm.mar"), 0, None)
E5 = Archive("e5", "2.0", Path("e5.mar"), 0, None)


@pytest.mark.parametrize(
    "route",
    [
        "",
        "/invocations",
        "/predictions/minilm",
        "/predictions/minilm/",
        "/predictions/minilm/1.0",
        "/predictions/minilm/1.0/v1/embeddings",
    ],
)
def test_routes_of_a_served_model(route: str) -> None:
    check_predict_route({"AIP_PREDICT_ROUTE": route}, [MINILM])


@pytest.mark.parametrize(
    "route",
    [
        "/v1/endpoints/1/deployedModels/2:predict",
        "/predictions/other",
        "/predictions/minilm/2.0",
        "/predictions/minilm2",
        "/predictions/minilm/1.01",
        "predictions/minilm",
    ],
)
def test_routes_that_lead_nowhere(route: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_predict_route({"AIP_PREDICT_ROUTE": route}, [MINILM])
    assert str(caught.value) == (
        f"AIP_PREDICT_ROUTE={route!r} leads nowhere: upload the model with "
        "serving_container_predict_route=/predictions/minilm or /invocations"
    )


def test_with_two_models_none_is_meant_by_invocations() -> None:
    check_predict_route({"AIP_PREDICT_ROUTE": "/predictions/e5/2.0"}, [MINILM, E5])
    with pytest.raises(SettingsError, match=r"predict_route=/predictions/minilm or /predictions/e5$"):
        check_predict_route({"AIP_PREDICT_ROUTE": "/invocations"}, [MINILM, E5])


def test_no_routes_are_no_matter() -> None:
    check_predict_route({}, [MINILM])
    for environment in ({}, {"AIP_HEALTH_ROUTE": ""}, {"AIP_HEALTH_ROUTE": "/ping"}, {"AIP_HEALTH_ROUTE": "/ping/"}):
        check_health_route(environment)


@pytest.mark.parametrize("route", ["/healthz", "ping", "/v1/endpoints/1/deployedModels/2"])
def test_health_routes_that_lead_nowhere(route: str) -> None:
    with pytest.raises(
        SettingsError, match="leads nowhere: upload the model with serving_container_health_route=/ping"
    ):
        check_health_route({"AIP_HEALTH_ROUTE": route})
