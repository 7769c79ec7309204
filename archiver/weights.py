"""model/*.safetensors: linked or copied as they are, or turned from pytorch_model.bin."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from archiver.errors import PackError
from archiver.progress import watched

NOT_PLAIN = "damaged, or more than a plain mapping of tensors: nothing else is unpickled, since it could run code"

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_BIN_SINGLE = "pytorch_model.bin"
_BIN_INDEX = "pytorch_model.bin.index.json"
_FIRST_ZIP_TIME_S = 315_619_200  # 1980-01-02: a zip file cannot say an earlier time


@dataclass(frozen=True)
class Weights:
    """The weights of a transformer, or of a Dense layer.

    Attributes:
        files: One, or the shards in the order of their names.
        index: Which tensor is in which shard; None for a single file.
    """

    files: tuple[Path, ...]
    index: Path | None = None

    @property
    def converted(self) -> bool:
        """Whether the files are pickles that become safetensors."""
        return self.files[0].suffix == ".bin"

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(file.stat().st_size for file in self.files)


def find(folder: Path) -> Weights:
    """Find the weights of a folder.

    Raises:
        PackError: When there are none, or a shard is missing.
    """
    found = look(folder)
    if found is None:
        raise PackError(f"{folder}: no weights: expected {_SINGLE}, {_INDEX}, {_BIN_SINGLE} or {_BIN_INDEX}")
    return found


def look(folder: Path) -> Weights | None:
    """The weights of a folder: safetensors if there are any, else a pytorch_model.bin; None where there is neither.

    Raises:
        PackError: When a shard is missing.
    """
    for single, index in ((_SINGLE, _INDEX), (_BIN_SINGLE, _BIN_INDEX)):
        if (folder / single).is_file():
            return Weights((folder / single,))
        if (folder / index).is_file():
            return Weights(_shards(folder / index), folder / index)
    return None


def place(weights: Weights, target: Path, unused: Collection[str]) -> None:
    """Put the weights into a folder as safetensors; the sources stay as they are.

    Args:
        weights: As `find` gives them.
        target: An existing folder.
        unused: Tensors that the model does not read; of several that share memory, those are left out.

    Raises:
        PackError: When a .bin is not a plain mapping of tensors.
    """
    renamed = {file.name: _safetensors_name(file.name) for file in weights.files}
    for file in weights.files:
        with watched(f"weights {file.name}", target / renamed[file.name], file.stat().st_size):
            if weights.converted:
                _convert(file, target / renamed[file.name], unused)
            else:
                link_or_copy(file, target / file.name)
    if weights.index is not None:
        index = json.loads(weights.index.read_text(encoding="utf-8"))
        index["weight_map"] = {key: renamed[name] for key, name in index["weight_map"].items()}
        (target / _INDEX).write_text(json.dumps(index), encoding="utf-8")


def drop(folder: Path) -> None:
    """Remove what `place` put into a folder."""
    for file in (*folder.glob("*.safetensors"), *folder.glob(_INDEX)):
        file.unlink()


def link_or_copy(file: Path, target: Path) -> None:
    """Give a file a second name without copying, where the file system allows it and a zip can hold its time."""
    source = file.resolve()  # the hub's cache holds symbolic links
    if source.stat().st_mtime >= _FIRST_ZIP_TIME_S:
        try:
            os.link(source, target)
        except OSError:  # another file system, or one without hard links
            pass
        else:
            return
    shutil.copyfile(source, target)


def _shards(index: Path) -> tuple[Path, ...]:
    try:
        names = sorted({str(name) for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise PackError(f"{index}: cannot be read as an index of shards: {err!r}") from err
    for name in names:
        if Path(name).name != name or not (index.parent / name).is_file():
            raise PackError(f"{index}: names the shard {name!r}, which is not there")
    if not names:
        raise PackError(f"{index}: names no shard")
    return tuple(index.parent / name for name in names)


def _safetensors_name(name: str) -> str:
    return name.replace("pytorch_model", "model").removesuffix(".bin").removesuffix(".safetensors") + ".safetensors"


def _convert(file: Path, target: Path, unused: Collection[str]) -> None:
    state = _read_pickle(file)
    try:
        save_file(_unshared(state, unused), target, metadata={"format": "pt"})
    except SafetensorError as err:
        if "No space left" in str(err):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target)) from err
        raise PackError(f"{file}: cannot be saved as safetensors: {err}") from err


def _read_pickle(file: Path) -> Mapping[str, Tensor]:
    """Unpickle tensors and nothing else, mapped from the file where its format allows that."""
    try:
        try:
            state = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # the format before torch 1.6 cannot be mapped
            state = torch.load(file, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as err:
        raise PackError(f"{file}: {NOT_PLAIN}") from err
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise PackError(f"{file}: {NOT_PLAIN}")
    return state


def _unshared(state: Mapping[str, Tensor], unused: Collection[str]) -> dict[str, Tensor]:
    """No two tensors may share memory in a safetensors file: drop what the model does not read, copy the rest."""
    owners: dict[int, list[str]] = defaultdict(list)
    for name, tensor in state.items():
        owners[tensor.untyped_storage().data_ptr()].append(name)
    result = {}
    for name, tensor in state.items():
        sharers = owners[tensor.untyped_storage().data_ptr()]
        if len(sharers) == 1:
            result[name] = tensor.contiguous()
        elif name not in unused or all(sharer in unused for sharer in sharers):
            result[name] = tensor.clone().contiguous()
    return result
