"""The log of the calls that came, for tests to assert on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

CHANGES_NOTHING = ("Get", "List", "Wait", "Predict", "RawPredict", "StreamRawPredict")


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        method: Such as UploadModel.
        body: The request as JSON, in the API's own camelCase; a raw prediction's endpoint alone.
        wire: `grpc` or `rest`.
        outcome: `OK`, the name of a Code, or `CUT`.
    """

    method: str
    body: Mapping[str, Any]
    wire: str
    outcome: str

    @property
    def changes(self) -> bool:
        """Whether it asked for a change of models, endpoints or jobs."""
        return not self.method.startswith(CHANGES_NOTHING)


class CallLog:
    """All calls since the start or the last `clear`, in the order in which they were answered."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._lock = Lock()

    def add(self, call: Call) -> None:
        """Note a call."""
        with self._lock:
            self._calls.append(call)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._calls.clear()

    def all(self) -> list[Call]:
        """Return every call."""
        with self._lock:
            return list(self._calls)

    def of(self, *methods: str) -> list[Call]:
        """Return the calls of some methods."""
        return [call for call in self.all() if call.method in methods]

    def changes(self) -> list[Call]:
        """Return the calls that asked for a change: none for a command that only reads."""
        return [call for call in self.all() if call.changes]

    def changed(self) -> list[str]:
        """Return the methods of `changes`."""
        return [call.method for call in self.changes()]
