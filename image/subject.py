"""The archive that an image is made of: which one, and what of it goes into the image's labels."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from archiver.errors import first_line
from image.errors import ImageError
from serving.archives import MANIFEST, requested_files
from serving.errors import LaunchError


@dataclass(frozen=True)
class Subject:
    """One .mar of the model store.

    Attributes:
        file: Its name in the store.
        name: The model's name on the server.
        version: The model's version.
        model_id: Hub id, or name of the directory.
        model_revision: The commit on the hub; empty for a directory.
    """

    file: str
    name: str
    version: str
    model_id: str
    model_revision: str

    @property
    def tag(self) -> str:
        """The image's name unless another is asked for: what an engine does not take in a name becomes a hyphen."""
        name = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        version = re.sub(r"[^\w.-]+", "-", self.version, flags=re.ASCII).lstrip(".-")[:128]
        return f"{name or 'model'}:{version or 'latest'}"


def choose(store: Path, name: str | None) -> Subject:
    """Find the archive that is meant.

    Args:
        store: The model store.
        name: NAME, NAME.mar or the file's path; None for the only one there is.

    Raises:
        ImageError: When there is none, or several and none is named, or it is no archive.
    """
    present = sorted(path.name for path in store.glob("*.mar") if path.is_file())
    if name is not None:
        if Path(name).resolve().parent == store.resolve():
            name = Path(name).name  # model_store/minilm.mar, as a shell completes it
        if "=" in name:
            raise ImageError(f"{name}: expected NAME or NAME.mar; an image serves an archive under its own name")
        try:
            (file,) = requested_files([name])
        except LaunchError as err:
            raise ImageError(str(err)) from err
        if file not in present:
            raise ImageError(f"{store} holds no {file} (it holds {', '.join(present) or 'no .mar'}): pack it first")
        if (store / file).is_symlink():
            raise ImageError(f"{store / file} is a link, which builds do not follow: copy the archive itself there")
        return _read(store / file)
    if len(present) != 1:
        what = (
            f"several ({', '.join(present)}): name the one that is meant" if present else "no .mar: pack a model first"
        )
        raise ImageError(f"{store} holds {what}")
    return _read(store / present[0])


def _read(path: Path) -> Subject:
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))["model"]
            config = yaml.safe_load(archive.read(manifest["configFile"]))
        model = config["handler"]["model"]
        return Subject(
            file=path.name,
            name=str(manifest["modelName"]),
            version=str(manifest["modelVersion"]),
            model_id=str(model["id"]),
            model_revision=str(model.get("revision") or ""),
        )
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError, yaml.YAMLError) as err:
        raise ImageError(f"{path} is no archive of marvec ({first_line(err)}): pack it again") from err
