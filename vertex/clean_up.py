"""The end: what is taken off the endpoint, and what is deleted, in the order that Google allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import DeleteEndpointRequest, DeleteModelRequest, UndeployModelRequest

from vertex import traffic
from vertex.found import LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from proto import Message

    from vertex.found import Found
    from vertex.settings import VertexSettings


def undeploying(settings: VertexSettings, found: Found, ids: Iterable[str]) -> list[UndeployModelRequest]:
    """Return what takes deployed models off the endpoint; their traffic goes to those that stay.

    Args:
        settings: Which endpoint.
        found: What there is.
        ids: The deployed models' ids.
    """
    split = found.split
    steps = []
    for leaving in ids:
        request = UndeployModelRequest(endpoint=settings.endpoint_name, deployed_model_id=leaving)
        rest = traffic.without(split, leaving)
        if split[leaving] > 0:
            request.traffic_split = rest
        split = {one: rest.get(one, 0) if split[leaving] > 0 else part for one, part in split.items() if one != leaving}
        steps.append(request)
    return steps


def told(settings: VertexSettings, found: Found) -> Iterator[str]:
    """Yield what `plan` will do away with, a line each.

    Args:
        settings: Which ones.
        found: What there is.
    """
    for one in found.deployed:
        version = f"{one.display_name or one.model} on {one.dedicated_resources.machine_spec.machine_type}"
        yield f"{version}, with {found.split[one.id]} % of the requests, leaves the endpoint"
    if found.endpoint is not None:
        yield f"the endpoint {settings.endpoint.name} is deleted: its callers get 404"
    if found.versions:
        versions = ", ".join(
            version.version_id if version.labels.get(LABEL) else f"{version.version_id} (not of marvec's making)"
            for version in found.versions
        )
        yield f"the model {settings.model.name} is deleted, with its versions {versions}"


def plan(settings: VertexSettings, found: Found) -> list[Message]:
    """Return what deletes the endpoint and the model, in order; nothing when nothing is left.

    Args:
        settings: Which ones.
        found: What there is.
    """
    without_traffic_first = sorted(found.split, key=lambda one: found.split[one])
    steps: list[Message] = [*undeploying(settings, found, without_traffic_first)]
    if found.endpoint is not None:
        steps.append(DeleteEndpointRequest(name=settings.endpoint_name))
    if found.versions:
        steps.append(DeleteModelRequest(name=settings.model_name))
    return steps
