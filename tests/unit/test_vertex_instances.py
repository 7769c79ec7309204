"""Instances from files: what each form takes, and the line that is named where it does not."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from vertex.errors import VertexError
from vertex.instances import Format, Request, parameters, read, read_bytes


class Stdin:
    """Stdin that holds bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def written(folder: Path, name: str, content: str) -> str:
    """Write a file as it is, line ends included, and return its path."""
    (folder / name).write_bytes(content.encode())
    return str(folder / name)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\n\nb\n\n", ["a", "", "b", ""]),
        ("\n", [""]),
        (' {"text": "a"} \n', [' {"text": "a"} ']),
        ("a\u2028b\x0bc\x85d\x1ce\n東京\n", ["a\u2028b\x0bc\x85d\x1ce", "東京"]),
    ],
)
def test_text_is_a_line_each(tmp_path: Path, content: str, texts: list[object]) -> None:
    assert read(written(tmp_path, "texts.txt", content), None) == Request(texts)


def test_json_lines(tmp_path: Path) -> None:
    content = '"a"\n\n {"text": "b"}\r\n   \n["c"]\n'
    assert read(written(tmp_path, "texts.jsonl", content), None) == Request(["a", {"text": "b"}, ["c"]])


@pytest.mark.parametrize(
    ("content", "request_"),
    [
        ('["a", {"text": "b"}]', Request(["a", {"text": "b"}])),
        ('{"instances": ["a"]}', Request(["a"])),
        ('{"instances": ["a"], "parameters": null}', Request(["a"])),
        ('{"instances": ["a"], "parameters": {"normalize": false}}', Request(["a"], {"normalize": False})),
    ],
)
def test_a_request(tmp_path: Path, content: str, request_: Request) -> None:
    assert read(written(tmp_path, "request.json", content), None) == request_


@pytest.mark.parametrize(
    ("name", "form", "content", "instances"),
    [
        ("a.jsonl", Format.TEXT, '"a"\n', ['"a"']),
        ("a.txt", Format.JSONL, '"a"\n', ["a"]),
        ("a.txt", Format.JSON, '["a"]', ["a"]),
        ("a.JSON", None, '["a"]', ['["a"]']),
    ],
)
def test_a_form_that_is_named_counts(
    tmp_path: Path, name: str, form: Format | None, content: str, instances: list[object]
) -> None:
    assert read(written(tmp_path, name, content), form) == Request(instances)


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Stdin("a\nü\n".encode()))
    assert read("-", None) == Request(["a", "ü"])
    monkeypatch.setattr("sys.stdin", Stdin(b"\xff\x00"))
    assert read_bytes("-") == b"\xff\x00"
    monkeypatch.setattr("sys.stdin", Stdin(b'"a"\nb\n'))
    with pytest.raises(VertexError) as caught:
        read("-", Format.JSONL)
    assert str(caught.value) == "stdin, line 2 is no JSON (Expecting value: line 1 column 1 (char 0))"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", "", "FILE holds no instance"),
        ("a.jsonl", " \n\n", "FILE holds no instance"),
        ("a.json", "[]", "FILE holds no instance"),
        ("a.json", '{"instances": []}', "FILE holds no instance"),
        ("a.jsonl", '"a"\n{\n', "FILE, line 2 is no JSON (Expecting property name enclosed in double quotes: "),
        ("a.json", "", "FILE is no JSON (Expecting value: line 1 column 1 (char 0))"),
        ("a.json", '"a"', 'FILE: expected {"instances": […], "parameters": {…}}, or a list of instances'),
        ("a.json", "{}", 'FILE: expected {"instances": […], "parameters": {…}}, or a list of instances'),
        ("a.json", '{"instances": "a"}', 'FILE: expected {"instances": […], "parameters": {…}}, or a list of '),
        ("a.json", '{"instances": ["a"], "x": 1}', 'FILE: expected {"instances": […], "parameters": {…}}, or a list '),
        ("a.jsonl", '"a"\n[NaN]', "FILE, line 2 is no JSON (NaN is no number of JSON)"),
        ("a.jsonl", '"\\ud800"', "FILE, line 1 is no JSON (half of a surrogate pair, which is no character)"),
        ("a.jsonl", "[" * 100_000, "FILE, line 1 is no JSON (nested too deeply)"),
        ("a.json", '{"instances": ["a"], "parameters": 1}', "FILE: expected parameters to be an object"),
    ],
)
def test_what_holds_something_else(tmp_path: Path, name: str, content: str, reason: str) -> None:
    file = written(tmp_path, name, content)
    with pytest.raises(VertexError) as caught:
        read(file, None)
    assert str(caught.value).replace(file, "FILE").startswith(reason)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ab\xff")
    for file, form, reason in (
        (str(tmp_path / "a.txt"), None, f"{tmp_path}/a.txt is no UTF-8 (at byte 2)"),
        (str(tmp_path / "b.txt"), None, f"{tmp_path}/b.txt: No such file or directory"),
        (str(tmp_path), None, f"{tmp_path}: Is a directory"),
    ):
        with pytest.raises(VertexError) as caught:
            read(file, form)
        assert str(caught.value) == reason


def test_parameters() -> None:
    assert parameters(None) is None
    assert parameters("{}") == {}
    assert parameters('{"taskType": "検索", "outputDimensionality": 256}') == {
        "taskType": "検索",
        "outputDimensionality": 256,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dimensions=4", "--parameters is no JSON (Expecting value: line 1 column 1 (char 0))"),
        ("[1]", '--parameters: expected a JSON object, such as {"autoTruncate": false}'),
        ("null", '--parameters: expected a JSON object, such as {"autoTruncate": false}'),
    ],
)
def test_parameters_that_are_none(text: str, reason: str) -> None:
    with pytest.raises(VertexError) as caught:
        parameters(text)
    assert str(caught.value) == reason


def test_a_byte_order_mark_is_no_part_of_the_first_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffhello\n".encode())
    assert read(str(tmp_path / "a.txt"), None) == Request(["hello"])
