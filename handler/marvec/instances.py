"""One instance of a request, in any of its forms -> an Input."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from marvec import json_values
from marvec.errors import RequestError

_TEXT_KEYS = ("text", "inputs", "data", "b64", "input_ids", "content")
_CONTENT_EXTRAS = ("task_type", "title")
_PAIR_KEY = "text_pair"


@dataclass(frozen=True)
class Input:
    """One thing to compute: a text with its prompt, a pair of texts, or token ids.

    Attributes:
        where: What errors call it, such as "instances[3]".
        text: The text, prompt included; "" when `ids` are given.
        ids: Token ids from the caller, or None.
        detailed: Whether the answer tells token counts, as Google's text-embeddings API does.
        pair: The second text of a pair, or None.
    """

    where: str
    text: str
    ids: Sequence[int] | None = None
    detailed: bool = False
    pair: str | None = None


@dataclass(frozen=True)
class Reader:
    """Reads instances as a task takes them.

    Attributes:
        prompt_of_task: The prompt for a task type of Google's; gets it and what errors call it.
        prompt: Text before an input that names no task type of its own.
        prompt_asked: Whether the request chose that prompt.
        pairs: Whether an instance may be a pair of texts.
    """

    prompt_of_task: Callable[[str, str], str]
    prompt: str = ""
    prompt_asked: bool = False
    pairs: bool = False

    def read(self, item: object, where: str) -> Input:
        """Read one instance.

        Args:
            item: What the JSON holds.
            where: What errors call it.

        Raises:
            RequestError: When it is none, or one of another task.
        """
        if isinstance(item, str):
            return self._of_text(item, where, where)
        if isinstance(item, list):
            if len(item) == 1 and isinstance(item[0], str):  # a row of a BigQuery batch prediction
                return self._of_text(item[0], where, where)
            raise RequestError(f"{where}: expected a string or a list of one string, got another list")
        if not isinstance(item, dict):
            raise RequestError(f"{where}: expected a string, got {json_values.type_name(item)}")
        return self._of_object(item, where)

    def _of_text(self, value: object, where: str, at: str) -> Input:
        return Input(where, self.prompt + json_values.text(value, at))

    def _of_object(self, item: dict[str, object], where: str) -> Input:
        extras = (*_CONTENT_EXTRAS, _PAIR_KEY) if self.pairs else _CONTENT_EXTRAS
        json_values.members(item, where, (*_TEXT_KEYS, *extras))
        keys = [key for key in _TEXT_KEYS if key in item]
        if len(keys) != 1:
            found = " and ".join(keys) if keys else "none"
            raise RequestError(f"{where}: expected exactly one of {', '.join(_TEXT_KEYS)}, got {found}")
        key, value = keys[0], item[keys[0]]
        for extra, goes_with in (*((name, "content") for name in _CONTENT_EXTRAS), (_PAIR_KEY, "text")):
            if extra in item and key != goes_with:
                raise RequestError(f"{where}.{extra}: goes with {goes_with}, not with {key}")
        if key == "content":
            return self._of_content(item, where)
        if key == "input_ids":
            return self._of_ids(value, f"{where}.input_ids")
        if _PAIR_KEY in item:
            second = json_values.text(item[_PAIR_KEY], f"{where}.{_PAIR_KEY}")
            return Input(where, json_values.text(value, f"{where}.text"), pair=second)
        if key == "data" and isinstance(value, dict):
            value = _b64(json_values.members(value, f"{where}.data", ("b64",)).get("b64"), f"{where}.data.b64")
        elif key == "b64":
            value = _b64(value, f"{where}.b64")
        return self._of_text(value, where, f"{where}.{key}")

    def _of_content(self, item: dict[str, object], where: str) -> Input:
        """Google's shape. Its task type goes before the request's own prompt; its title stands on a line of its own."""
        content = json_values.text(item["content"], f"{where}.content")
        prompt = self.prompt
        if item.get("task_type") is not None:
            at = f"{where}.task_type"
            prompt = self.prompt_of_task(json_values.text(item["task_type"], at), at)
        if item.get("title") is not None:
            content = json_values.text(item["title"], f"{where}.title") + "\n" + content
        return Input(where, prompt + content, detailed=True)

    def _of_ids(self, value: object, where: str) -> Input:
        if self.prompt_asked:
            raise RequestError(f"{where}: no prompt can go before token ids; put its ids among them")
        return Input(where, "", token_ids(value, where))


def token_ids(value: object, where: str) -> list[int]:
    """Require a list of whole numbers; whether they are ids of the model's is seen later."""
    return [json_values.whole(item, f"{where}[{i}]") for i, item in enumerate(json_values.items(value, where))]


def _b64(value: object, where: str) -> str:
    encoded = json_values.text(value, where)
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8")
    except binascii.Error as err:
        raise RequestError(f"{where}: not valid base64") from err
    except UnicodeDecodeError as err:
        raise RequestError(f"{where}: not base64 of UTF-8 text") from err
    except ValueError as err:  # base64 of a string that is not ASCII
        raise RequestError(f"{where}: not valid base64") from err
