"""`marvec image run`: a container, followed from its start to READY, and to its end unless it is left alone then."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from image.engine import Engine
from image.errors import ImageError

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
        The exit status of the container; 0 when it is left running.

    Raises:
        ImageError: When it does not start, or ends before it is READY; the container is removed then.
    """
    if not engine.has_image(image):
        raise ImageError(f"there is no image {image}: marvec image build makes one")
    publish = f"127.0.0.1:{port}:{CONTAINER_PORT}"
    # Created first: what cannot be started is there all the same, and must go.
    container = engine.ask("create", "--publish", publish, *extra, image).splitlines()[-1]
    kept = False
    try:
        engine.ask("start", container)
        with _terminated_as_interrupted(), _log(engine, container) as lines:
            models = _wait(lines, tell)
            if not models:
                raise ImageError(f"{image} ended before it was READY, with exit status {_status(engine, container)}")
            for line in _curl_lines(models, port):
                tell(line)
            if detach:
                kept = True
                name = container[:12]
                end = f"{engine.program} stop --time {STOP_S} {name} && {engine.program} rm {name}"
                tell(f"running as {name}; to end it: {end}")
                return 0
            for line in lines:
                tell(_for_people(line))
        return _status(engine, container)
    except KeyboardInterrupt:
        tell("stopping: what is in flight is answered first")
        engine.ask("stop", "--time", str(STOP_S), container)
        return _status(engine, container)
    finally:
        if not kept:
            engine.ask("rm", "--force", container)


def _wait(lines: Iterator[str], tell: Callable[[str], None]) -> list[str]:
    """The names of the models that are READY; none when the log ended before."""
    for line in lines:
        message = _for_people(line)
        tell(message)
        found = _READY.search(message)
        if found:
            return [model.split()[0] for model in found[1].split(", ")]
    return []


def _curl_lines(models: Sequence[str], port: int) -> list[str]:
    body = '{"instances": ["hello world"]}'
    return [
        f"curl -s http://127.0.0.1:{port}/predictions/{model} -H 'Content-Type: application/json' -d '{body}'"
        for model in models
    ]


@contextmanager
def _log(engine: Engine, container: str) -> Iterator[Iterator[str]]:
    """The container's log, line by line, until it ends."""
    # A group of its own: Ctrl-C is for us, who then stop the container and see how it ends.
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


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends the container as Ctrl-C does."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
