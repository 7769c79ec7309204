"""The archives that the contract is tested on: two packed by `marvec pack`'s own road, two changed afterwards."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import yaml
from safetensors.torch import load, save

from archiver.options import PackOptions
from tests.models.tiny import TinyModels

PROMPTS = {"query": "query: ", "passage": "passage: ", "Clustering": "cluster: "}
BATCH_SIZE = 8
STRICT_LIMITS = {
    "max_instances": 3,
    "max_request_tokens": 100,
    "max_response_bytes": 1500,
    "openai_token_ids": True,
}
STRICT_BATCH_SIZE = 128
BATCH_DELAY_MS = 100
POISON = "japan"  # the word whose embedding is NaN; no golden text has it
BOOM = "kaboom"  # a token that the tokenizer knows and the encoder does not
Change = Callable[[bytes], bytes]


def build_all(store: Path, models: TinyModels, minilm: Path) -> None:
    """Fill a model store.

    tiny: a seeded BERT of 32 numbers and 64 tokens, with prompts, and no bound on instances that a test could meet.
    strict: the same with low limits, token ids allowed on OpenAI's path, and many requests a batch.
    poisoned: as tiny, but packed for PyTorch, one word gives NaN, and another makes the encoder raise.
    strict and poisoned wait longer for company: within the usual 1 ms a busy TorchServe may not fill a batch.
    minilm: the demo model.
    """
    folder = models("bert", pooling="mean", normalize=True, prompts=PROMPTS)
    tiny = build(store, "tiny", folder, batch_size=BATCH_SIZE, max_instances=200_000)
    build(store, "minilm", minilm)
    change(tiny, store / "strict.mar", {"model-config.yaml": _tighten})
    sound = build(store.parent / "sound", "sound", folder, batch_size=BATCH_SIZE, target="gpu")
    broken = {"model/model.safetensors": _poison, "model/tokenizer.json": _add_boom}
    change(sound, store / "poisoned.mar", {"model-config.yaml": _wait_long, **broken})


def build(
    store: Path,
    name: str,
    model: Path,
    *,
    batch_size: int = 16,
    max_instances: int | None = None,
    target: str | None = None,
) -> Path:
    """Pack a model for one worker, so that requests meet in its batches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # torch-model-archiver leaves its version.txt open
        from archiver.pack import pack
    options = PackOptions(
        model=str(model),
        name=name,
        model_store=store,
        target=target,
        workers=1,
        batch_size=batch_size,
        max_instances=max_instances,
    )
    return pack(options, lambda line: None).file


def change(source: Path, target: Path, changes: Mapping[str, Change]) -> None:
    """Copy an archive under another name with some of its files changed."""
    changes = {"MAR-INF/MANIFEST.json": lambda content: _renamed(content, target.stem), **changes}
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        left = set(changes) - set(old.namelist())
        if left:
            raise KeyError(f"{source} has no {', '.join(sorted(left))}")
        for entry in old.namelist():
            content = old.read(entry)
            new.writestr(entry, changes[entry](content) if entry in changes else content)


def _renamed(content: bytes, name: str) -> bytes:
    manifest = json.loads(content)
    manifest["model"]["modelName"] = name
    return json.dumps(manifest).encode()


def _tighten(content: bytes) -> bytes:
    config = yaml.safe_load(content)
    config["handler"]["limits"] = STRICT_LIMITS
    return _dumped({**config, "batchSize": STRICT_BATCH_SIZE, "maxBatchDelay": BATCH_DELAY_MS})


def _wait_long(content: bytes) -> bytes:
    return _dumped({**yaml.safe_load(content), "maxBatchDelay": BATCH_DELAY_MS})


def _dumped(config: Mapping[str, object]) -> bytes:
    return yaml.safe_dump(config, sort_keys=False).encode()


def _poison(content: bytes) -> bytes:
    weights = load(content)
    weights["embeddings.word_embeddings.weight"][_poisoned_id()] = torch.nan
    return save(weights, {"format": "pt"})


def _poisoned_id() -> int:
    from tests.models.tokenizers import BERT, wordpiece

    return wordpiece(BERT).get_vocab()[POISON]


def _add_boom(content: bytes) -> bytes:
    tokenizer = json.loads(content)
    beyond = max(tokenizer["model"]["vocab"].values()) + 1
    flags = {"single_word": True, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    tokenizer["added_tokens"].append({"id": beyond, "content": BOOM, **flags})
    return json.dumps(tokenizer, ensure_ascii=False).encode()
