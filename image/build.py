"""`marvec image build`: the base where it is missing, then the model's image on top of it."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from image.engine import Engine
from image.errors import ImageError
from image.subject import Subject

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = "docker/Dockerfile"
BASE_DOCKERFILE = "docker/base.Dockerfile"
BASE_FILES = (BASE_DOCKERFILE, "docker/requirements/torch.txt", "docker/requirements/base-py311.txt")


@dataclass(frozen=True)
class Built:
    """An image that is here now.

    Attributes:
        tag: Its name.
        size_bytes: Its size, the layers that it shares with others included.
    """

    tag: str
    size_bytes: int


def require_checkout() -> None:
    """Make sure that the Dockerfiles are here.

    Raises:
        ImageError: When this is an installed package, and not a checkout of the repository.
    """
    if not (ROOT / DOCKERFILE).is_file():
        raise ImageError(f"{ROOT} has no {DOCKERFILE}: images are built from a checkout of the repository")


def build(
    engine: Engine,
    subject: Subject | None,
    tag: str,
    *,
    base_image: str | None,
    torch_index: str | None,
    fresh_base: bool,
    tell: Callable[[str], None],
) -> Built:
    """Build an image.

    Args:
        engine: What builds it.
        subject: The archive to put in; None for an image that fetches its models from AIP_STORAGE_URI.
        tag: The image's name.
        base_image: What to build on; None for the base that docker/base.Dockerfile makes, which is made if need be.
        torch_index: Where that base takes torch from; None for pip's own index.
        fresh_base: Make that base anew, though there is one.
        tell: Takes a line for the user.

    Raises:
        ImageError: When it cannot be built.
    """
    base = base_image or _base(engine, torch_index, tell, fresh=fresh_base)
    tell(f"building {tag} on {base}")
    arguments = {"BASE_IMAGE": base}
    if subject is not None:
        arguments |= {
            "ARCHIVE": subject.file,
            "MODEL_ID": subject.model_id,
            "MODEL_REVISION": subject.model_revision,
            "VERSION": subject.version,
            "GIT_COMMIT": _git_commit(),
        }
    target = [] if subject is not None else ["--target", "server"]
    engine.follow("build", *_arguments(DOCKERFILE, tag, arguments), *target, str(ROOT))
    return Built(tag, int(engine.ask("image", "inspect", "--format", "{{.Size}}", tag)))


def _base(engine: Engine, torch_index: str | None, tell: Callable[[str], None], *, fresh: bool) -> str:
    """Make the base once for each content of its files."""
    content = b"\0".join((ROOT / file).read_bytes() for file in BASE_FILES)
    digest = hashlib.sha256(content).hexdigest()[:12]
    tag = f"marvec-base:{digest}"
    if fresh or not engine.has_image(tag):
        tell(f"building the base {tag}: minutes, once")
        cache = ["--no-cache"] if fresh else []
        arguments = _arguments(BASE_DOCKERFILE, tag, {"TORCH_INDEX": torch_index or ""})
        engine.follow("build", *cache, *arguments, str(ROOT))
    return tag


def _arguments(dockerfile: str, tag: str, build_arguments: dict[str, str]) -> list[str]:
    listed = [f"{name}={value}" for name, value in build_arguments.items()]
    return ["--file", str(ROOT / dockerfile), "--tag", tag, *(part for one in listed for part in ("--build-arg", one))]


def _git_commit() -> str:
    """The commit that the image's code is of; empty outside a work tree."""
    try:
        commit = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
        return subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
