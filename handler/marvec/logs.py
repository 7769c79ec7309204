"""The log of a worker: lines that say how bad they are, since TorchServe passes on text alone."""

from __future__ import annotations

import logging
import sys


def set_up() -> None:
    """Print the library's log as `marvec LEVEL message` on stdout, where TorchServe and serving/ read it."""
    logger = logging.getLogger("marvec")
    if logger.handlers:
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
