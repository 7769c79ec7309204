"""Long-running operations: each one's work runs in a thread of its own, and really takes its time.

An operation's name lies below what it works on, and a list holds those directly below its parent alone. Whether
Google's list of a location holds those of its models and endpoints too is unverified, so a caller must not rely on it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread

from google.longrunning import operations_pb2
from google.protobuf.message import Message
from proto import Message as SdkMessage

from tests.cloud.standin.errors import ApiError, Code, invalid, not_found, precondition
from tests.cloud.standin.messages import now, plain
from tests.cloud.standin.names import Project, parse
from tests.cloud.standin.trouble import Trouble

LONGEST_WAIT_S = 30.0
_NAME = re.compile(r"projects/[^/]+/locations/[^/]+((?:/[a-zA-Z]+/[^/]+)?)/operations/(\d+)")
_FILTER = re.compile(r"\s*done\s*[=:]\s*\"?(true|false)\"?\s*", re.IGNORECASE)


@dataclass
class Operation:
    """One operation.

    Attributes:
        name: With the project's number.
        method: What began it.
        target: What it works on: a model's or an endpoint's name.
        metadata: A message of the SDK with `generic_metadata`.
        response: Once it is done; None when it failed.
        error: Why it failed.
        done: Set at the end.
        cancelled: Set when somebody wants it to end.
    """

    name: str
    method: str
    target: str
    metadata: SdkMessage
    response: SdkMessage | None = None
    error: ApiError | None = None
    done: Event = field(default_factory=Event)
    cancelled: Event = field(default_factory=Event)

    def message(self) -> operations_pb2.Operation:
        """Return it as the API answers it."""
        message = operations_pb2.Operation(name=self.name, done=self.done.is_set())
        message.metadata.Pack(plain(self.metadata))
        if not message.done:
            return message
        if self.error is not None:
            message.error.code, message.error.message = self.error.code.number, self.error.message
        else:
            message.response.Pack(plain(self.response))
        return message


class Operations:
    """All operations.

    Args:
        project: The one that there is.
        trouble: Whether the next one is to fail.
    """

    def __init__(self, project: Project, trouble: Trouble) -> None:
        self._project = project
        self._trouble = trouble
        self._numbers = itertools.count(1_000_000_001)
        self._all: dict[str, Operation] = {}
        self._threads: list[Thread] = []

    def begin(
        self,
        method: str,
        below: str,
        metadata: SdkMessage,
        work: Callable[[Operation], Message],
        *,
        target: str = "",
        delay_s: float = 0.0,
        undo: Callable[[], None] = lambda: None,
    ) -> operations_pb2.Operation:
        """Begin an operation.

        Args:
            method: What was called.
            below: What its name lies below.
            metadata: The right type of metadata, empty.
            work: Does it and returns the response; raises ApiError when it fails.
            target: What it works on; `below` when empty.
            delay_s: How long it takes before the work begins.
            undo: Called when the work is not done or fails.
        """
        operation = Operation(f"{below}/operations/{next(self._numbers)}", method, target or below, metadata)
        metadata.generic_metadata.create_time = now()
        metadata.generic_metadata.update_time = now()
        wanted = self._trouble.of_operation()

        def run() -> None:
            operation.cancelled.wait(delay_s)
            try:
                if operation.cancelled.is_set():
                    raise ApiError(Code.CANCELLED, "Operation was cancelled.")
                if wanted is not None:
                    raise wanted
                operation.response = work(operation)
            except ApiError as err:
                undo()
                operation.error = err
            except Exception as err:
                undo()
                operation.error = ApiError(Code.INTERNAL, f"the stand-in failed: {err!r}")
            metadata.generic_metadata.update_time = now()
            operation.done.set()

        self._all[operation.name] = operation
        thread = Thread(target=run, name=operation.name, daemon=True)
        self._threads.append(thread)
        begun = operation.message()
        thread.start()
        return begun

    def running_on(self, target: str) -> list[str]:
        """Return the names of operations that work on something and are not done."""
        return [one.name for one in list(self._all.values()) if one.target == target and not one.done.is_set()]

    def get_operation(self, request: SdkMessage) -> operations_pb2.Operation:
        """Return an operation."""
        return self._find(request.name).message()

    def list_operations(self, request: SdkMessage) -> operations_pb2.ListOperationsResponse:
        """Return the operations directly below a parent, newest first."""
        wanted = _FILTER.fullmatch(request.filter) if request.filter.strip() else None
        if request.filter.strip() and wanted is None:
            raise invalid(f"Invalid filter {request.filter!r}: the stand-in knows done=true and done=false")
        kind = request.name.split("/")[4:5]
        parent = parse(request.name, kind[0] if kind else "", self._project)
        found = [
            one.message()
            for one in reversed(list(self._all.values()))
            if re.fullmatch(re.escape(f"{parent}/operations/") + r"\d+", one.name)
        ]
        if wanted:
            found = [one for one in found if one.done == (wanted[1].lower() == "true")]
        if request.page_size:
            found = found[: request.page_size]
        return operations_pb2.ListOperationsResponse(operations=found)

    def wait_operation(self, request: SdkMessage) -> operations_pb2.Operation:
        """Wait until an operation is done, or for so long as the caller or a server's patience allows."""
        operation = self._find(request.name)
        timeout_s = request.timeout.seconds + request.timeout.nanos / 1e9 if request.HasField("timeout") else 1e9
        operation.done.wait(min(timeout_s, LONGEST_WAIT_S))
        return operation.message()

    def cancel_operation(self, request: SdkMessage) -> None:
        """Let an operation end; one that is done stays as it is."""
        self._find(request.name).cancelled.set()

    def delete_operation(self, request: SdkMessage) -> None:
        """Forget an operation that is done."""
        operation = self._find(request.name)
        if not operation.done.is_set():
            raise precondition(f"The operation {operation.name} is not done: cancel it first.")
        del self._all[operation.name]

    def stop(self) -> None:
        """End everything that still runs."""
        for operation in list(self._all.values()):
            operation.cancelled.set()
        for thread in self._threads:
            thread.join(60)

    def clear(self) -> None:
        """End everything, and forget it."""
        self.stop()
        self._all.clear()
        self._threads.clear()

    def _find(self, name: str) -> Operation:
        found = _NAME.fullmatch(name)
        if not found:
            raise invalid(f"Invalid operation name {name!r}")
        location = "/".join(name.split("/")[:4])
        operation = self._all.get(f"{parse(location, '', self._project)}{found[1]}/operations/{found[2]}")
        if operation is None:
            raise not_found(f"Operation {name}")
        return operation
