"""Fetches the archives that AIP_STORAGE_URI names, as Vertex AI sets it from a model's artifact_uri, before a boot."""

from __future__ import annotations

import errno
import queue
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from serving.archives import requested_files
from serving.cloud_storage import RemoteArchive, StorageFolder, crc32c
from serving.errors import FetchError, Interrupted

T = TypeVar("T")

VARIABLE = "AIP_STORAGE_URI"
# One stream is slower than the network of most machines; more than these would only hold memory.
STREAMS = 8
PART_BYTES = 8 << 20
PROGRESS_S = 5.0
STOP_LOOK_S = 0.1


class Fetch:
    """One fetching, from a bucket into a folder.

    Args:
        folder: Where the archives go; made by this.
        tell: Takes a line for the log.
        stop: Whether a signal came.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None], stop: Callable[[], bool]) -> None:
        self._folder = folder
        self._tell = tell
        self._stop = stop

    def archives(self, uri: str, requests: Sequence[str]) -> Path:
        """Brings the archives of a folder here.

        Args:
            uri: `gs://BUCKET/FOLDER`, or the absolute path of a mounted folder, which is read where it lies.
            requests: Which ones, as `find_archives` takes them; none means all.

        Returns:
            A model store.

        Raises:
            FetchError: They cannot be had; one line that says why.
            Interrupted: A signal came.
        """
        if uri.startswith("/"):
            if not Path(uri).is_dir():
                raise FetchError(f"{VARIABLE}={uri[:200]!r}: there is no such folder: mount it there")
            return Path(uri)
        if not uri.startswith("gs://"):
            raise FetchError(f"{VARIABLE}={uri[:200]!r}: expected gs://BUCKET/FOLDER or an absolute path")
        source, present = self._without_delay(lambda: _look(uri))
        chosen = _choose(uri, present, requested_files(requests))
        self._folder.mkdir()
        self._require_room(uri, sum(one.size_bytes for one in chosen))
        for archive in chosen:
            self._fetch(source, archive)
        return self._folder

    def _without_delay(self, work: Callable[[], T]) -> T:
        """Waits for the network in another thread, a daemon: a signal must not wait for it."""
        done: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

        def run() -> None:
            try:
                done.put(work())
            except Exception as err:  # raised again by the main thread
                done.put(err)

        threading.Thread(target=run, name="fetch", daemon=True).start()
        return self._next(done)

    def _next(self, done: queue.SimpleQueue[T | Exception]) -> T:
        while not self._stop():
            try:
                result = done.get(timeout=STOP_LOOK_S)
            except queue.Empty:
                continue
            if isinstance(result, Exception):
                raise result
            return result
        raise Interrupted

    def _require_room(self, uri: str, size_bytes: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < 2 * size_bytes:
            raise FetchError(
                f"{uri} needs {2 * size_bytes / 1e9:.2f} GB below {self._folder.parent.parent}, half to fetch and half "
                f"to unpack, and {free / 1e9:.2f} GB are free: set TMPDIR to a larger place"
            )

    def _fetch(self, source: StorageFolder, archive: RemoteArchive) -> None:
        started = time.monotonic()
        self._tell(f"fetching {archive.name}, {archive.size_bytes / 1e6:,.0f} MB, from {source.uri}")
        target = self._folder / archive.name
        target.touch()
        try:
            self._receive(source, archive, target)
        except OSError as err:
            if err.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise FetchError(f"no room for {archive.name} below TMPDIR: set TMPDIR to a larger place") from err
        if crc32c(target) != archive.crc32c:
            raise FetchError(f"{source.uri}: {archive.name} arrived damaged (its CRC-32C is wrong): start again")
        elapsed_s = time.monotonic() - started
        speed = archive.size_bytes / 1e6 / max(elapsed_s, 1e-3)
        self._tell(f"fetched {archive.name} in {elapsed_s:.1f} s ({speed:,.0f} MB/s), its checksum is right")

    def _receive(self, source: StorageFolder, archive: RemoteArchive, target: Path) -> None:
        """Several streams read parts side by side."""
        starts: queue.SimpleQueue[int] = queue.SimpleQueue()
        arrived: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
        ended = threading.Event()
        for start in range(0, archive.size_bytes, PART_BYTES):
            starts.put(start)

        def stream() -> None:
            try:
                with target.open("r+b") as file:
                    while not ended.is_set():
                        start = starts.get_nowait()
                        data = source.read(archive, start, min(start + PART_BYTES, archive.size_bytes))
                        file.seek(start)
                        file.write(data)
                        file.flush()
                        arrived.put(len(data))
            except queue.Empty:
                return
            except Exception as err:  # raised again by the main thread
                arrived.put(err)

        for _ in range(min(STREAMS, starts.qsize())):
            threading.Thread(target=stream, name="fetch", daemon=True).start()
        try:
            self._follow(archive, arrived)
        finally:
            ended.set()

    def _follow(self, archive: RemoteArchive, arrived: queue.SimpleQueue[int | Exception]) -> None:
        done, told = 0, time.monotonic()
        while done < archive.size_bytes:
            done += self._next(arrived)
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                self._tell(f"fetched {done / 1e6:,.0f} of {archive.size_bytes / 1e6:,.0f} MB of {archive.name}")


def _look(uri: str) -> tuple[StorageFolder, list[RemoteArchive]]:
    source = StorageFolder(uri)
    return source, source.archives()


def _choose(uri: str, present: Sequence[RemoteArchive], wanted: Sequence[str]) -> list[RemoteArchive]:
    names = ", ".join(one.name for one in present)
    if not present:
        raise FetchError(f"{uri} holds no .mar: copy one there, directly into that folder")
    missing = [name for name in wanted if name not in {one.name for one in present}]
    if missing:
        raise FetchError(f"{uri} holds no {missing[0]} (it holds {names}): copy it there, or name another")
    chosen = [one for one in present if one.name in wanted or not wanted]
    requested_files([one.name for one in chosen])  # a name that cannot be served is refused before it is fetched
    return chosen
