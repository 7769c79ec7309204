"""Instances in requests that Vertex AI takes: it cuts off what is larger, before any server sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from vertex.errors import VertexError

SHARED_BYTES = 1_500_000
DEDICATED_BYTES = 10_000_000
_FRAME_BYTES = len('{"instances": [], "parameters": }')


def fitting(
    instances: Sequence[object],
    start: int,
    parameters: Mapping[str, object] | None,
    limit_bytes: int,
    most_instances: int,
) -> list[object]:
    """Return as many instances as one request holds.

    Sizes are those of JSON in ASCII, which is what the clients send: a Japanese letter counts six bytes.

    Args:
        instances: As the model takes them.
        start: The first one of the request.
        parameters: Sent with each request; None for none.
        limit_bytes: SHARED_BYTES or DEDICATED_BYTES, by the kind of endpoint.
        most_instances: Instances in a request at most.

    Returns:
        At least one instance, from `start` on.

    Raises:
        VertexError: The first one is too large for a request of its own.
    """
    room = limit_bytes - _FRAME_BYTES - len(json.dumps(parameters))
    used = 0
    batch: list[object] = []
    for instance in instances[start : start + most_instances]:
        size = len(json.dumps(instance)) + len(", ")
        if used + size > room:
            break
        batch.append(instance)
        used += size
    if not batch:
        raise VertexError(
            f"instances[{start}]: {len(json.dumps(instances[start])):,} bytes as JSON, and a request to this endpoint "
            f"holds {room:,}: shorten it"
        )
    return batch
