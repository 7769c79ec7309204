"""The JSON file: what is written can be read again, and nothing else can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.result import Result, ResultError
from tests.bench import made_up


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = made_up.result()
    result.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json") == result


def test_the_file_tells_its_schema_the_machine_and_every_sample(tmp_path: Path) -> None:
    made_up.result().write(tmp_path / "result.json")
    content = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert content["schema"] == 1
    assert content["machine"]["commit"] == "0123456789ab"
    assert content["samples"][0] == {
        "model": "tiny",
        "system": "marvec-float32",
        "corpus": "mixed",
        "cores": 2,
        "clients": 1,
        "texts": 1,
        "round": 0,
        "latencies_s": [0.01] * 10,
        "elapsed_s": 0.1,
        "client_cpu_s": 0.01,
        "problem": "",
    }
    assert len(content["samples"]) == 8


def test_another_schema_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text('{"schema": 2}')
    with pytest.raises(ResultError) as raised:
        Result.read(file)
    assert str(raised.value) == f"{file}: schema 2, this benchmark reads 1"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 1}', '{"schema": 1, "machine": {"cpu": "x"}}'])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "result.json"
    file.write_text(text)
    with pytest.raises(ResultError) as raised:
        Result.read(file)
    assert str(raised.value).startswith(f"{file}: not a result of this benchmark: ")
