"""The command line: help with an example, one red line for what Marvec refuses, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from marvec_cli.main import app

ROOT = Path(__file__).resolve().parents[2]


def marvec(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    paths = os.pathsep.join((str(ROOT / "handler"), str(ROOT)))
    return subprocess.run(
        [sys.executable, "-c", "from marvec_cli.main import app; app(prog_name='marvec')", *arguments],
        env=os.environ | {"PYTHONPATH": paths, "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "example"),
    [
        (("pack", "--help"), "Example: marvec pack intfloat/multilingual-e5-small --name e5 --workers 2"),
        (("serve", "--help"), "Example: marvec serve minilm"),
    ],
)
def test_help_shows_an_example(arguments: tuple[str, ...], example: str) -> None:
    result = marvec(*arguments)

    assert result.returncode == 0
    assert example in result.stdout


def test_what_is_refused_is_one_line_on_stderr() -> None:
    result = marvec("pack", "m", "--dtype", "int4")

    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == "error: --dtype: expected one of float32, bfloat16, float16, int8, auto, got 'int4'\n"


def test_the_line_is_red_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    with pytest.raises(SystemExit) as end:
        app(["pack", "m", "--prompt", "query"])

    assert end.value.code == 1
    line = "\x1b[31merror: --prompt: expected name=text, such as 'query=query: ', got 'query'\x1b[0m\n"
    assert capsys.readouterr().err == line


def test_an_unknown_option_is_a_usage_error() -> None:
    result = marvec("pack", "m", "--colour", "red")

    assert result.returncode == 2
    assert "No such option: --colour" in result.stderr


def test_serve_hands_over_to_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[list[str]] = []

    def main(arguments: list[str]) -> int:
        taken.append(arguments)
        return 7

    monkeypatch.setattr("serving.launch.main", main)
    with pytest.raises(SystemExit) as end:
        app(["serve", "minilm", "e5", "--model-store", "store"])

    assert end.value.code == 7
    assert taken == [["minilm", "e5", "--model-store", "store", "--print-curl"]]
