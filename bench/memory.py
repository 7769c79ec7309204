"""Memory of a server with all its processes: idle after loading, and the most under load.

PSS is counted: a page that several processes share belongs to each of them in part, so the sum is what the machine
gives away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from bench.connection import LoadError
from bench.corpora import Corpus
from bench.display import Display
from bench.drive import Window, drive
from bench.entry import Entry
from bench.load import Load
from bench.result import Memory
from bench.server import Server, ServerError

SETTLE_S = 2.0
INTERVAL_S = 0.5


class MemoryWatch:
    """Samples a server's memory for as long as a `with` block.

    Args:
        server: Whose.
        interval_s: Between two samples.

    Attributes:
        seconds: When each sample was taken, from the beginning of the block.
        pss_bytes: The samples.
    """

    def __init__(self, server: Server, interval_s: float) -> None:
        self.seconds: list[float] = []
        self.pss_bytes: list[int] = []
        self._server = server
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._started_s = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.pss_bytes.append(self._server.pss_bytes())
            self.seconds.append(time.perf_counter() - self._started_s)
            if self._over.wait(self._interval_s):
                return


def memory(
    entries: Sequence[Entry], corpus: Corpus, loads: Sequence[Load], window: Window, folder: Path, display: Display
) -> list[Memory]:
    """Start each system alone, look, put it under each load, and look all the time; what fails is said and left out.

    Args:
        entries: Who is looked at.
        corpus: What is sent.
        loads: How it is sent.
        window: How long each load is.
        folder: For logs.
        display: Where progress is shown.
    """
    display.expect(len(entries))
    found = []
    for entry in entries:
        name, model = entry.system.name, entry.prepared.model
        try:
            with entry.server(folder / f"{name}-memory.log") as server:
                time.sleep(SETTLE_S)
                idle_bytes = server.pss_bytes()
                with MemoryWatch(server, INTERVAL_S) as watch:
                    for load in [load.shrunk(model.shrink) for load in loads]:
                        drive(server.port, entry.requests(corpus, load), load, entry.least_bytes(load), window)
                found.append(Memory(model.name, name, idle_bytes, max(watch.pss_bytes)))
        except (ServerError, LoadError) as err:
            display.say(f"{entry.system.title}: {err}")
        display.advance(f"{name} memory")
    return found
