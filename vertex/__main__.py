"""`python -m vertex`: the same as `marvec vertex`."""

from __future__ import annotations

import sys

from marvec_cli.main import app

app(["vertex", *sys.argv[1:]], prog_name="marvec")
