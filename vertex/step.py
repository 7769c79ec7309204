"""What a step of a pipeline runs in its container: `python -m vertex.step STEP SETTINGS ARCHIVE … [-- COMMAND …]`.

SETTINGS is the settings file's content as JSON, and ARCHIVE the folder that the model's archive is in: it becomes
`model.artifact_uri`. The steps are

    pack   SETTINGS ARCHIVE MODEL OPTIONS -- marvec pack   a hub id or gs:// folder, packed into ARCHIVE/NAME.mar
    run    SETTINGS ARCHIVE OPTIONS -- marvec vertex …     a command in a folder that holds vertex.yaml
    smoke  SETTINGS ARCHIVE                                the endpoint gives the archive's golden answers

OPTIONS are added to the command, as a shell would read them. `-` stands for none, and for no ARCHIVE.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
import yaml

from marvec.errors import MarvecError
from vertex import last_line, storage
from vertex import settings as settings_file
from vertex.errors import VertexError
from vertex.options import VERTEX_YAML
from vertex.settings import VertexSettings

_ARGUMENTS = {"pack": 4, "run": 3, "smoke": 2}
_NONE = "-"


def main(arguments: Sequence[str]) -> int:
    """Run a step.

    Args:
        arguments: As the module's docstring tells.

    Returns:
        The exit status, which is the command's where there is one.
    """
    try:
        step, given, command = _taken_apart(list(arguments))
        content, settings = _settings(given[0], given[1])
        if step == "smoke":
            return _smoke(settings, given[1])
        with TemporaryDirectory(prefix="marvec-step-") as folder:
            if step == "pack":
                return _pack(settings, given[1], given[2], [*command, *_words(given[3])], Path(folder))
            Path(folder, VERTEX_YAML).write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
            return _run([*command, *_words(given[2])], Path(folder))
    except MarvecError as err:
        return last_line.tell(err)


def _taken_apart(arguments: list[str]) -> tuple[str, list[str], list[str]]:
    step = arguments[0] if arguments else ""
    if step not in _ARGUMENTS:
        raise VertexError(f"expected a step, one of {', '.join(_ARGUMENTS)}, got {step!r}")
    count = _ARGUMENTS[step]
    given, rest = arguments[1 : 1 + count], arguments[1 + count :]
    sound = not rest if step == "smoke" else len(rest) > 1 and rest[0] == "--"
    if len(given) < count or not sound:
        raise VertexError(
            f"{step}: expected {count} arguments" + ("" if step == "smoke" else ", then -- and a command")
        )
    return step, given, rest[1:]


def _settings(text: str, archive: str) -> tuple[dict[str, object], VertexSettings]:
    try:
        content: object = json.loads(text)
    except ValueError as err:
        raise VertexError(f"the settings are no JSON ({err})") from err
    if not isinstance(content, dict):
        raise VertexError("the settings: expected an object")
    if archive != _NONE and isinstance(content.get("model"), dict):
        content["model"]["artifact_uri"] = archive
    return content, settings_file.from_mapping(content, "settings")


def _words(options: str) -> list[str]:
    try:
        return [] if options == _NONE else shlex.split(options)
    except ValueError as err:
        raise VertexError(f"options {options!r}: {err}") from err


def _pack(settings: VertexSettings, archive: str, model: str, command: list[str], folder: Path) -> int:
    name = settings.model.served_as or settings.model.name
    source, output = folder / name, folder / "packed"
    for made in (source, output):
        made.mkdir()
    if model.startswith(storage.SCHEME):
        files = storage.fetch_folder(model, source)
        typer.echo(f"fetched {len(files)} files from {model}")
        model = str(source)
    status = _run([*command, model, "--name", name, "--model-store", str(output)], folder)
    if status == 0:
        storage.put_file(output / f"{name}.mar", f"{archive}/{name}.mar")
        typer.echo(f"put {archive}/{name}.mar")
    return status


def _smoke(settings: VertexSettings, archive: str) -> int:
    from vertex import api_errors, found, smoke  # Google's clients take seconds
    from vertex.api import Api

    expected = smoke.golden(settings, archive)
    with api_errors.explained(settings):
        there = found.read(Api(settings), settings)
    nearness = smoke.check(settings, there, expected)
    typer.echo(f"{len(expected.texts)} golden texts: {expected.figure} {nearness:.6f}")
    return 0


def _run(command: list[str], folder: Path) -> int:
    typer.echo(f"$ {shlex.join(command)}")
    return subprocess.run(command, cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
