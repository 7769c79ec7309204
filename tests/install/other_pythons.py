"""Other Python versions of this machine, each with an environment that is made once and kept in the user's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def find_python(version: str) -> Path | None:
    """Return a working interpreter of a version such as "3.12", or None.

    A command on PATH may be a shim that leads nowhere, so each candidate is run; pyenv's versions count even where
    none of them is switched on.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    on_path = shutil.which(f"python{version}")
    candidates = [Path(on_path)] if on_path else []
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    code = f"import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    for candidate in candidates:
        if subprocess.run([candidate, "-c", code], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def environment_with(python: Path, requirements: list[str], constraints: Path | None = None) -> Path:
    """Return the python of an environment that holds the given requirements and what they need.

    It is kept in the cache under the digest of all that makes it, so another wish is another environment.

    Args:
        python: The interpreter to make it with.
        requirements: As pip takes them.
        constraints: A constraints file, or None.

    Raises:
        RuntimeError: venv or pip failed; the message ends with what they said.
    """
    limits: list[str | Path] = ["--constraint", constraints] if constraints else []
    pins = constraints.read_text(encoding="utf-8") if constraints else ""
    wish = "\n".join([str(python), *sorted(requirements), pins])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marvec" / "environments"
    folder = cache / sha256(wish.encode()).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = folder / "bin" / "python"
        if not (folder / "complete").exists():
            run([python, "-m", "venv", "--clear", folder])
            pip(made, "install", "--no-compile", *limits, *requirements)
            (folder / "complete").touch()
    return made


def pip(python: Path, *arguments: str | Path) -> str:
    """Run this interpreter's pip on another environment.

    Raises:
        RuntimeError: pip failed; the message ends with what it said.
    """
    quiet = ["--quiet", "--disable-pip-version-check"]
    return run([sys.executable, "-m", "pip", "--python", python, *quiet, *arguments])


def copy_project(target: Path) -> Path:
    """Copy the files that git tracks, or would add, into a new folder, as a fresh clone would have them.

    Raises:
        RuntimeError: This is no git work tree.
    """
    for name in run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT).split("\0")[:-1]:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def run(command: list[str | Path], cwd: Path | None = None) -> str:
    """Run a command that must succeed, in a clean Python environment, and return its standard output.

    Raises:
        RuntimeError: It failed; the message ends with what it said.
    """
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=cwd, env=clean, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        told = "\n".join((done.stdout + done.stderr).splitlines()[-80:])
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{told}")
    return done.stdout
