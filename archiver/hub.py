"""The files of a hub repository that an archive needs, fetched into the hub's own cache and pinned to a commit.

HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and the cache folder are honoured: huggingface_hub does the talking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, constants, hf_hub_download, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from archiver.errors import PackError

_MAIN = "main"
_SAFETENSORS = re.compile(r"model(-\d+-of-\d+)?\.safetensors(\.index\.json)?")
_BIN = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin(\.index\.json)?")
_SETTINGS = re.compile(r".+\.(json|txt|model|codes)|README\.md|LICEN[CS]E.*")
_ANCHORS = ("config.json", "modules.json")  # one of them lies at the root of every model


class _Unreachable(Exception):
    """The hub gives no answer; the cache may still have the files."""


def fetch(
    repo: str, revision: str | None, check_settings: Callable[[Path], object], tell: Callable[[str], None]
) -> Path:
    """Fetch what an archive needs of a repository.

    Args:
        repo: Such as intfloat/multilingual-e5-small.
        revision: Branch, tag or commit; None for main.
        check_settings: Called with the snapshot before the weights are fetched; what it raises goes up.
        tell: Takes a line for the user.

    Returns:
        The snapshot's folder in the cache, named by its commit.

    Raises:
        PackError: When the repository, the revision or the hub cannot be reached; the message says what would help.
    """
    wanted = revision or _MAIN
    try:
        with _explained(repo, wanted):
            settings, weights = _select(repo, wanted)
    except _Unreachable as err:
        snapshot = _cached(repo, wanted, str(err))
        tell(f"{err}; taking commit {snapshot.name[:12]} from the cache")
        return snapshot
    snapshot = _download(repo, wanted, settings)
    check_settings(snapshot)
    return _download(repo, snapshot.name, weights) if weights else snapshot  # of the same commit


def _select(repo: str, revision: str) -> tuple[list[str], list[str]]:
    """Choose the files to fetch: (settings, weights)."""
    names = [item.rfilename for item in HfApi().model_info(repo, revision=revision).siblings or []]
    if "adapter_config.json" in names:
        raise PackError(
            f"{repo}: adapter_config.json: an adapter, not a whole model; merge it into its base model first"
        )
    if not set(_ANCHORS) & set(names):
        raise PackError(f"{repo}: has neither config.json nor modules.json: not a transformers model")
    folders = [""]
    if "modules.json" in names:
        file = Path(hf_hub_download(repo, "modules.json", revision=revision))
        folders += _module_folders(file)
    settings, weights = [], []
    for folder in dict.fromkeys(folders):
        prefix = f"{folder}/" if folder else ""
        inside = [name[len(prefix) :] for name in names if name.startswith(prefix)]
        kind = _SAFETENSORS if any(_SAFETENSORS.fullmatch(name) for name in inside) else _BIN
        weights += [prefix + name for name in inside if kind.fullmatch(name)]
        settings += [
            prefix + name
            for name in inside
            if "/" not in name and _SETTINGS.fullmatch(name) and not name.endswith(".index.json")
        ]
    return settings, weights


def _module_folders(file: Path) -> Iterable[str]:
    """The folders that modules.json names; whether it makes sense is checked when the whole directory is read."""
    try:
        modules = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as err:
        raise PackError(f"{file}: cannot be read as JSON: {err}") from err
    entries = modules if isinstance(modules, list) else []
    return [str(entry["path"]).rstrip("/") for entry in entries if isinstance(entry, dict) and entry.get("path")]


def _download(repo: str, revision: str, names: list[str]) -> Path:
    """Fetch files into the cache; after the hub has answered once, half of a model from the cache is no way out."""
    patterns = [re.sub(r"([*?\[])", r"[\1]", name) for name in names]
    try:
        with _explained(repo, revision):
            return Path(snapshot_download(repo, revision=revision, allow_patterns=patterns))
    except _Unreachable as err:
        raise PackError(f"{repo}: {err} any more; run again, what is fetched already is kept") from err


def _cached(repo: str, revision: str, reason: str) -> Path:
    """The snapshot that an earlier run left in the cache."""
    for anchor in _ANCHORS:
        found = try_to_load_from_cache(repo, anchor, revision=revision)
        if isinstance(found, str):
            return Path(found).parent
    raise PackError(f"{reason}, and revision {revision!r} of {repo} is not in the cache {constants.HF_HUB_CACHE}")


@contextmanager
def _explained(repo: str, revision: str) -> Iterator[None]:
    """Turn what huggingface_hub raises into a sentence that says what would help."""
    hub = constants.ENDPOINT
    try:
        yield
    except GatedRepoError as err:
        raise PackError(f"{repo}: gated on {hub}; ask for access on its page there, then set HF_TOKEN") from err
    except RepositoryNotFoundError as err:
        raise PackError(
            f"{repo}: neither a directory here nor a model on {hub} (a private one needs HF_TOKEN)"
        ) from err
    except RevisionNotFoundError as err:
        raise PackError(f"--revision: {repo} has no revision {revision!r} on {hub}") from err
    except HFValidationError as err:
        raise PackError(f"{repo}: no such directory, and not a hub id: {err}") from err
    except OfflineModeIsEnabled as err:
        raise _Unreachable("HF_HUB_OFFLINE is set") from err
    except HfHubHTTPError as err:
        raise PackError(f"{repo}: {hub} answered {err.response.status_code}; try again later") from err
    except LocalEntryNotFoundError as err:
        raise _Unreachable(f"{hub} cannot be reached") from err
    except Exception as err:
        # The HTTP client differs between releases of huggingface_hub; all call their errors by these names.
        if type(err).__name__ in (
            "ConnectError",
            "ConnectTimeout",
            "ReadTimeout",
            "ReadError",
            "ConnectionError",
            "ProxyError",
        ):
            raise _Unreachable(f"{hub} cannot be reached") from err
        raise
