"""Marvec: texts in, sentence vectors out, the same in every server.

The library reads a request, tokenizes, encodes, pools and serializes. It imports no server and no cloud SDK, so the
TorchServe handler and the Triton backend are thin adapters around it.
"""

from __future__ import annotations

__version__ = "0.1.0"
