"""Model directories: plain, sentence-transformers, old and new forms of the same file, and damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver import model_dir
from marvec.errors import ModelDirError

CONFIG = {"model_type": "bert", "hidden_size": 8, "vocab_size": 10, "max_position_embeddings": 64}
MODULES = [
    {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes JSON files, named by path, into one directory and gives the directory."""

    def _write(files: dict[str, object]) -> Path:
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return tmp_path

    return _write


def test_plain_directory_says_nothing_of_pooling(write: Write) -> None:
    found = model_dir.read(write({"config.json": {**CONFIG, "architectures": ["BertModel"]}}))
    assert (found.model_type, found.architectures, found.hidden_size, found.vocab_size) == (
        "bert",
        ("BertModel",),
        8,
        10,
    )
    assert (found.pooling, found.dense, found.normalize, found.sentence_transformers) == ((), (), False, False)
    assert (found.max_length, found.position_limit) == (64, 64)


def test_sentence_transformers_directory_is_followed(write: Write) -> None:
    root = write(
        {
            "modules.json": [
                {"path": "0_Transformer", "type": "sentence_transformers.base.modules.transformer.Transformer"},
                MODULES[1],
                {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
                {"path": "3_Normalize", "type": "sentence_transformers.models.Normalize"},
            ],
            "0_Transformer/config.json": CONFIG,
            "0_Transformer/sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": True},
            "1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
            "config_sentence_transformers.json": {
                "prompts": {"query": "q: "},
                "default_prompt_name": "query",
                "truncate_dim": 6,
            },
        }
    )
    found = model_dir.read(root)
    assert found.transformer == root / "0_Transformer"
    assert (found.pooling, found.dense, found.normalize) == (("cls",), ("2_Dense",), True)
    assert (found.max_length, found.position_limit, found.lowercase) == (32, 64, True)
    assert (found.prompts, found.default_prompt, found.truncate_dim) == ({"query": "q: "}, "query", 6)


@pytest.mark.parametrize(
    ("pooling", "modes"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, ("max", "mean")),
        ({"pooling_mode": "lasttoken"}, ("lasttoken",)),
        ({"pooling_mode": ["cls", "mean"]}, ("cls", "mean")),
        ({"word_embedding_dimension": 8}, ("mean",)),
    ],
)
def test_old_and_new_pooling_files(write: Write, pooling: object, modes: tuple[str, ...]) -> None:
    root = write({"modules.json": MODULES, "config.json": CONFIG, "1_Pooling/config.json": pooling})
    assert model_dir.read(root).pooling == modes


@pytest.mark.parametrize(
    ("config", "sentence", "tokenizer", "length"),
    [
        ({}, {"max_seq_length": 16}, {"model_max_length": 32}, 16),
        ({}, {"max_seq_length": 4000}, {}, 64),
        ({}, {"max_seq_length": None}, {"model_max_length": 32}, 32),
        ({}, {}, {"model_max_length": 1e30}, 64),
        ({"max_position_embeddings": None}, {}, {"model_max_length": 1000000000000000019884624838656}, 512),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}, {}, {}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514}, {"max_seq_length": 514}, {}, 512),
        ({"model_type": "mpnet", "max_position_embeddings": 514}, {}, {}, 512),
    ],
)
def test_the_smallest_known_limit_is_the_length(
    write: Write, config: dict[str, object], sentence: object, tokenizer: object, length: int
) -> None:
    files = {"sentence_bert_config.json": sentence, "tokenizer_config.json": tokenizer}
    assert model_dir.read(write({"config.json": {**CONFIG, **config}, **files})).max_length == length


@pytest.mark.parametrize(
    ("files", "file", "reason"),
    [
        ({}, "config.json", "no such file; a model directory holds config.json, a tokenizer and weights"),
        ({"config.json": "{"}, "config.json", "cannot be read as JSON: Expecting property name enclosed in double"),
        ({"config.json": []}, "config.json", "expected a JSON object"),
        ({"config.json": {**CONFIG, "model_type": 1}}, "config.json", "model_type is missing"),
        ({"config.json": {"model_type": "bert"}}, "config.json", "no hidden size (hidden_size, dim, d_model, n_embd)"),
        ({"config.json": {**CONFIG, "vocab_size": 0}}, "config.json", "vocab_size should be a positive whole number"),
        (
            {"config.json": {**CONFIG, "model_type": "own", "auto_map": {}}},
            "config.json",
            "auto_map asks for the model's own Python code",
        ),
        (
            {"config.json": CONFIG, "modules.json": [{"type": "x.Transformer", "path": "../other"}]},
            "modules.json",
            "path '../other' leads out of the model directory",
        ),
        (
            {"config.json": CONFIG, "sentence_bert_config.json": {"max_seq_length": "32"}},
            "",
            "max_seq_length should be a whole number, is '32'",
        ),
        ({"config.json": "[" * 100_000}, "config.json", "cannot be read as JSON: maximum recursion depth exceeded"),
        ({"config.json": CONFIG, "modules.json": MODULES[:1]}, "modules.json", "names no Pooling module"),
        (
            {"config.json": CONFIG, "modules.json": [{"type": "x.CLIPModel", "path": ""}]},
            "modules.json",
            "module x.CLIPModel at this place is not supported; supported: Transformer, Pooling, then Dense layers",
        ),
        (
            {"config.json": CONFIG, "modules.json": MODULES},
            "1_Pooling/config.json",
            "no such file; modules.json names a Pooling module there",
        ),
        (
            {"config.json": CONFIG, "modules.json": MODULES, "1_Pooling/config.json": {"pooling_mode": "sum"}},
            "1_Pooling/config.json",
            "unknown pooling mode 'sum'; known: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken",
        ),
        (
            {"config.json": CONFIG, "modules.json": MODULES, "1_Pooling/config.json": {"include_prompt": False}},
            "1_Pooling/config.json",
            "include_prompt is false (INSTRUCTOR models)",
        ),
        (
            {"config.json": CONFIG, "config_sentence_transformers.json": {"prompts": ["q"]}},
            "config_sentence_transformers.json",
            "prompts is not an object of strings",
        ),
    ],
)
def test_a_refusal_names_file_and_reason(write: Write, files: dict[str, object], file: str, reason: str) -> None:
    root = write(files)
    with pytest.raises(ModelDirError) as caught:
        model_dir.read(root)
    assert str(caught.value).startswith(f"{root / file}: {reason}")


def test_code_of_an_architecture_that_transformers_holds_is_left_alone(write: Write) -> None:
    assert model_dir.read(write({"config.json": {**CONFIG, "auto_map": {"AutoModel": "m.M"}}})).model_type == "bert"


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelDirError, match="nowhere: no such directory"):
        model_dir.read(tmp_path / "nowhere")
