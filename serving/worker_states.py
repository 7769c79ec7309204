"""What each worker is doing, kept from the lines that TorchServe's worker threads log.

The management API knows less: it does not tell a busy worker from an idle one, nor one that will be restarted from one
that TorchServe has given up ("UNLOADING" both, for ever). The lines are in log4j2.xml's "@worker" form.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

LOADED = "WORKER_MODEL_LOADED"
STOPPED = "WORKER_STOPPED"
# TorchServe says "Retry worker" in the same breath as it stops one that it will restart; after this it never will.
GIVE_UP_AFTER_S = 3.0
LOADS_BEFORE_READY = 3
# A worker's last words may arrive after the news of its end.
LAST_WORDS_S = 1.0
ERRORS_KEPT = 20
# What TorchServe wraps around the error that counts.
WRAPPERS = ("RuntimeError: 500 - ", "RuntimeError: 507 - ", "ModuleNotFoundError: No module named 'ts.torch_handler.")

_THREAD = re.compile(r"W-\d+-(?P<model>.+)")
_STATE = re.compile(r".* State change \S+ -> (?P<state>\w+)")
_COMMAND = re.compile(r"Flushing req\S* (?P<command>\w+)")


@dataclass
class Worker:
    """One worker slot: it keeps its name when its process is replaced.

    Attributes:
        name: TorchServe's thread name, "W-9000-minilm_1.0".
        model: The part after the port, "minilm_1.0".
        state: TorchServe's word for it.
        stops: Times it stopped since it was last loaded.
        stopped_at: When it last stopped, None while it runs.
        retrying: TorchServe has said that it will start it again.
        busy_since: When it was handed the batch that it has not answered yet.
        replied_at: When it last answered a batch or a describe call.
        command: What the frontend last sent it: LOAD, PREDICT or DESCRIBE.
        errors: First lines of the exceptions that it printed since its last start, the latest 20.
        last_errors: Those of the start before.
    """

    name: str
    model: str
    state: str = ""
    stops: int = 0
    stopped_at: float | None = None
    retrying: bool = False
    busy_since: float | None = None
    replied_at: float | None = None
    command: str = ""
    errors: list[str] = field(default_factory=list)
    last_errors: list[str] = field(default_factory=list)

    def reason(self) -> str:
        """The exception to name when this worker failed: the last that is not TorchServe's wrapping."""
        errors = self.last_errors + self.errors
        own = [error for error in errors if not error.startswith(WRAPPERS)]
        return (own or errors or ["its process died without a word (killed, or out of memory?)"])[-1]


class WorkerStates:
    """All workers of one server; written by the log's reader, read by everyone else.

    Args:
        clock: Seconds that only grow; a test gives its own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without any worker."""
        self._clock = clock
        self._lock = threading.Lock()
        self._workers: dict[str, Worker] = {}
        self._was_loaded: set[str] = set()

    def note(self, thread: str, message: str) -> None:
        """Takes in one line of a worker's thread.

        Args:
            thread: The thread's name.
            message: What it logged.
        """
        found = _THREAD.fullmatch(thread)
        if found is None:
            return
        with self._lock:
            worker = self._workers.setdefault(thread, Worker(thread, found.group("model")))
            now = self._clock()
            command, state = _COMMAND.match(message), _STATE.match(message)
            if command:
                worker.command = command.group("command")
                worker.busy_since = now
            elif message.startswith("Backend response time"):
                if worker.command != "LOAD":
                    worker.replied_at = now
                worker.busy_since = None
            elif message.startswith("Retry worker"):
                worker.retrying = True
                worker.last_errors, worker.errors = worker.errors, []
            elif state:
                self._change(worker, state.group("state"), now)

    def note_error(self, thread: str, error: str) -> None:
        """Keeps the first line of an exception that a worker printed.

        Args:
            thread: The worker's thread name.
            error: "ValueError: ...".
        """
        found = _THREAD.fullmatch(thread)
        if found:
            with self._lock:
                worker = self._workers.setdefault(thread, Worker(thread, found.group("model")))
                worker.errors = [*worker.errors[1 - ERRORS_KEPT :], error]

    def failure(self) -> str | None:
        """Says which worker cannot be hoped for any more, and why.

        Before a model was ever loaded, three failed loads in a row are enough: what fails three times fails for ever,
        and TorchServe would go on for minutes. Later only TorchServe's own giving up counts: a killed worker heals.

        Returns:
            One line, or None while all is well or healing.
        """
        with self._lock:
            for worker in self._workers.values():
                if worker.stopped_at is None:
                    continue
                ago_s = self._clock() - worker.stopped_at
                if worker.model not in self._was_loaded and worker.stops >= LOADS_BEFORE_READY and ago_s > LAST_WORDS_S:
                    return f"model {worker.model} failed to load {worker.stops} times: {worker.reason()}"
                if not worker.retrying and ago_s > GIVE_UP_AFTER_S:
                    return f"TorchServe gave up worker {worker.name}: {worker.reason()}"
        return None

    def anyone_busy(self) -> bool:
        """Whether some worker has a batch that it has not answered."""
        with self._lock:
            return any(worker.busy_since is not None for worker in self._workers.values())

    def progress(self) -> dict[str, dict[str, float | None]]:
        """For each loaded worker's model, how fresh its latest answer and its youngest unanswered batch are.

        Returns:
            Model to `replied_s` (seconds since an answer) and `busy_s` (age of the youngest batch in work), None for
            none.
        """
        with self._lock:
            now = self._clock()
            models: dict[str, dict[str, float | None]] = {}
            for model in {worker.model for worker in self._workers.values()}:
                loaded = [one for one in self._workers.values() if one.model == model and one.state == LOADED]
                replied = [now - one.replied_at for one in loaded if one.replied_at is not None]
                busy = [now - one.busy_since for one in loaded if one.busy_since is not None]
                models[model] = {"replied_s": min(replied, default=None), "busy_s": min(busy, default=None)}
            return models

    def _change(self, worker: Worker, state: str, now: float) -> None:
        worker.state = state
        if state == LOADED:
            worker.stops = 0
            worker.errors, worker.last_errors = [], []
            self._was_loaded.add(worker.model)
        if state == STOPPED:
            worker.stops += 1
            worker.busy_since = None
            worker.replied_at = None
            worker.retrying = False
            worker.stopped_at = now
        else:
            worker.stopped_at = None
