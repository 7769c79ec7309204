"""`python -m bench COMMAND`."""

from __future__ import annotations

import signal
import sys

from bench.cli import app

if __name__ == "__main__":  # a process that computes reference vectors imports this file too
    # As on Ctrl-C, servers are ended on the way out.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    app(prog_name="python -m bench")
