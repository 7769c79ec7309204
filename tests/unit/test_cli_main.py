"""The command line: help with an example, one red line for what Marvec refuses, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from marvec_cli.main import app
from vertex import errors

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


def vertex_commands(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> list[tuple[list[str], str]]:
    """Put commands that need no Google in the place of vertex/'s; returns what is handed over to them."""
    taken: list[tuple[list[str], str]] = []

    def commands(arguments: list[str], prog_name: str) -> None:
        taken.append((arguments, prog_name))
        if error is not None:
            raise error

    module = ModuleType("vertex.command")
    monkeypatch.setattr(module, "app", commands, raising=False)
    monkeypatch.setitem(sys.modules, "vertex.command", module)
    return taken


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["deploy", "--help"],
        ["deploy", "--traffic", "10", "--dry-run", "--settings", "a.yaml"],
        ["predict", "--file=-", "a b", "-"],
    ],
)
def test_vertex_hands_over_all_that_it_is_given(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    taken = vertex_commands(monkeypatch, None)
    with pytest.raises(SystemExit) as end:
        app(["vertex", *arguments])
    assert end.value.code == 0
    assert taken == [(arguments, "marvec vertex")]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.VertexError, 1),
        (errors.AccessError, 3),
        (errors.AbsentError, 4),
        (errors.QuotaError, 5),
        (errors.OperationError, 6),
        (errors.UnavailableError, 7),
        (errors.RowsError, 8),
    ],
)
def test_each_kind_of_vertex_error_has_its_exit_status(
    kind: type[errors.VertexError], status: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    vertex_commands(monkeypatch, kind("what is [to be] done"))
    with pytest.raises(SystemExit) as end:
        app(["vertex", "deploy"])
    assert end.value.code == status
    assert capsys.readouterr() == ("", "error: what is [to be] done\n")


def test_vertex_without_its_extra_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one == "vertex.command" or one.startswith("google.cloud.aiplatform")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("google", "google.cloud"):  # packages in which there is nothing
        empty = ModuleType(name)
        empty.__path__ = []
        monkeypatch.setitem(sys.modules, name, empty)
    with pytest.raises(SystemExit) as end:
        app(["vertex", "deploy"])
    assert end.value.code == 1
    assert capsys.readouterr() == (
        "",
        "error: google.cloud.aiplatform_v1 is missing: pip install 'marvec[vertex]'\n",
    )


def test_the_other_commands_do_without_google() -> None:
    result = marvec("--help")
    assert result.returncode == 0
    assert "Upload a model to Vertex AI, deploy it, ask it, and take it down again." in result.stdout
    code = "import sys, marvec_cli.main; print({'google.cloud.aiplatform_v1', 'pydantic'} & sys.modules.keys())"
    paths = os.pathsep.join((str(ROOT / "handler"), str(ROOT)))
    environment = os.environ | {"PYTHONPATH": paths}
    loaded = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=60, check=True)
    assert loaded.stdout == b"set()\n"
