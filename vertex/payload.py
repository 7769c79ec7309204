"""Instances in requests that Vertex AI takes: it cuts off what is larger, before any server sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from vertex.errors import VertexError

SHARED_BYTES = 1_500_000
DEDICATED_BYTES = 10_000_000
_FRAME_BYTES = len('{"instances": [], "parameters": }')


def split(
    instances: Sequence[object],
    parameters: Mapping[str, object] | None,
    limit_bytes: int,
    most_instances: int,
) -> Iterator[list[object]]:
    """Divide instances among as few requests as the limits allow, in order.

    Sizes are those of JSON in ASCII, which is what the clients send: a Japanese letter counts six bytes.

    Args:
        instances: As the model takes them.
        parameters: Sent with each request; None for none.
        limit_bytes: SHARED_BYTES or DEDICATED_BYTES, by the kind of endpoint.
        most_instances: Instances in a request at most.

    Yields:
        The instances of a request, at least one.

    Raises:
        VertexError: An instance is too large for a request of its own.
    """
    room = limit_bytes - _FRAME_BYTES - len(json.dumps(parameters))
    batch: list[object] = []
    used = 0
    for i, instance in enumerate(instances):
        size = len(json.dumps(instance)) + len(", ")
        if size > room:
            raise VertexError(
                f"instances[{i}]: {size:,} bytes as JSON, and a request to this endpoint holds {room:,}: shorten it"
            )
        if batch and (used + size > room or len(batch) == most_instances):
            yield batch
            batch, used = [], 0
        batch.append(instance)
        used += size
    if batch:
        yield batch
