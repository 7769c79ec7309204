"""What may be asked of `marvec pack`, and the names it makes."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.errors import PackError
from archiver.options import PackOptions, parse_pooling, parse_prompts

LETTERS = "allowed are letters, digits, '_', '-' and '.', a letter or digit first"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": ""}, "MODEL: expected a directory or a hub id, got an empty string"),
        ({"name": "größe"}, f"--name: TorchServe does not take 'größe'; {LETTERS}"),
        ({"name": "a/b"}, f"--name: TorchServe does not take 'a/b'; {LETTERS}"),
        ({"name": ".hidden"}, f"--name: TorchServe does not take '.hidden'; {LETTERS}"),
        ({"name": ""}, f"--name: TorchServe does not take ''; {LETTERS}"),
        ({"name": "e5\n"}, f"--name: TorchServe does not take 'e5\\n'; {LETTERS}"),
        ({"version": "1/2"}, f"--version: '1/2' cannot stand in a URL; {LETTERS}"),
        (
            {"pooling": ("median",)},
            "--pooling: unknown mode 'median'; known: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken",
        ),
        ({"dtype": "int4"}, "--dtype: expected one of float32, bfloat16, float16, int8, auto, got 'int4'"),
        ({"target": "tpu"}, "--target: expected one of cpu, gpu, any, got 'tpu'"),
        ({"target": ""}, "--target: expected one of cpu, gpu, any, got ''"),
        (
            {"dtype": "float16", "target": "cpu"},
            "--dtype: float16 is for GPUs only; use --target gpu, or auto with --target cpu",
        ),
        (
            {"dtype": "float16", "target": "any"},
            "--dtype: float16 is for GPUs only; use --target gpu, or auto with --target any",
        ),
        ({"batch_size": 0}, "--batch-size: expected a whole number of at least 1, got 0"),
        ({"workers": -1}, "--workers: expected a whole number of at least 1, got -1"),
        ({"max_length": 0}, "--max-length: expected a whole number of at least 1, got 0"),
        ({"max_request_tokens": 0}, "--max-request-tokens: expected a whole number of at least 1, got 0"),
    ],
)
def test_an_option_out_of_range_is_named_with_what_is_allowed(values: dict[str, Any], message: str) -> None:
    with pytest.raises(PackError) as refusal:
        PackOptions(**({"model": "m"} | values))

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("dtype", "target", "settled"),
    [
        ("float32", None, "cpu"),
        ("bfloat16", None, "cpu"),
        ("auto", None, "cpu"),
        ("float16", None, "gpu"),
        ("float16", "gpu", "gpu"),
        ("float32", "gpu", "gpu"),
        ("auto", "any", "any"),
    ],
)
def test_the_target_that_is_not_asked_for_follows_the_dtype(dtype: str, target: str | None, settled: str) -> None:
    assert PackOptions(model="m", dtype=dtype, target=target).settled_target == settled


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("intfloat/multilingual-e5-small", "multilingual-e5-small"),
        ("BAAI/bge-small-en-v1.5", "bge-small-en-v1.5"),
        ("my model (best)", "my-model-best"),
        ("_private", "private"),
        ("日本語-model", "model"),
    ],
)
def test_a_name_is_made_of_the_ids_last_part(model_id: str, name: str) -> None:
    assert PackOptions(model=model_id).archive_name(model_id) == name


def test_a_name_asked_for_is_taken_as_it_is() -> None:
    assert PackOptions(model="m", name="E5_x.y-z").archive_name("org/other") == "E5_x.y-z"


def test_an_id_without_a_legal_letter_needs_a_name() -> None:
    with pytest.raises(PackError) as refusal:
        PackOptions(model="日本語").archive_name("日本語")

    assert str(refusal.value) == "日本語: no archive name can be made of this; give one with --name"


def test_prompts_keep_their_spaces_and_later_equals_signs() -> None:
    assert parse_prompts(["query=query: ", "code=a = b", "none="]) == {"query": "query: ", "code": "a = b", "none": ""}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["query"], "--prompt: expected name=text, such as 'query=query: ', got 'query'"),
        (["=text"], "--prompt: expected name=text, such as 'query=query: ', got '=text'"),
        (["q=a", "q=b"], "--prompt: 'q' is given twice"),
    ],
)
def test_a_prompt_that_cannot_be_read(pairs: list[str], message: str) -> None:
    with pytest.raises(PackError) as refusal:
        parse_prompts(pairs)

    assert str(refusal.value) == message


def test_poolings_are_read_in_order() -> None:
    assert parse_pooling("cls, mean") == ("cls", "mean")
    assert parse_pooling(None) == ()
