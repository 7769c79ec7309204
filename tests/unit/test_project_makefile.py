"""The Makefile, with stand-ins for Python, pip and marvec: what it runs, when, and what Ctrl-C leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "$(basename "$0") $*" >>calls\n'
# What a venv's python does here: it makes itself at the first call, then only notes its calls.
MAKES_VENV = GOOD + '[ "$1 $2" = "-m venv" ] || exit 0\nmkdir -p "$3/bin"\ncp "$0" "$3/bin/python"\n'

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with what the Makefile reads, and an empty folder `path` to be PATH's first."""
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "requirements/constraints.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("path", "model_store", "handler", "archiver", "demo"):
        (tmp_path / name).mkdir()
    return tmp_path


def command(clone: Path, name: str, script: str) -> Path:
    file = clone / "path" / name
    file.write_text(script)
    file.chmod(0o755)
    return file


def hide_pythons(clone: Path) -> None:
    for name in ("python3.11", "python3.12", "python3.10", "python3", "python"):
        command(clone, name, "#!/bin/sh\necho 'no such version' >&2\nexit 127\n")


def environment(clone: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MARVEC", "MFLAGS"))}
    return kept | {"PATH": f"{clone / 'path'}:{os.environ['PATH']}"} | more


def make(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments], cwd=clone, env=environment(clone), capture_output=True, text=True, timeout=60, check=False
    )


def calls(clone: Path) -> list[str]:
    file = clone / "calls"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def pinned_torch() -> str:
    pins = (ROOT / "requirements" / "constraints.txt").read_text().splitlines()
    return next(pin for pin in pins if pin.startswith("torch=="))


def test_without_a_usable_python_it_says_what_to_give(clone: Path) -> None:
    hide_pythons(clone)
    done = make(clone, "setup")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "make: no Python 3.10, 3.11 or 3.12 with the venv module found; name one: make PYTHON=/path/to/python3.11"
    )


def test_a_shim_that_fails_is_passed_over(clone: Path) -> None:
    hide_pythons(clone)
    command(clone, "python3.10", MAKES_VENV)
    assert make(clone, "setup").returncode == 0
    assert calls(clone)[0] == "python3.10 -m venv .venv"


def test_the_python_that_is_named_is_taken(clone: Path) -> None:
    command(clone, "python3.11", MAKES_VENV)
    mine = command(clone, "my-python", MAKES_VENV)
    assert make(clone, "setup", f"PYTHON={mine}").returncode == 0
    assert calls(clone)[0] == "my-python -m venv .venv"


def test_setup_installs_torch_first_and_a_second_time_runs_nothing(clone: Path) -> None:
    command(clone, "python3.11", MAKES_VENV)
    assert make(clone, "setup").returncode == 0
    pip = "python -m pip install --quiet --disable-pip-version-check"
    assert calls(clone) == [
        "python3.11 -m venv .venv",
        f"{pip} {pinned_torch()}",
        f"{pip} --constraint requirements/constraints.txt --editable .[dev]",
    ]
    assert make(clone, "setup").returncode == 0
    assert calls(clone) == []


def test_setup_installs_again_when_a_pin_changes(clone: Path) -> None:
    command(clone, "python3.11", MAKES_VENV)
    make(clone, "setup")
    calls(clone)
    later = time.time() + 5
    os.utime(clone / "requirements" / "constraints.txt", (later, later))
    assert make(clone, "setup").returncode == 0
    assert len(calls(clone)) == 2


def test_torch_comes_from_the_index_that_is_named(clone: Path) -> None:
    command(clone, "python3.11", MAKES_VENV)
    assert make(clone, "setup", "MARVEC_TORCH_INDEX=http://127.0.0.1:9/cpu").returncode == 0
    assert calls(clone)[1].endswith(f" {pinned_torch()} --index-url http://127.0.0.1:9/cpu")


def test_help_names_every_target(clone: Path) -> None:
    done = make(clone)
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == [
        "help",
        "setup",
        "serve",
        "lint",
        "check",
        "format",
        "test",
        "test-unit",
        "test-contract",
        "test-pack",
        "test-parity",
        "test-sentiment",
        "test-server",
        "test-cloud",
        "test-image",
        "test-bench",
        "test-python",
        "bench",
        "bench-quick",
        "lock",
        "clean",
    ]


def test_a_failed_install_is_tried_again(clone: Path) -> None:
    command(clone, "python3.11", MAKES_VENV + 'echo "exit 1" >"$3/bin/python"\n')
    assert make(clone, "setup").returncode == 2
    assert not (clone / ".venv" / ".setup").exists()


@pytest.fixture
def ready_clone(clone: Path) -> Path:
    """Return a clone that is set up, whose marvec packs a file and serves until it is told to stop."""
    command(clone, "python3.11", MAKES_VENV)
    make(clone, "setup")
    calls(clone)
    marvec = clone / ".venv" / "bin" / "marvec"
    # "$!" is what the server itself would be: it must be gone when make is.
    marvec.write_text(
        '#!/bin/sh\necho "marvec $*" >>calls\n'
        '[ "$1" = pack ] && { touch model_store/minilm.mar; exit 0; }\n'
        "sleep 60 & echo $! >server.pid; trap 'kill $!; wait $!; echo drained; exit 0' INT TERM; touch started; wait\n"
    )
    marvec.chmod(0o755)
    return clone


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, -signal.SIGTERM)])
def test_serve_packs_once_and_ends_quietly(ready_clone: Path, number: signal.Signals, status: int) -> None:
    for round_ in range(2):
        (ready_clone / "started").unlink(missing_ok=True)
        server = subprocess.Popen(
            ["make", "serve"],
            cwd=ready_clone,
            env=environment(ready_clone),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        deadline = time.monotonic() + 30
        while not (ready_clone / "started").exists():
            assert time.monotonic() < deadline
            assert server.poll() is None
            time.sleep(0.02)
        if number == signal.SIGINT:
            os.killpg(server.pid, number)  # as a terminal does
        else:
            server.send_signal(number)
        said, _ = server.communicate(timeout=30)
        # make tells its own end in two ways: by the signal, or, where the server ended first, by the status 2.
        assert server.returncode in (status, 2)
        assert "drained" in said
        if number == signal.SIGINT:
            assert "***" not in said
        with pytest.raises(ProcessLookupError):
            os.kill(int((ready_clone / "server.pid").read_text()), 0)
        packed = [call for call in calls(ready_clone) if call.startswith("marvec pack")]
        assert packed == (["marvec pack  --name minilm"] if round_ == 0 else [])


def test_serve_packs_again_when_the_handler_changes(ready_clone: Path) -> None:
    make(ready_clone, "model_store/minilm.mar")
    calls(ready_clone)
    (ready_clone / "handler" / "new.py").touch()
    later = time.time() + 5
    os.utime(ready_clone / "handler" / "new.py", (later, later))
    make(ready_clone, "model_store/minilm.mar")
    assert [call.split()[:2] for call in calls(ready_clone)] == [["python", "-m"], ["marvec", "pack"]]


def test_ci_runs_the_readmes_test_command_and_nothing_else() -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines() == ["#!/usr/bin/env bash", "exec make test"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
