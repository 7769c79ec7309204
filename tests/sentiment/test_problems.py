"""What outputs mean: one label of several, each label for itself, a number; and which labels they have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from archiver.errors import PackError
from marvec.errors import SettingsError
from tests.sentiment.asked import Asked
from tests.sentiment.oracle import MOST_DIFFERENCE, Oracle, require_equal

Make = Callable[..., Path]
Ask = Callable[..., Asked]
TEXTS = ("a rose", "the farm is small", "grow in japan", "")


def logits(directory: Path, texts: tuple[str, ...]) -> list[list[float]]:
    model = AutoModelForSequenceClassification.from_pretrained(directory, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    with torch.inference_mode():
        return [model(**tokenizer(text, return_tensors="pt")).logits[0].tolist() for text in texts]


def test_each_label_for_itself(classifier_dirs: Make, asked: Ask) -> None:
    directory = classifier_dirs("bert", ("rude", "spam", "urgent"), "multi_label_classification")
    ours = asked(directory)
    require_equal(ours.scores(TEXTS), Oracle(directory).scores(TEXTS))
    assert any(abs(sum(one.values()) - 1) > 0.1 for one in ours.scores(TEXTS))
    assert ours.notes[1] == "each label is right or not, scores are sigmoids: problem_type in config.json"
    over = ours.predictions(TEXTS, threshold=0.5)
    assert [{item["label"] for item in one} for one in over] == [  # type: ignore[attr-defined]
        {label for label, score in one.items() if score >= 0.5} for one in ours.scores(TEXTS)
    ]


def test_one_output_without_a_word_is_a_sigmoid_as_in_the_pipeline(classifier_dirs: Make, asked: Ask) -> None:
    directory = classifier_dirs("bert", ("relevant",))
    ours = asked(directory)
    require_equal(ours.scores(TEXTS), Oracle(directory).scores(TEXTS))
    assert ours.notes[1] == (
        "each label is right or not, scores are sigmoids: the default, since config.json has no problem_type (change "
        "it with --problem-type)"
    )


def test_a_regression_is_a_number(classifier_dirs: Make, asked: Ask) -> None:
    directory = classifier_dirs("roberta", ("LABEL_0",), "regression")
    numbers = asked(directory).predictions(TEXTS)
    for number, (expected,) in zip(numbers, logits(directory, TEXTS), strict=True):
        assert isinstance(number, float)
        assert abs(number - expected) <= MOST_DIFFERENCE * max(1, abs(expected))


def test_a_regression_of_several_outputs_is_a_list(classifier_dirs: Make, asked: Ask) -> None:
    directory = classifier_dirs("bert")
    ours = asked(directory, problem_type="regression")
    assert ours.notes[1] == "a regression, answers are numbers: from --problem-type"
    for numbers, expected in zip(ours.predictions(TEXTS), logits(directory, TEXTS), strict=True):
        assert numbers == pytest.approx(expected, abs=1e-4)


def test_a_regression_has_no_label_to_answer_with(classifier_dirs: Make, asked: Ask) -> None:
    directory = classifier_dirs("roberta", ("LABEL_0",), "regression")
    with pytest.raises(SettingsError) as caught:
        asked(directory, output="label")
    assert str(caught.value) == "model.output: a regression's answer is a number, which has no label"


def test_labels_of_index_to_name_json(classifier_dirs: Make, asked: Ask, tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(classifier_dirs("bert"), directory)
    (directory / "index_to_name.json").write_text(json.dumps({"0": "schlecht", "1": "mittel", "2": "gut"}))
    ours = asked(directory, output="label")
    (expected,) = asked(classifier_dirs("bert")).predictions(["a rose"], output="label")
    translated = {"Negative": "schlecht", "Neutral": "mittel", "Positive": "gut"}
    assert ours.predictions(["a rose"]) == [translated[str(expected)]]
    (directory / "index_to_name.json").write_text(json.dumps({"0": "schlecht", "2": "gut"}))
    with pytest.raises(PackError) as caught:
        asked(directory)
    assert str(caught.value) == (
        f"{directory / 'index_to_name.json'}: no label for 1; expected are the indexes 0 to 2, each with its label"
    )


def test_a_model_that_looks_at_padding_is_refused(classifier_dirs: Make) -> None:
    from archiver.options import PackOptions
    from archiver.pack import pack

    directory = classifier_dirs("xlnet")
    store = directory.parent / "store"
    with pytest.raises(PackError) as caught:
        pack(PackOptions(str(directory), model_store=store), lambda line: None)
    assert str(caught.value) == (
        f"{directory}: its answer to a text changes beside a longer one, since it looks at the padding: such models "
        "cannot be served in batches"
    )
    assert not list(store.glob("*"))


def test_an_embedding_model_has_no_head(tiny_models: Callable[..., Path], asked: Ask) -> None:
    directory = tiny_models("bert")
    with pytest.raises(PackError) as caught:
        asked(directory, handler="classification")
    assert str(caught.value) == (
        f"{directory / 'model.safetensors'}: does not match {directory / 'config.json'}: tensors missing: "
        "classifier.bias, classifier.weight"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": ("cls",)}, "--pooling: is for embedding only; {} is packed for classification"),
        ({"prompts": {"q": "x"}}, "--prompt: is for embedding only; {} is packed for classification"),
        ({"normalize": False}, "--normalize: is for embedding only; {} is packed for classification"),
        ({"openai_token_ids": True}, "--openai-token-ids: is for embedding only; {} is packed for classification"),
        (
            {"handler": "embedding", "output": "label"},
            "--output: is for classification only; {} is packed for embedding",
        ),
        ({"handler": "embedding", "pairs": False}, "--pairs: is for classification only; {} is packed for embedding"),
    ],
)
def test_options_of_the_other_task(options: dict[str, object], message: str, classifier_dirs: Make, asked: Ask) -> None:
    directory = classifier_dirs("bert")
    with pytest.raises(PackError) as caught:
        asked(directory, **options)
    assert str(caught.value) == message.format(directory)
