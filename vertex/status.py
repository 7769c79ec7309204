"""What there is, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from vertex.carry_out import begun
from vertex.found import others
from vertex.titles import operation_title

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import DeployedModel, Model

    from vertex.api import Api
    from vertex.found import Found
    from vertex.settings import VertexSettings

COLUMNS = ("version", "aliases", "uploaded", "deployed as", "machine", "replicas", "traffic", "health")


class Version(TypedDict):
    """A version of the model."""

    version: str
    aliases: list[str]
    image: str
    uploaded: str


class Deployed(TypedDict):
    """A version on the endpoint."""

    version: str
    id: str
    machine: str
    min_replicas: int
    max_replicas: int
    available_replicas: int
    traffic: int
    health: str


class Status(TypedDict):
    """All of it."""

    model: str
    endpoint: str | None
    host: str | None
    versions: list[Version]
    deployed: list[Deployed]
    others: list[str]
    running: list[str]


def of(api: Api, settings: VertexSettings, found: Found) -> Status:
    """Return what there is.

    Args:
        api: Google's API: asked what is going on.
        settings: Which model and endpoint.
        found: What was read of them.
    """
    endpoint, strange = found.endpoint, others(found, settings)
    shared = f"{settings.region}-aiplatform.googleapis.com"
    return {
        "model": settings.model_name,
        "endpoint": None if endpoint is None else settings.endpoint_name,
        "host": None if endpoint is None else endpoint.dedicated_endpoint_dns or shared,
        "versions": [of_version(version) for version in found.versions],
        "deployed": [_deployed(one, found.split[one.id]) for one in found.deployed if one not in strange],
        "others": [f"{one.display_name or one.model}: {found.split[one.id]} %" for one in strange],
        "running": [f"{operation_title(one)} as {one.name}" for one in begun(api, settings)],
    }


def of_version(version: Model) -> Version:
    """Return what is told of one version.

    Args:
        version: As Google tells it.
    """
    return {
        "version": version.version_id,
        "aliases": sorted(version.version_aliases),
        "image": version.container_spec.image_uri,
        "uploaded": version.version_create_time.strftime("%Y-%m-%d %H:%M"),
    }


def rows(status: Status) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table under COLUMNS, newest version first.

    Args:
        status: What there is.
    """
    for version in reversed(status["versions"]):
        first = (version["version"], ", ".join(version["aliases"]), version["uploaded"])
        places = [one for one in status["deployed"] if one["version"] == version["version"]]
        for one in places:
            least, most = one["min_replicas"], one["max_replicas"]
            replicas = f"{one['available_replicas']} of {least}" + (f" to {most}" if most > least else "")
            yield (*first, one["id"], one["machine"], replicas, f"{one['traffic']} %", one["health"])
        if not places:
            yield (*first, "", "", "", "", "")


def notes(status: Status) -> Iterator[str]:
    """Yield what stands below the table.

    Args:
        status: What there is.
    """
    if not status["versions"]:
        yield "the model is not uploaded: marvec vertex upload"
    yield (
        "endpoint: none"
        if status["endpoint"] is None
        else f"endpoint: https://{status['host']}/v1/{status['endpoint']}"
    )
    yield from (f"also on the endpoint, of another model: {one}" for one in status["others"])
    yield from status["running"]
    idle = [one["version"] for one in status["deployed"] if one["traffic"] == 0]
    if idle:
        yield f"without traffic, and not without cost: version {', '.join(idle)}; marvec vertex undeploy ends that"


def _deployed(one: DeployedModel, share: int) -> Deployed:
    resources, available = one.dedicated_resources, one.status.available_replica_count
    machine = resources.machine_spec
    accelerators = (
        f" + {machine.accelerator_count} x {machine.accelerator_type.name}" if machine.accelerator_count else ""
    )
    health = "ready" if available >= resources.min_replica_count else "starting" if available == 0 else "some start"
    return {
        "version": one.model_version_id,
        "id": one.id,
        "machine": f"{machine.machine_type}{accelerators}{' spot' if resources.spot else ''}",
        "min_replicas": resources.min_replica_count,
        "max_replicas": resources.max_replica_count,
        "available_replicas": available,
        "traffic": share,
        "health": one.status.message or health,
    }
