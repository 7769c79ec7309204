"""`marvec image run`: a container, followed from its start to READY, and to its end unless it is left alone then."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from image.engine import Engine
from image.errors import ImageError
from serving.ports import require_free

CONTAINER_PORT = 7080
# The launcher drains for 20 s; a container engine by itself would kill it after 10.
STOP_S = 30
_READY = re.compile(r"READY after [\d.]+ s: (.+) on port \d+")


def run(
    engine: Engine, image: str, port: int, extra: Sequence[str], *, detach: bool, tell: Callable[[str], None]
) -> int:
    """Run an image and wait until its models are READY.

    Args:
        engine: What runs it.
        image: Its name.
        port: The port of this machine that the predictions are served on.
        extra: More options of the engine's `run`, such as `--memory 2g`.
        detach: Leave it running and return when it is READY; else return when it ends, or is ended by Ctrl-C.
        tell: Takes a line for the user.

    Returns:
        The exit status of the container: 0 after Ctrl-C, 143 after SIGTERM. 0 when it is left running.

    Raises:
        ImageError: When it does not start, or ends before it is READY; the container is removed then.
    """
    if not engine.has_image(image):
        raise ImageError(f"there is no image {image}: marvec image build makes one")
    if "--rm" in extra:
        raise ImageError("--rm is not needed: the container is removed when it ends")
    _require_free(port)
    with tempfile.TemporaryDirectory(prefix="marvec-image-") as folder, _signals_raised():
        note = Path(folder) / "container"
        kept = False
        try:
            container = _start(engine, image, port, extra, note)
            kept = _follow(engine, container, port, detach=detach, tell=tell)
            return 0 if kept else _status(engine, container)
        except _Signal as err:
            return 128 + err.number
        finally:
            # Also what was made, but could not be started.
            if note.exists() and not kept:
                engine.ask("rm", "--force", note.read_text().strip())


def _start(engine: Engine, image: str, port: int, extra: Sequence[str], note: Path) -> str:
    # The port inside is the one that is published, whatever the options before it say.
    inside = ("--publish", f"127.0.0.1:{port}:{CONTAINER_PORT}", "--env", f"AIP_HTTP_PORT={CONTAINER_PORT}")
    engine.ask("create", *extra, *inside, "--cidfile", str(note), image)
    container = note.read_text().strip()
    engine.ask("start", container)
    return container


def _follow(engine: Engine, container: str, port: int, *, detach: bool, tell: Callable[[str], None]) -> bool:
    """Tell what the log says, until READY or the end; returns whether the container is left running."""
    with _log(engine, container) as lines:
        try:
            models = _wait(lines, tell)
            if not models:
                raise ImageError(f"it ended before it was READY, with exit status {_status(engine, container)}")
            for line in _curl_lines(models, port):
                tell(line)
            if not detach:
                _tell_rest(lines, tell)
                return False
        except _Signal as err:  # handed on; a second one is no longer caught here
            tell("stopping: what is in flight is answered first")
            engine.ask("kill", "--signal", err.name, container)
            _tell_rest(lines, tell)
            return False
    name = container[:12]
    end = f"{engine.program} stop --time {STOP_S} {name} && {engine.program} rm {name}"
    tell(f"running as {name}; to end it: {end}")
    return True


def _require_free(port: int) -> None:
    try:
        require_free("127.0.0.1", port)
    except OSError as err:
        raise ImageError(
            f"port {port} cannot be used ({err.strerror}): stop what listens there, or give another with --port"
        ) from err


def _wait(lines: Iterator[str], tell: Callable[[str], None]) -> list[str]:
    """The names of the models that are READY; none when the log ended before."""
    for line in lines:
        message = _for_people(line)
        tell(message)
        found = _READY.search(message)
        if found:
            return [model.split()[0] for model in found[1].split(", ")]
    return []


def _tell_rest(lines: Iterator[str], tell: Callable[[str], None]) -> None:
    for line in lines:
        tell(_for_people(line))


def _curl_lines(models: Sequence[str], port: int) -> list[str]:
    body = '{"instances": ["hello world"]}'
    return [
        f"curl -s http://127.0.0.1:{port}/predictions/{model} -H 'Content-Type: application/json' -d '{body}'"
        for model in models
    ]


@contextmanager
def _log(engine: Engine, container: str) -> Iterator[Iterator[str]]:
    """The container's log, line by line, until it ends."""
    # A group of its own: Ctrl-C is for us, who hand it on and see how the container ends.
    with subprocess.Popen(
        [engine.program, "logs", "--follow", container],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            yield iter(process.stdout or [])
        finally:
            process.kill()


class _Signal(Exception):
    """Ctrl-C, SIGTERM or a closed terminal, to be handed on to the server inside."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.name = signal.Signals(number).name.removeprefix("SIG")


@contextmanager
def _signals_raised() -> Iterator[None]:
    def raise_it(number: int, _frame: object) -> None:
        raise _Signal(number)

    before = {number: signal.signal(number, raise_it) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _status(engine: Engine, container: str) -> int:
    deadline = time.monotonic() + STOP_S
    while time.monotonic() < deadline:
        state = engine.ask("inspect", "--format", "{{.State.Running}} {{.State.ExitCode}}", container).split()
        if state[0] == "false":
            return int(state[1])
        time.sleep(0.1)  # the log may end a moment before the engine has noticed
    raise ImageError(f"the log of {container[:12]} ended, but the container still runs: it is removed")


def _for_people(line: str) -> str:
    try:
        event: Mapping[str, str] = json.loads(line)
        return f"{event['severity']:<8} {event['message']}"
    except (ValueError, KeyError, TypeError):
        return line.rstrip("\n")
