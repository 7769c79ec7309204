"""A progress bar for work on large files that reports nothing itself: it watches the file grow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

_LARGE_BYTES = 200_000_000
_INTERVAL_S = 0.2


@contextmanager
def watched(what: str, path: Path, total_bytes: int) -> Iterator[None]:
    """Show how much of a file, or of the files below a folder, is written while the block runs.

    Nothing is shown for small files, or where stderr is no terminal.

    Args:
        what: Stands before the bar.
        path: The file or folder; need not exist yet.
        total_bytes: Size when complete.
    """
    console = Console(stderr=True)
    if total_bytes < _LARGE_BYTES or not console.is_terminal:
        yield
        return
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    done = threading.Event()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total_bytes)

        def follow() -> None:
            while not done.wait(_INTERVAL_S):
                progress.update(task, completed=min(total_bytes, _size(path)))

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def _size(path: Path) -> int:
    try:
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        return sum(file.stat().st_size for file in files)
    except OSError:  # a file that went away between being listed and being measured
        return 0
