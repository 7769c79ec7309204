"""model/tokenizer.json: the tokenizer as transformers sees it, which is what sentence-transformers feeds its models.

A directory's own tokenizer.json can say less than transformers makes of it (a slow tokenizer has none at all,
tokenizer_config.json adds tokens), so it is loaded once at pack time and saved as the one file that a worker reads.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from archiver.errors import PackError, first_line
from archiver.model_dir import ModelDir
from marvec.settings import ClassificationSettings

_SOURCES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.tiktoken")
_PROBES = (
    "",
    "The quick brown fox's 12,345 jumps   over\tthe lazy dog.",
    "query: 食べられる薔薇を育てている農家は日本に数件しかありません。",
    "Größe, café, naïve, Ελλάδα, Россия, العربية, हिन्दी 😀 <s> [SEP]",
)


def write(model: ModelDir, target: Path) -> int | None:
    """Settle the tokenizer and write it.

    Args:
        model: Where its files are, and whether texts are lower-cased first.
        target: The tokenizer.json to write; truncation and padding are switched off in it.

    Returns:
        The id of the padding token, if the tokenizer has one.

    Raises:
        PackError: When there is no tokenizer, no fast form of it, or it does not fit the model.
    """
    loaded = _load(model.transformer)
    backend = getattr(loaded, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise PackError(
            f"{model.transformer}: {type(loaded).__name__} has no fast form (tokenizers library), which Marvec needs"
        )
    if loaded.truncation_side != "right":
        file = model.transformer / "tokenizer_config.json"
        raise PackError(
            f"{file}: truncation_side is {loaded.truncation_side!r}; Marvec cuts the end of a long text only"
        )
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    paired = itertools.pairwise(_PROBES[1:]) if model.task == ClassificationSettings.task else ()
    _require_same_ids(model.transformer, loaded, tokenizer, [*((text,) for text in _PROBES), *paired])
    if model.lowercase:
        tokenizer = _lowercasing(tokenizer)
    _require_fit(model, tokenizer)
    tokenizer.save(str(target), pretty=False)
    pad_id = loaded.pad_token_id
    return pad_id if isinstance(pad_id, int) else None


def _load(folder: Path) -> PreTrainedTokenizerBase:
    if not any(next(folder.glob(pattern), None) for pattern in _SOURCES):
        raise PackError(f"{folder}: no tokenizer: expected one of {', '.join(_SOURCES)}")
    try:
        # Offline, and never the model's own code.
        loaded = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as err:  # tokenizers raises bare Exception, sentencepiece RuntimeError, transformers several
        raise PackError(f"{folder}: transformers cannot load the tokenizer: {first_line(err)}") from err
    return cast(PreTrainedTokenizerBase, loaded)


def _require_same_ids(
    folder: Path, loaded: PreTrainedTokenizerBase, tokenizer: Tokenizer, probes: Sequence[tuple[str, ...]]
) -> None:
    """The saved file alone must give what transformers gives with all its wrapping."""
    for texts in probes:
        first, second = texts[0], texts[1] if len(texts) > 1 else None
        try:
            expected, given = list(loaded(first, second)["input_ids"]), tokenizer.encode(first, second).ids
        except Exception as err:  # a tokenizer_config.json can be wrong in ways that raise anything
            raise PackError(f"{folder}: the tokenizer fails on a text: {first_line(err)}") from err
        if expected != given:
            raise PackError(
                f"{folder}: {type(loaded).__name__} does more than a tokenizer.json can hold: "
                f"transformers gives {len(expected)} tokens for a probe text, the file {len(given)} or others"
            )


def _lowercasing(tokenizer: Tokenizer) -> Tokenizer:
    """Put a Lowercase before the normalizer, unless there is one, as sentence-transformers does for do_lower_case."""
    content = json.loads(tokenizer.to_str())
    normalizer = content["normalizer"]
    steps = [] if normalizer is None else normalizer.get("normalizers", [normalizer])
    if any(step["type"] == "Lowercase" for step in steps):
        return tokenizer
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *steps]}
    return Tokenizer.from_str(json.dumps(content))


def _require_fit(model: ModelDir, tokenizer: Tokenizer) -> None:
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    if max(ids, default=-1) >= model.vocab_size:
        raise PackError(
            f"{model.transformer}: the tokenizer has ids up to {max(ids)}, "
            f"but config.json's vocab_size is {model.vocab_size}: they do not belong together"
        )
    special = tokenizer.num_special_tokens_to_add(is_pair=False)
    if len(ids) <= special:
        raise PackError(f"{model.transformer}: the tokenizer's vocabulary is empty")
