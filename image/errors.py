"""What making and running images raises."""

from __future__ import annotations

from marvec.errors import MarvecError


class ImageError(MarvecError):
    """An image cannot be built, run or pushed; the message says why and what to do."""
