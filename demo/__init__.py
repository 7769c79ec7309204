"""Two real embedding models that a package registry carries, so that trying Marvec needs no hub.

`minilm` is all-MiniLM-L6-v2 (English, Apache-2.0), `e5` is multilingual-e5-small with 4-bit weights (MIT).
"""

from __future__ import annotations
