"""examples/sentiment from end to end: trained, packed, served and asked, as its README has it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.contract.endpoint import Endpoint
from tests.sentiment.conftest import ROOT
from tests.sentiment.oracle import Oracle, Scores, require_equal
from tests.server.running import Server

EXAMPLE = ROOT / "examples" / "sentiment"
TRAIN = [sys.executable, str(EXAMPLE / "train.py")]
LEAST_RIGHT = 0.9


def held_out(language: str) -> list[tuple[str, str]]:
    """Return texts with their labels."""
    lines = (EXAMPLE / "sentences" / f"held-out-{language}.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    return [(text, label) for label, text in pairs]


@pytest.fixture(scope="module")
def server(sentiment_dir: Path, multilingual_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store = tmp_path_factory.mktemp("example") / "store"
    marvec = str(Path(sys.executable).with_name("marvec"))
    for name, directory in (("sentiment", sentiment_dir), ("multilingual", multilingual_dir)):
        command = [marvec, "pack", str(directory), "--name", name, "--model-store", str(store)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "labels Negative, Positive, from the directory's index_to_name.json" in done.stderr
        assert re.search(r"^exported: largest difference to PyTorch \d\.\de-0[5-9] on \d+ inputs$", done.stderr, re.M)
    with Server(store, "sentiment", "multilingual") as running:
        yield running


@pytest.mark.parametrize("name", ["sentiment", "multilingual"])
def test_what_is_saved_is_an_ordinary_directory(name: str, sentiment_dir: Path, multilingual_dir: Path) -> None:
    directory = sentiment_dir if name == "sentiment" else multilingual_dir
    config = json.loads((directory / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "Negative", "1": "Positive"}
    assert json.loads((directory / "index_to_name.json").read_text()) == {"0": "Negative", "1": "Positive"}
    assert (directory / "tokenizer.json").is_file()
    told = (directory.parent / "told").read_text()
    assert re.search(rf"^saved {directory} after \d+ s$", told, re.M)


@pytest.mark.parametrize(("name", "language"), [("sentiment", "en"), ("multilingual", "en"), ("multilingual", "ja")])
def test_held_out_sentences_come_out_right(
    name: str, language: str, server: Server, sentiment_dir: Path, multilingual_dir: Path
) -> None:
    """Nine in ten and more, by the served model, whose scores are those of transformers' pipeline."""
    sentences = held_out(language)
    texts = [text for text, _ in sentences]
    endpoint = Endpoint(server, name, 16)
    given = endpoint.ask(*texts, output="label").predictions()
    right = sum(label == expected for label, (_, expected) in zip(given, sentences, strict=True))
    assert right >= LEAST_RIGHT * len(sentences)
    directory = sentiment_dir if name == "sentiment" else multilingual_dir
    told = (directory.parent / "told").read_text()
    assert f"held out, {language}: {right} of {len(sentences)} right" in told
    listed = endpoint.ask(*texts, scores="all").predictions()
    scores: list[Scores] = [
        {item["label"]: item["score"] for item in one}  # type: ignore[attr-defined]
        for one in listed
    ]
    require_equal(scores, Oracle(directory).scores(texts))


def test_the_readmes_requests(server: Server) -> None:
    """Each curl line and the answer below it, on this server's port."""
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"^    (curl (?:.*\\\n)*.*)\n    # (\{.*\})$", readme, re.M)
    assert len(found) == 3
    for command, expected in found:
        line = command.replace("http://127.0.0.1:7080", server.url).replace("\\\n", " ")
        answer = subprocess.run(shlex.split(line), capture_output=True, text=True, timeout=60, check=True).stdout
        assert answer == expected


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    saved = []
    for name in ("first", "second"):
        command = [*TRAIN, "--languages", "ja", "--epochs", "1", "--seed", "3", "--output", str(tmp_path / name)]
        subprocess.run(command, capture_output=True, check=True, timeout=300)
        saved.append(load_file(tmp_path / name / "model.safetensors"))
    first, second = saved
    assert first.keys() == second.keys()
    assert all((first[key] == second[key]).all() for key in first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--languages", "fr"], f"{EXAMPLE / 'sentences' / 'train-fr.tsv'}: no such file"),
        (["--model", "/nowhere"], "/nowhere: no model directory; it should hold config.json"),
        (["--epochs", "0"], "--epochs: expected at least 1, got 0"),
        (["--output", str(EXAMPLE)], f"{EXAMPLE}: is not an empty folder; name another one with --output"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    command = [*TRAIN, "--output", str(tmp_path / "model"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {message}\n")
