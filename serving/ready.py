"""The probe: exit status 0 when every served model answers, else 1 and one line on stderr that says why.

`python -m serving.ready`, or this file as a script from any folder: `python /path/to/serving/ready.py`. It reads the
ports from the same variables as launch.py. TorchServe's own /ping says "Healthy" before any model is loaded. With
`--wait SECONDS` it asks again and again for that long: for startup probes, which Vertex AI ends after three failures.

Three questions, the cheap ones first:
1. the launcher: which models, and not starting or draining;
2. TorchServe's management API, for each model: has it a READY worker;
3. does a worker answer? One that answered a request in the last 5 seconds has proven it. Otherwise a describe call goes
   through the queue to the handler and back.
A busy server is not a dead one: when the describe call waits behind a full queue or a long batch, it still counts as
ready while its worker has been at the batch in hand for less than 60 seconds, which is what the handler lets in; a
hanging one is found after that.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

if not __package__:  # Run as a script: let `serving` be found, and its files shadow no module.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from serving.errors import PortError
from serving.management import ManagementError, ask_worker, model_status
from serving.ports import Ports
from serving.state_socket import READY, ServerState, ask_state

ASK_TIMEOUT_S = 2.0
DESCRIBE_TIMEOUT_S = 3.0
FRESH_REPLY_S = 5.0
LONGEST_BATCH_S = 60.0
# Between two looks, while it waits.
LOOK_S = 0.25


def why_not_ready(environment: Mapping[str, str]) -> str | None:
    """Asks the three questions of the module's title.

    Args:
        environment: Usually `os.environ`: the ports.

    Returns:
        None when all is well, else one line.
    """
    try:
        port = Ports.from_environment(environment).inference
    except PortError as err:
        return str(err)
    try:
        state = ask_state(port, ASK_TIMEOUT_S)
    except OSError:
        return f"no marvec server runs on port {port}"
    except ValueError as err:
        return str(err)
    if state.phase != READY:
        return f"the server on port {port} is {state.phase}"
    for name, version in state.models:
        try:
            status = model_status(state.management_port, name, version, ASK_TIMEOUT_S)
        except ManagementError as err:
            return f"model {name}: {err}"
        if status.ready_workers == 0:
            return f"model {name} has no READY worker"
        silence = _silence(port, state, name, version)
        if silence:
            return f"model {name}: {silence}"
    return None


def _silence(port: int, state: ServerState, name: str, version: str) -> str | None:
    progress = state.progress.get(f"{name}_{version}", {})
    replied_s = progress.get("replied_s")
    if replied_s is not None and replied_s < FRESH_REPLY_S:
        return None
    try:
        ask_worker(state.management_port, name, version, DESCRIBE_TIMEOUT_S)
    except ManagementError as err:
        if not (err.timed_out or err.status == 503):
            return f"its worker fails the describe call ({err})"
    else:
        return None
    try:
        progress = ask_state(port, ASK_TIMEOUT_S).progress.get(f"{name}_{version}", {})
    except (OSError, ValueError):
        return "the launcher is gone"
    busy_s = progress.get("busy_s")
    if busy_s is not None and busy_s < LONGEST_BATCH_S:
        return None
    return "its worker does not answer" if busy_s is None else f"its worker is stuck in one batch for {busy_s:.0f} s"


def main(argv: Sequence[str]) -> int:
    """Runs the probe.

    Args:
        argv: The command line without the program's name.

    Returns:
        0 for ready, else 1.
    """
    parser = argparse.ArgumentParser(prog="ready.py", description="Is every served model ready?")
    parser.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="how long to wait for it")
    wait_s = parser.parse_args(argv).wait
    started = time.monotonic()
    while (reason := why_not_ready(os.environ)) and time.monotonic() - started < wait_s:
        time.sleep(LOOK_S)
    if reason:
        sys.stderr.write(f"not ready: {reason} ({time.monotonic() - started:.1f} s)\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
