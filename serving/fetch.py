"""Fetches the archives that AIP_STORAGE_URI names, as Vertex AI sets it from a model's artifact_uri, before a boot."""

from __future__ import annotations

import errno
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from serving.archives import requested_files
from serving.cloud_storage import RemoteArchive, StorageFolder, crc32c
from serving.errors import FetchError, Interrupted

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
            return Path(uri)
        if not uri.startswith("gs://"):
            raise FetchError(f"{VARIABLE}={uri[:200]!r}: expected gs://BUCKET/FOLDER or an absolute path")
        source = StorageFolder(uri)
        chosen = _choose(uri, source.archives(), requested_files(requests))
        self._folder.mkdir()
        self._require_room(uri, sum(one.size_bytes for one in chosen))
        for archive in chosen:
            self._fetch(source, archive)
        return self._folder

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
        with target.open("wb") as file:
            self._receive(source, archive, file.fileno())
        if crc32c(target) != archive.crc32c:
            raise FetchError(f"{source.uri}: {archive.name} arrived damaged (its CRC-32C is wrong): start again")
        elapsed_s = time.monotonic() - started
        speed = archive.size_bytes / 1e6 / max(elapsed_s, 1e-3)
        self._tell(f"fetched {archive.name} in {elapsed_s:.1f} s ({speed:,.0f} MB/s), its checksum is right")

    def _receive(self, source: StorageFolder, archive: RemoteArchive, descriptor: int) -> None:
        """Streams read parts side by side; they are daemons, since a signal must not wait for the network."""
        starts: queue.SimpleQueue[int] = queue.SimpleQueue()
        arrived: queue.SimpleQueue[int | Exception] = queue.SimpleQueue()
        for start in range(0, archive.size_bytes, PART_BYTES):
            starts.put(start)

        def stream() -> None:
            try:
                while True:
                    start = starts.get_nowait()
                    data = source.read(archive, start, min(start + PART_BYTES, archive.size_bytes))
                    _write(descriptor, data, start)
                    arrived.put(len(data))
            except queue.Empty:
                return
            except Exception as err:  # told by the main thread
                arrived.put(err)

        for _ in range(min(STREAMS, starts.qsize())):
            threading.Thread(target=stream, name="fetch", daemon=True).start()
        self._follow(archive, arrived)

    def _follow(self, archive: RemoteArchive, arrived: queue.SimpleQueue[int | Exception]) -> None:
        done, told = 0, time.monotonic()
        while done < archive.size_bytes:
            if self._stop():
                raise Interrupted
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                self._tell(f"fetched {done / 1e6:,.0f} of {archive.size_bytes / 1e6:,.0f} MB of {archive.name}")
            try:
                part = arrived.get(timeout=STOP_LOOK_S)
            except queue.Empty:
                continue
            if isinstance(part, OSError) and part.errno in (errno.ENOSPC, errno.EDQUOT):
                raise FetchError(f"no room for {archive.name} below TMPDIR: set TMPDIR to a larger place") from part
            if isinstance(part, Exception):
                raise part
            done += part


def _choose(uri: str, present: Sequence[RemoteArchive], wanted: Sequence[str]) -> list[RemoteArchive]:
    names = ", ".join(one.name for one in present)
    if not present:
        raise FetchError(f"{uri} holds no .mar: copy one there, directly into that folder")
    missing = [name for name in wanted if name not in {one.name for one in present}]
    if missing:
        raise FetchError(f"{uri} holds no {missing[0]} (it holds {names}): copy it there, or name another")
    return [one for one in present if one.name in wanted or not wanted]


def _write(descriptor: int, data: bytes, start: int) -> None:
    rest = memoryview(data)
    while rest:
        count = os.pwrite(descriptor, rest, start)
        start, rest = start + count, rest[count:]
