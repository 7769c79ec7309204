"""JSON at its edges: encodings, escapes, numbers that are none, nesting."""

from __future__ import annotations

import pytest

from marvec import json_values
from marvec.errors import RequestError


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'["a"]', ["a"]),
        (bytearray(b'["a"]'), ["a"]),
        ('["\u65e5"]', ["日"]),
        (b'\xef\xbb\xbf["a"]', ["a"]),
        (rb'["\ud83d\ude00"]', ["😀"]),
        (rb'["\ud800x"]', ["\ud800x"]),
        ({"already": "decoded"}, {"already": "decoded"}),
    ],
)
def test_bodies_that_are_json(body: object, value: object) -> None:
    assert json_values.loads(body) == value


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", 'the body is empty: send a JSON object such as {"instances": ["a text"]}'),
        (b" \n", 'the body is empty: send a JSON object such as {"instances": ["a text"]}'),
        (b'"Blue shirt!', "the body is not valid JSON: Unterminated string starting at: line 1 column 1 (char 0)"),
        (b'{"a": NaN}', "the body is not valid JSON: NaN is not a JSON number"),
        (b'["\xff"]', "the body is not valid UTF-8: byte 2"),
        (b"[" * 100_000, "the body is not valid JSON: nested too deeply"),
        (b'["a"] x', "the body is not valid JSON: Extra data: line 1 column 7 (char 6)"),
    ],
)
def test_bodies_that_are_not(body: bytes, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        json_values.loads(body)
    assert str(caught.value) == message


@pytest.mark.parametrize(("sent", "kept"), [("a\ud800b", "a\ufffdb"), ("\udbc0", "\ufffd"), ("a\x00b", "a\x00b")])
def test_a_lone_surrogate_becomes_the_replacement_character(sent: str, kept: str) -> None:
    assert json_values.text(sent, "x") == kept


@pytest.mark.parametrize(("value", "number"), [(3, 3), (256.0, 256), (-1.0, -1)])
def test_whole_numbers(value: object, number: int) -> None:
    assert json_values.whole(value, "x") == number


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "x: expected a whole number, got a boolean"),
        ("3", "x: expected a whole number, got a string"),
        (None, "x: expected a whole number, got null"),
        (0.5, "x: expected a whole number, got 0.5"),
        (float("nan"), "x: expected a whole number, got nan"),
        (float("inf"), "x: expected a whole number, got inf"),
        ([], "x: expected a whole number, got a list"),
        ({}, "x: expected a whole number, got an object"),
    ],
)
def test_what_is_no_whole_number(value: object, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        json_values.whole(value, "x")
    assert str(caught.value) == message


def test_an_unknown_key_is_shown_short_and_printable() -> None:
    with pytest.raises(RequestError) as caught:
        json_values.members({"\n" + "é" * 100: 1}, "the body", ("a", "b"))
    assert str(caught.value) == "the body: unknown key '\\n" + "\\xe9" * 39 + "...'; known keys: a, b"
