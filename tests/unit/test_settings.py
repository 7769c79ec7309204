"""model-config.yaml's `handler:` section: what is read, what is refused and in which words."""

from __future__ import annotations

import pytest

from marvec.errors import SettingsError
from marvec.settings import EmbeddingModel, EmbeddingSettings, EngineSettings, LimitSettings, read_settings

MODEL = {
    "id": "org/name",
    "revision": None,
    "max_length": 8,
    "dimension": 4,
    "pooling": ["mean"],
    "normalize": True,
}


def test_defaults_fill_in_what_is_not_said() -> None:
    settings = read_settings({"model": MODEL})
    assert settings.model == EmbeddingModel("org/name", None, 8, 4, ("mean",), True)
    assert settings.engine == EngineSettings("transformers", "float32", None)
    assert settings.limits == LimitSettings(2048, 300_000, 64_000_000, False)


def test_what_is_written_is_what_is_read() -> None:
    settings = EmbeddingSettings(
        EmbeddingModel("a", "f" * 40, 5, 3, ("cls", "max"), False, 2, ("2_Dense",), {"q": "query: "}, "q"),
        EngineSettings("transformers", "bfloat16", 512),
        LimitSettings(1, 2, 3000, True),
    )
    assert read_settings(settings.to_mapping()) == settings


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (None, "handler: expected a mapping, got None"),
        ({}, "handler.model: missing; pack the model again with `marvec pack`"),
        ({"model": []}, "model: expected a mapping, got []"),
        ({"model": MODEL, "limit": {}}, "handler.limit: unknown key; known keys: task, model, engine, limits"),
        ({"model": {"id": "a"}}, "model.revision: missing; pack the model again with `marvec pack`"),
        ({"model": {**MODEL, "id": ""}}, "model.id: expected a non-empty string, got ''"),
        ({"model": {**MODEL, "dimension": True}}, "model.dimension: expected a whole number of at least 1, got True"),
        ({"model": {**MODEL, "default_dimension": 5}}, "model.default_dimension: 5 is over 4"),
        ({"model": {**MODEL, "max_length": 0}}, "model.max_length: expected a whole number of at least 1, got 0"),
        ({"model": {**MODEL, "pooling": "mean"}}, "model.pooling: expected a list of strings, got 'mean'"),
        (
            {"model": {**MODEL, "pooling": []}},
            "model.pooling: expected at least one of cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, "
            "got none",
        ),
        (
            {"model": {**MODEL, "pooling": ["average"]}},
            "model.pooling: expected one of cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, "
            "got 'average'",
        ),
        ({"model": {**MODEL, "normalize": "yes"}}, "model.normalize: expected true or false, got 'yes'"),
        ({"model": {**MODEL, "prompts": {"q": 1}}}, "model.prompts.q: expected a string, got 1"),
        (
            {"model": {**MODEL, "default_prompt": "q"}},
            "model.default_prompt: 'q' is not a prompt; prompts: none",
        ),
        (
            {"model": MODEL, "engine": {"encoder": "onnx"}},
            "engine.encoder: expected one of openvino, transformers, torchscript, got 'onnx'",
        ),
        (
            {"model": MODEL, "engine": {"dtype": "int4"}},
            "engine.dtype: expected one of float32, bfloat16, float16, int8, auto, got 'int4'",
        ),
        (
            {"model": MODEL, "limits": {"max_instances": 0}},
            "limits.max_instances: expected a whole number of at least 1, got 0",
        ),
        (
            {"model": MODEL, "limits": {"max_response_bytes": 67_108_865}},
            "limits.max_response_bytes: at most 67108864, TorchServe's max_response_size, got 67108865",
        ),
    ],
)
def test_each_fault_is_named_with_key_value_and_what_is_allowed(mapping: object, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(mapping)
    assert str(caught.value) == message
