"""Reads what TorchServe and its workers print, and passes it on: one event a line, the right severity, no chatter.

A traceback arrives as thirty INFO lines, since the worker's log has no levels; it leaves as one ERROR event. The
"@worker" lines feed worker_states.py and go no further.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections import deque

from serving.journal import SEVERITIES, Journal
from serving.worker_states import WorkerStates

WORKER_PREFIX = b"@worker "
TRACEBACK = "Traceback (most recent call last):"
LONGEST_TRACEBACK = 300
# What Java prints past its log. nvidia-smi's absence is a CPU machine, not a fault.
PLAIN_CHATTER = re.compile(
    r"Model server started\.|.*sun\.reflect\.Reflection\.getCallerClass.*|(nvidia|xpu)-smi not available.*|"
    r"OpenJDK 64-Bit Server VM warning: Sharing is only supported.*|Picked up JAVA_TOOL_OPTIONS.*|\s*"
)
BETWEEN_TRACEBACKS = re.compile(
    r"\s*|During handling of the above exception, another exception occurred:|"
    r"The above exception was the direct cause of the following exception:|Backend worker process died\."
)
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?::.*)?$")
# The form of handler/marvec/logs.py.
_OWN_EVENT = re.compile(r"(marvec\S*) (" + "|".join(SEVERITIES) + r") (.*)", re.DOTALL)


class LogRelay:
    """Turns TorchServe's output into journal events.

    Args:
        journal: Where events go.
        states: What "@worker" lines and exceptions are noted in.
    """

    def __init__(self, journal: Journal, states: WorkerStates) -> None:
        """Starts with nothing read."""
        self._journal = journal
        self._states = states
        self._tracebacks: dict[str, list[str]] = {}
        self._muted = False
        self.problems: deque[str] = deque(maxlen=50)
        self._thread: threading.Thread | None = None

    def start(self, descriptor: int) -> None:
        """Reads a pipe in a thread of its own until its other end is closed.

        Args:
            descriptor: The reading end; closed here at the end.
        """
        self._thread = threading.Thread(target=self._read, args=(descriptor,), name="log-relay", daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Waits for the last lines.

        Args:
            timeout_s: At most so long.
        """
        if self._thread is not None:
            self._thread.join(timeout_s)

    def mute(self) -> None:
        """From now on passes nothing on: a server that is being ended complains of dying workers."""
        self._muted = True

    def line(self, line: bytes) -> None:
        """Handles one line.

        Args:
            line: Without its line break.
        """
        if line.startswith(WORKER_PREFIX):
            thread, _, message = line[len(WORKER_PREFIX) :].decode("utf-8", "replace").partition("|")
            self._states.note(thread, message)
            if message.endswith("-> WORKER_STOPPED") and not self._muted:
                self._journal.event("WARNING", "worker stopped; TorchServe starts it anew", worker=thread)
        elif self._muted:
            return
        elif line.startswith(b'{"severity":') and b'"logger":"MODEL_LOG"' in line:
            self._model_line(line)
        elif line.startswith(b'{"severity":'):
            if not line.startswith((b'{"severity":"INFO"', b'{"severity":"DEBUG"')):
                self._remember(line)
            self._journal.relay(line)
        else:
            text = line.decode("utf-8", "replace")
            chatter = PLAIN_CHATTER.fullmatch(text) is not None
            self._journal.event("DEBUG" if chatter else "WARNING", text, logger="java")
            if not chatter and not text.lstrip().startswith("at "):  # a frame of a Java stack trace gives no reason
                self.problems.append(text)

    def _read(self, descriptor: int) -> None:
        rest = b""
        while True:
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.line(line)
        if rest:
            self.line(rest)
        for worker in list(self._tracebacks):
            self._flush(worker)
        os.close(descriptor)

    def _model_line(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            message = str(event["message"])
        except (ValueError, KeyError):  # Java's own stderr shares the pipe, and can stand in the middle of a line
            self._journal.event("WARNING", line.decode("utf-8", "replace"), logger="java")
            return
        worker, _, stream = str(event["worker"]).rpartition("-")
        if message.startswith(TRACEBACK):
            self._flush(worker)
            self._tracebacks[worker] = [message]
            return
        if worker in self._tracebacks:
            self._tracebacks[worker].append(message)
            # Frames are indented; the first line that is not is the exception, and the last of the traceback.
            if not message.startswith(" ") or len(self._tracebacks[worker]) > LONGEST_TRACEBACK:
                self._states.note_error(worker, message)
                self._flush(worker)
            return
        if BETWEEN_TRACEBACKS.fullmatch(message):
            return
        own = _OWN_EVENT.match(message)
        if own:
            logger, severity, text = own.groups()
            self._journal.event(severity, text, logger=logger, worker=worker)
            return
        if _EXCEPTION.match(message):
            self._states.note_error(worker, message)
            severity = "ERROR"
        else:
            severity = "WARNING" if stream == "stderr" else "INFO"
        self._journal.event(severity, message, logger="worker", worker=worker)

    def _flush(self, worker: str) -> None:
        lines = self._tracebacks.pop(worker, None)
        if lines:
            self._journal.event("ERROR", "\n".join(lines), logger="worker", worker=worker)

    def _remember(self, line: bytes) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            self.problems.append(str(json.loads(line)["message"]))
