"""Settings of sentence-transformers directories beyond pooling: followed, or refused by name, never overlooked."""

from __future__ import annotations

import pytest

from archiver.errors import PackError
from marvec.errors import ModelDirError
from tests.models.tiny import TinyModels
from tests.parity import texts
from tests.parity.conftest import Odd, SidesMaker
from tests.parity.edits import edit
from tests.parity.sides import require_parity

SETTINGS = "sentence_bert_config.json"
SOME = ("", "a", *texts.ORDINARY, "hello " * 300)


@pytest.mark.parametrize(
    "settings",
    [
        {"transformer_task": "feature-extraction", "modality_config": {"text": {
            "method": "forward", "method_output_name": "last_hidden_state"}}, "module_output_name": "token_embeddings"},
        {"model_args": {"attn_implementation": "eager"}, "tokenizer_args": {"padding_side": "left"}},
        {"model_kwargs": {}, "processing_kwargs": {}, "unpad_inputs": False},
        {"max_seq_length": 1},
        {"max_seq_length": 2},
        {"max_seq_length": 3},
    ],
)  # fmt: skip
def test_what_is_followed(settings: dict[str, object], odd: Odd) -> None:
    model = odd("bert", edit(SETTINGS, **settings))

    if settings.get("max_seq_length") == 1:  # too short even for the special tokens: the oracle cannot do it
        assert len(model.ours.token_ids("a rose")) == 1
    else:
        require_parity(model, SOME)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"transformer_task": "fill-mask"},
            "transformer_task is 'fill-mask'; only feature-extraction gives embeddings",
        ),
        (
            {"modality_config": {"text": {}, "message": {}}},
            "modality_config asks for more than plain texts, which Marvec does not support",
        ),
        ({"tokenizer_args": {"model_max_length": 20}}, "tokenizer_args (model_max_length) is not supported"),
        ({"processor_kwargs": {"add_special_tokens": False}}, "processor_kwargs (add_special_tokens) is not supported"),
        ({"processing_kwargs": {"text": {"max_length": 20}}}, "processing_kwargs (text) is not supported"),
        ({"config_kwargs": {"is_causal": False}}, "config_kwargs (is_causal) is not supported"),
        ({"model_kwargs": [1]}, "model_kwargs (not an object) is not supported"),
    ],
)
def test_what_would_change_the_vectors_is_refused(
    settings: dict[str, object], why: str, tiny_models: TinyModels, sides: SidesMaker
) -> None:
    directory = sides.changed(tiny_models("bert", pooling="mean"), edit(SETTINGS, **settings))

    with pytest.raises(ModelDirError) as caught:
        sides(directory)
    assert str(caught.value) == f"{directory / SETTINGS}: {why}"


def test_a_chat_template_is_for_chats(odd: Odd) -> None:
    """Decoders' tokenizers bring one; a sentence-transformers directory of texts does not use it."""
    template = "{% for message in messages %}a {{ message['content'] }}{% endfor %}"

    require_parity(odd("bert", edit("tokenizer_config.json", chat_template=template)), SOME)


def test_truncation_on_the_left_is_refused(tiny_models: TinyModels, sides: SidesMaker) -> None:
    directory = sides.changed(
        tiny_models("bert", pooling="mean"), edit("tokenizer_config.json", truncation_side="left")
    )

    with pytest.raises(PackError) as caught:
        sides(directory)
    assert str(caught.value) == (
        f"{directory / 'tokenizer_config.json'}: truncation_side is 'left'; Marvec cuts the end of a long text only"
    )


def test_fewer_dimensions_by_the_directory(odd: Odd) -> None:
    require_parity(odd("bert", edit("config_sentence_transformers.json", truncate_dim=8)), SOME)
