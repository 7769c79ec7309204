"""Where the model's files are: a directory here, or a snapshot of a hub repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from archiver.errors import PackError

_HUB_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_.\-]+)?", re.ASCII)


@dataclass(frozen=True)
class Source:
    """A model's files and where they came from.

    Attributes:
        folder: The files; never written to.
        id: Hub id, or the directory's name.
        revision: Commit on the hub; None for a directory.
    """

    folder: Path
    id: str
    revision: str | None


def find(
    model: str, revision: str | None, check_settings: Callable[[Path], object], tell: Callable[[str], None]
) -> Source:
    """Find a model: a directory if there is one of that name, else on the hub.

    Args:
        model: Directory or hub id.
        revision: Branch, tag or commit; for the hub only.
        check_settings: Called with a hub snapshot that has all files but the weights, so that what cannot be packed
            is refused before gigabytes are fetched.
        tell: Takes a line for the user.

    Raises:
        PackError: When there is no such model or it cannot be fetched.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise PackError(f"--revision: {model} is a directory, which has none; leave the option out")
        return Source(folder.resolve(), folder.resolve().name, None)
    if folder.exists():
        raise PackError(f"{model}: a file; expected a model directory or a hub id")
    if not _HUB_ID.fullmatch(model):
        raise PackError(f"{model}: no such directory, and not a hub id such as intfloat/multilingual-e5-small")
    from archiver import hub  # huggingface_hub takes a while to import, and directories do not need it

    snapshot = hub.fetch(model, revision, check_settings, tell)
    return Source(snapshot, model, snapshot.name)
