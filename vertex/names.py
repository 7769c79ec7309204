"""Google's resource names, and digests of its messages."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proto import Message


def last(name: str) -> str:
    """Return a resource's own id, with the version where there is one.

    Args:
        name: Such as `projects/P/locations/R/models/minilm@2`.
    """
    return name.rsplit("/", 1)[-1]


def digest(message: Message) -> str:
    """Return a digest of what is set in a message, whatever other fields the library knows.

    Args:
        message: One of Google's own; 16 hexadecimal digits fit into a label.
    """
    set_fields = type(message).to_dict(message, always_print_fields_with_no_presence=False)
    return sha256(json.dumps(set_fields, sort_keys=True).encode()).hexdigest()[:16]
