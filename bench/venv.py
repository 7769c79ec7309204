"""A peer's own virtual environment, made once for each content of its requirements file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.cache import cache_folder, digest, made_once

REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
# A package index to take torch from, as in the Makefile.
TORCH_INDEX_VARIABLE = "MARVEC_TORCH_INDEX"
TOOL_TIMEOUT_S = 1800.0


class ToolError(Exception):
    """A command that a system needs has failed; the message holds the last of what it said."""


def python_of(requirements: str) -> Path:
    """The interpreter of a peer's environment, which is made on first use; that takes minutes.

    Args:
        requirements: A file of requirements/, without its ending. Every line is an exact pin.

    Returns:
        The path of its `python`.

    Raises:
        ToolError: pip failed.
    """
    file = REQUIREMENTS / f"{requirements}.txt"
    key = digest(file.read_bytes(), sys.version)
    folder = made_once(cache_folder() / "venvs" / f"{requirements}-{key}", lambda venv: _install(venv, file))
    return folder / "bin" / "python"


def run_tool(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None, standard_input: str = ""
) -> str:
    """Run a command to its end.

    Args:
        command: What to run.
        environment: Variables over this process's own.
        standard_input: What it reads.

    Returns:
        What it wrote to stdout.

    Raises:
        ToolError: It failed, or took longer than TOOL_TIMEOUT_S.
    """
    try:
        done = subprocess.run(
            [str(part) for part in command],
            input=standard_input,
            capture_output=True,
            text=True,
            env={**os.environ, **(environment or {})},
            timeout=TOOL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        raise ToolError(f"{Path(command[0]).name}: {err}") from err
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise ToolError(f"{Path(command[0]).name} ended with status {done.returncode}: {' / '.join(lines[-3:])}")
    return done.stdout


def _install(venv: Path, requirements: Path) -> None:
    run_tool([sys.executable, "-m", "venv", venv])
    pip: list[str | Path] = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = requirements.read_text(encoding="utf-8").splitlines()
    index = os.environ.get(TORCH_INDEX_VARIABLE)
    # torch first, and alone: an index that has a CPU build of it may have nothing else.
    run_tool([*pip, *(pin for pin in pins if pin.startswith("torch==")), *(["--index-url", index] if index else [])])
    # The file lists all that is needed, and what some packages ask for beyond that is left out on purpose.
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as rest:
        rest.write("\n".join(pin for pin in pins if not pin.startswith("torch==")))
        rest.flush()
        run_tool([*pip, "--no-deps", "--requirement", rest.name])
