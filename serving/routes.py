"""The routes that Vertex AI will ask: TorchServe's own are fixed, so others are refused before a model is deployed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serving.archives import Archive
from serving.errors import SettingsError

PREDICT_VARIABLE = "AIP_PREDICT_ROUTE"
HEALTH_VARIABLE = "AIP_HEALTH_ROUTE"
HEALTH_ROUTE = "/ping"
SINGLE_MODEL_ROUTE = "/invocations"


def check_routes(environment: Mapping[str, str], archives: Sequence[Archive]) -> None:
    """Makes sure that this server answers the routes in the environment.

    Without routes of its own a Vertex model gets `/v1/endpoints/…`, which TorchServe answers with 404: the deployment
    would fail half an hour later and not say why.

    Args:
        environment: Usually `os.environ`: AIP_PREDICT_ROUTE and AIP_HEALTH_ROUTE, both optional.
        archives: What is served.

    Raises:
        SettingsError: A route leads nowhere.
    """
    predict = environment.get(PREDICT_VARIABLE, "")
    allowed = [f"/predictions/{archive.name}" for archive in archives]
    if len(archives) == 1:
        allowed.append(SINGLE_MODEL_ROUTE)
    versions = tuple(f"/predictions/{archive.name}/{archive.version}/" for archive in archives)
    if predict and predict not in allowed and not f"{predict}/".startswith(versions):
        raise SettingsError(
            f"{PREDICT_VARIABLE}={predict[:200]!r} leads nowhere: upload the model with "
            f"serving_container_predict_route={' or '.join(allowed)}"
        )
    health = environment.get(HEALTH_VARIABLE, "")
    if health and health != HEALTH_ROUTE:
        raise SettingsError(
            f"{HEALTH_VARIABLE}={health[:200]!r} leads nowhere: upload the model with "
            f"serving_container_health_route={HEALTH_ROUTE}"
        )
