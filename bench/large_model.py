"""A model of multilingual-e5-large's size and shape, with random weights: its answers are noise, its cost is real.

560 million parameters in float32 are 2.2 GB. The tokenizer is that of the demo model e5, which has the same vocabulary.
"""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from pathlib import Path

from bench.cache import cache_folder, digest, made_once
from demo.models import fetch

TITLE = "multilingual-e5-large-random"
SEED = 0
SHAPE = {
    "vocab_size": 250002,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
# What makes e5's directory a sentence-transformers one; only the dimension of its pooling differs.
COPIED = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
POOLING = "1_Pooling/config.json"


def make() -> Path:
    """The model's folder, made on first use.

    Returns:
        A sentence-transformers directory; treat it as read-only.
    """
    e5 = fetch("e5")
    key = digest(inspect.getsource(sys.modules[__name__]), e5.parent.name)
    kept = made_once(cache_folder() / "models" / f"large-{key}", lambda folder: _write(folder / TITLE, e5))
    return kept / TITLE


def _write(folder: Path, e5: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(SEED)
    model = transformers.AutoModel.from_config(transformers.XLMRobertaConfig(**SHAPE))
    model.save_pretrained(folder)
    for name in COPIED:
        shutil.copy(e5 / name, folder / name)
    pooling = json.loads((e5 / POOLING).read_text(encoding="utf-8"))
    (folder / POOLING).parent.mkdir()
    changed = {**pooling, "word_embedding_dimension": SHAPE["hidden_size"]}
    (folder / POOLING).write_text(json.dumps(changed, indent=2) + "\n", encoding="utf-8")
