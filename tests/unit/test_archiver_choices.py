"""What is settled at pack time, from which source, and what the user is told of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from archiver import families
from archiver.choices import Choices, settle
from archiver.errors import PackError
from archiver.model_dir import ModelDir
from archiver.options import PackOptions
from archiver.source import Source
from marvec.settings import EmbeddingModel, LimitSettings

FOLDER = Path("model")
PLAIN = ModelDir(
    root=FOLDER,
    transformer=FOLDER,
    model_type="bert",
    architectures=("BertModel",),
    hidden_size=32,
    vocab_size=100,
    max_length=512,
    position_limit=512,
    pooling=(),
    dense=(),
    normalize=False,
    prompts={},
    default_prompt=None,
    truncate_dim=None,
    lowercase=False,
    sentence_transformers=False,
)
SENTENCE = replace(PLAIN, pooling=("cls",), normalize=True, sentence_transformers=True)
E5_PROMPTS = {
    "query": "query: ",
    "passage": "passage: ",
    "semantic_similarity": "query: ",
    "classification": "query: ",
    "clustering": "query: ",
}
SEARCH = "Represent this sentence for searching relevant passages: "


def choose(model: ModelDir, model_id: str = "org/model", **options: object) -> Choices:
    """Settle a model with some options."""
    return settle(model, Source(FOLDER, model_id, None), replace(PackOptions(model=model_id), **options))  # type: ignore[arg-type]


def vectors(choices: Choices) -> EmbeddingModel:
    """Return what was settled of the model's vectors."""
    assert isinstance(choices.settings.model, EmbeddingModel)
    return choices.settings.model


def test_a_plain_directory_gets_the_defaults_and_is_told_so() -> None:
    choices = choose(PLAIN)

    assert vectors(choices).pooling == ("mean",)
    assert vectors(choices).normalize is False
    assert choices.notes == (
        "pooling mean, the default: a plain directory does not say (change it with --pooling)",
        "vectors not normalized: a plain directory does not ask for it (change it with --normalize)",
    )


def test_a_sentence_transformers_directory_is_followed() -> None:
    choices = choose(SENTENCE)

    assert vectors(choices).pooling == ("cls",)
    assert vectors(choices).normalize is True
    assert choices.notes == ("pooling cls, from the directory's modules.json",)


def test_options_go_before_the_directory_which_is_said() -> None:
    choices = choose(SENTENCE, pooling=("mean",), normalize=False)

    assert vectors(choices).pooling == ("mean",)
    assert vectors(choices).normalize is False
    assert choices.notes == (
        "pooling mean, from --pooling, although the directory says cls",
        "vectors not normalized, from the command line",
    )


def test_several_poolings_and_dense_layers_give_the_dimension(tmp_path: Path) -> None:
    for name, sizes in (("2_Dense", (64, 48)), ("3_Dense", (48, 8))):
        (tmp_path / name).mkdir()
        content = json.dumps({"in_features": sizes[0], "out_features": sizes[1]})
        (tmp_path / name / "config.json").write_text(content)
    model = replace(SENTENCE, root=tmp_path, dense=("2_Dense", "3_Dense"), pooling=("cls", "mean"))

    assert vectors(choose(model)).dimension == 8
    assert vectors(choose(replace(model, dense=()))).dimension == 64
    with pytest.raises(PackError) as refusal:
        choose(replace(model, pooling=("cls",)))
    assert str(refusal.value) == (
        f"{tmp_path}/2_Dense/config.json: in_features is 64, but what comes before gives 32 numbers"
    )


def test_a_decoders_great_length_is_capped_unless_asked_for() -> None:
    model = replace(SENTENCE, max_length=32768, position_limit=32768)

    capped = choose(model)
    assert capped.settings.model.max_length == 8192
    assert capped.notes[0] == "at most 8192 tokens, though the model takes 32768 (see --max-length)"
    assert choose(model, max_length=32768).settings.model.max_length == 32768
    with pytest.raises(PackError) as refusal:
        choose(model, max_length=32769)
    assert str(refusal.value) == "--max-length: 32769 is more than the 32768 positions of the model"


def test_the_family_gives_prompts_where_the_directory_has_none() -> None:
    choices = choose(SENTENCE, "intfloat/multilingual-e5-small")

    assert vectors(choices).prompts == E5_PROMPTS
    assert choices.notes[-2:] == (
        "prompts query='query: ', passage='passage: ', as the e5 model card has them",
        "prompts semantic_similarity='query: ', classification='query: ', clustering='query: ', since the e5 model "
        "card puts the query prompt there",
    )


def test_empty_prompts_that_every_directory_has_say_nothing() -> None:
    model = replace(SENTENCE, prompts={"query": "", "document": ""})

    assert vectors(choose(model, "e5-base-v2")).prompts == E5_PROMPTS
    assert vectors(choose(model, "another")).prompts == {"query": "", "document": ""}


def test_the_directory_goes_before_the_family_and_the_option_before_both() -> None:
    model = replace(SENTENCE, prompts={"query": "Q: ", "document": ""})

    choices = choose(model, "intfloat/e5-small", prompts={"document": "D: "}, default_prompt="document")

    tasks = {"semantic_similarity": "Q: ", "classification": "Q: ", "clustering": "Q: "}
    assert vectors(choices).prompts == {"query": "Q: ", "document": "D: ", **tasks}
    assert vectors(choices).default_prompt == "document"
    assert choices.notes[1:] == (
        "prompts query='Q: ', document='', from the directory's config_sentence_transformers.json",
        "prompts semantic_similarity='Q: ', classification='Q: ', clustering='Q: ', since the e5 model card puts the "
        "query prompt there",
        "prompts document='D: ', from --prompt",
        "prompt 'document' stands before every text that names none",
    )


def test_the_directorys_default_prompt_can_be_taken_away() -> None:
    model = replace(SENTENCE, prompts={"query": "Q: "}, default_prompt="query")

    assert vectors(choose(model)).default_prompt == "query"
    assert vectors(choose(model, default_prompt="")).default_prompt is None


def test_an_unknown_default_prompt_names_those_there_are() -> None:
    with pytest.raises(PackError) as refusal:
        choose(SENTENCE, default_prompt="query")

    assert str(refusal.value) == "--default-prompt: 'query' is not a prompt; prompts: none"


def test_the_directorys_own_dimension_is_the_default() -> None:
    choices = choose(replace(SENTENCE, truncate_dim=8))

    assert (vectors(choices).dimension, vectors(choices).default_dimension) == (32, 8)
    assert choices.notes[-1] == "8 numbers a vector unless a request asks for more, as truncate_dim says"


def test_limits_and_batch_tokens_reach_the_settings() -> None:
    settings = choose(
        SENTENCE,
        max_instances=7,
        max_request_tokens=99,
        max_response_bytes=5000,
        openai_token_ids=True,
        max_batch_tokens=64,
        dtype="bfloat16",
    ).settings

    assert settings.limits == LimitSettings(7, 99, 5000, True)
    assert (settings.engine.max_batch_tokens, settings.engine.dtype) == (64, "bfloat16")


@pytest.mark.parametrize(
    ("model_id", "family", "query"),
    [
        ("intfloat/e5-large-v2", "e5", "query: "),
        ("Intfloat/Multilingual-E5-Base", "e5", "query: "),
        ("BAAI/bge-small-en-v1.5", "bge-en", SEARCH),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", "arctic-embed", SEARCH),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "arctic-embed-v2", "query: "),
        ("mixedbread-ai/mxbai-embed-large-v1", "mxbai-embed", SEARCH),
        ("nomic-ai/nomic-embed-text-v1.5", "nomic-embed", "search_query: "),
    ],
)
def test_families_are_known_by_their_ids(model_id: str, family: str, query: str) -> None:
    found = families.find(model_id)

    assert found is not None
    assert (found.name, found.prompts["query"]) == (family, query)


@pytest.mark.parametrize(
    "model_id",
    [
        "intfloat/multilingual-e5-large-instruct",
        "intfloat/e5-mistral-7b-instruct",
        "org/my-e5-small-finetune",
        "BAAI/bge-m3",
        "BAAI/bge-small-zh-v1.5",
        "BAAI/bge-reranker-base",
        "sentence-transformers/all-MiniLM-L6-v2",
    ],
)
def test_near_names_are_no_members_of_a_family(model_id: str) -> None:
    assert families.find(model_id) is None
