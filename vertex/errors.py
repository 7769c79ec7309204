"""What the road to Vertex AI raises."""

from __future__ import annotations

from marvec.errors import MarvecError


class VertexError(MarvecError):
    """A setting is wrong, or Google refused; the message is one line that says what to do."""
