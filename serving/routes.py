"""The routes that Vertex AI will ask: TorchServe's own are fixed, so others are refused before a model is deployed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serving.archives import Archive
from serving.errors import SettingsError

PREDICT_VARIABLE = "AIP_PREDICT_ROUTE"
HEALTH_VARIABLE = "AIP_HEALTH_ROUTE"
HEALTH_ROUTE = "/ping"
SINGLE_MODEL_ROUTE = "/invocations"


def check_predict_route(environment: Mapping[str, str], archives: Sequence[Archive]) -> None:
    """Makes sure that this server answers the route of predictions in the environment.

    Without routes of its own a Vertex model gets `/v1/endpoints/…`, which TorchServe answers with 404: the deployment
    would fail half an hour later and not say why.

    Args:
        environment: Usually `os.environ`; without AIP_PREDICT_ROUTE there is nothing to check.
        archives: What is served.

    Raises:
        SettingsError: The route leads nowhere.
    """
    predict = environment.get(PREDICT_VARIABLE, "").rstrip("/")
    allowed = [f"/predictions/{archive.name}" for archive in archives]
    if len(archives) == 1:
        allowed.append(SINGLE_MODEL_ROUTE)
    versions = tuple(f"/predictions/{archive.name}/{archive.version}/" for archive in archives)
    if predict and predict not in allowed and not f"{predict}/".startswith(versions):
        raise SettingsError(
            f"{PREDICT_VARIABLE}={predict[:200]!r} leads nowhere: upload the model with "
            f"serving_container_predict_route={' or '.join(allowed)}"
        )


def check_health_route(environment: Mapping[str, str]) -> None:
    """Makes sure that this server answers the health route in the environment.

    Args:
        environment: Usually `os.environ`; without AIP_HEALTH_ROUTE there is nothing to check.

    Raises:
        SettingsError: The route leads nowhere.
    """
    health = environment.get(HEALTH_VARIABLE, "").rstrip("/")
    if health and health != HEALTH_ROUTE:
        raise SettingsError(
            f"{HEALTH_VARIABLE}={health[:200]!r} leads nowhere: upload the model with "
            f"serving_container_health_route={HEALTH_ROUTE}"
        )
