"""`python -m bench COMMAND`."""

from __future__ import annotations

from bench.cli import app

if __name__ == "__main__":  # a process that computes reference vectors imports this file too
    app(prog_name="python -m bench")
