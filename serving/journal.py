"""The one log: JSON lines as Cloud Logging reads them, or a short form for people at a terminal."""

from __future__ import annotations

import datetime
import json
import os
import threading

SEVERITIES = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Journal:
    """Writes events to a file descriptor, whole lines at a time, from any thread.

    Args:
        descriptor: Usually 1, stdout.
        human: Write `12:00:01 WARNING text` instead of JSON.
        debug: Write DEBUG events too.
    """

    def __init__(self, descriptor: int, *, human: bool, debug: bool) -> None:
        """Keeps the settings; nothing is written yet."""
        self._descriptor = descriptor
        self._human = human
        self._debug = debug
        self._lock = threading.Lock()

    def debug(self, message: str) -> None:
        """Writes an event that only helps to find a fault."""
        self.event("DEBUG", message)

    def info(self, message: str) -> None:
        """Writes an event of a normal life."""
        self.event("INFO", message)

    def warning(self, message: str) -> None:
        """Writes an event that an operator should see."""
        self.event("WARNING", message)

    def critical(self, message: str) -> None:
        """Writes why the server ends."""
        self.event("CRITICAL", message)

    def event(self, severity: str, message: str, *, logger: str = "marvec.launch", worker: str = "") -> None:
        """Writes one event.

        Args:
            severity: One of SEVERITIES.
            message: The text, line breaks allowed.
            logger: Who speaks.
            worker: The worker whose output this is, if it is one's.
        """
        time = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"severity": severity, "time": time, "logger": logger}
        if worker:
            event["worker"] = worker
        event["message"] = message
        self.relay(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))

    def relay(self, line: bytes) -> None:
        """Writes an event that is JSON already; TorchServe's own lines pass here unread unless a person reads along.

        Args:
            line: One JSON object, without its line break.
        """
        if not self._debug and line.startswith(b'{"severity":"DEBUG"'):
            return
        text = self._for_people(line) if self._human else line
        rest = text + b"\n"
        with self._lock:
            # A signal may cut a long write short.
            while rest:
                try:
                    rest = rest[os.write(self._descriptor, rest) :]
                except OSError:
                    # The reader is gone (a closed terminal or pipe); the server need not die with it.
                    return

    def _for_people(self, line: bytes) -> bytes:
        try:
            event = json.loads(line)
            time = datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).astimezone()
            return f"{time:%H:%M:%S} {event['severity']:<8} {event['message']}".encode("utf-8", "replace")
        except (ValueError, KeyError, TypeError, AttributeError):
            return line
