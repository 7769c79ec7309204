"""A request's body -> an EmbeddingRequest: every form of instance, and OpenAI's shape."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marvec import json_values, parameters, prompts
from marvec.errors import NotFoundError, RequestError, TooLargeError
from marvec.parameters import Parameters
from marvec.settings import Settings

OPENAI_PATH = "v1/embeddings"
_BODY_KEYS = ("instances", "parameters")
_TEXT_KEYS = ("text", "inputs", "data", "b64", "input_ids", "content")
_CONTENT_EXTRAS = ("task_type", "title")
_OPENAI_KEYS = ("input", "model", "encoding_format", "dimensions", "user")


@dataclass(frozen=True)
class Input:
    """One thing to embed: a text with its prompt, or token ids.

    Attributes:
        where: What errors call it, such as "instances[3]".
        text: The text, prompt included; "" when `ids` are given.
        ids: Token ids from the caller, or None.
        detailed: Whether the answer tells token counts, as Google's text-embeddings API does.
    """

    where: str
    text: str
    ids: Sequence[int] | None = None
    detailed: bool = False


@dataclass(frozen=True)
class EmbeddingRequest:
    """A checked request.

    Attributes:
        inputs: What to embed, in order.
        parameters: How.
        openai_model: The model's name as an OpenAI client sent it, to be sent back; None for `instances` requests.
    """

    inputs: Sequence[Input]
    parameters: Parameters
    openai_model: str | None = None


def parse(body: object, settings: Settings, query: Mapping[str, str], path: str = "") -> EmbeddingRequest:
    """Read and check a request.

    Args:
        body: Bytes or string of JSON, or what a server has already decoded.
        settings: For prompts, bounds and limits.
        query: Parameters from the URL or from form fields.
        path: What follows the model's own path: "" for `instances`, OPENAI_PATH for OpenAI's shape.

    Raises:
        RequestError: When the caller must send something else; the message says what.
    """
    if path.strip("/") not in ("", OPENAI_PATH):
        raise NotFoundError(f"no such path; after the model's version only /{OPENAI_PATH} is served")
    value = json_values.loads(body)
    if path.strip("/") == OPENAI_PATH:
        return _parse_openai(value, settings, query)
    fields = json_values.members(value, "the body", _BODY_KEYS)
    if "instances" not in fields:
        raise RequestError('the body has no instances: send {"instances": ["a text"]}')
    instances = json_values.items(fields["instances"], "instances")
    _require_few(len(instances), "instances", settings)
    asked = parameters.parse(fields.get("parameters"), query, settings.model)
    return EmbeddingRequest(
        [_read(item, f"instances[{i}]", asked, settings) for i, item in enumerate(instances)], asked
    )


def _parse_openai(value: object, settings: Settings, query: Mapping[str, str]) -> EmbeddingRequest:
    fields = json_values.members(value, "the body", _OPENAI_KEYS)
    if "input" not in fields:
        raise RequestError('the body has no input: send {"input": ["a text"]}')
    asked = parameters.parse_openai(fields.get("dimensions"), fields.get("encoding_format"), query, settings.model)
    model = fields.get("model")
    name = settings.model.id if model is None else json_values.text(model, "model")
    return EmbeddingRequest(_openai_inputs(fields["input"], asked, settings), asked, name)


def _openai_inputs(value: object, asked: Parameters, settings: Settings) -> list[Input]:
    if isinstance(value, str):
        return [Input("input", asked.prompt + json_values.text(value, "input"))]
    items = json_values.items(value, "input")
    if all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in items):
        items = [items]
    _require_few(len(items), "input", settings)
    return [_openai_input(item, f"input[{i}]", asked, settings) for i, item in enumerate(items)]


def _openai_input(item: object, where: str, asked: Parameters, settings: Settings) -> Input:
    if not isinstance(item, list):
        return Input(where, asked.prompt + json_values.text(item, where))
    if not settings.limits.openai_token_ids:
        raise RequestError(
            f"{where}: token ids are not accepted, since clients send those of another model's tokenizer; send text: "
            "LangChain does with check_embedding_ctx_length=False"
        )
    return Input(where, "", _token_ids(item, where))


def _require_few(count: int, what: str, settings: Settings) -> None:
    most = settings.limits.max_instances
    if count > most:
        raise TooLargeError(f"{what}: {count} given, the limit is {most}; send them in several requests")


def _read(item: object, where: str, asked: Parameters, settings: Settings) -> Input:
    if isinstance(item, str):
        return Input(where, asked.prompt + json_values.text(item, where))
    if isinstance(item, list):
        if len(item) == 1 and isinstance(item[0], str):  # a row of a BigQuery batch prediction
            return Input(where, asked.prompt + json_values.text(item[0], where))
        raise RequestError(f"{where}: expected a string or a list of one string, got another list")
    if not isinstance(item, dict):
        raise RequestError(f"{where}: expected a string, got {json_values.type_name(item)}")
    return _read_object(item, where, asked, settings)


def _read_object(item: dict[str, object], where: str, asked: Parameters, settings: Settings) -> Input:
    json_values.members(item, where, (*_TEXT_KEYS, *_CONTENT_EXTRAS))
    keys = [key for key in _TEXT_KEYS if key in item]
    if len(keys) != 1:
        found = " and ".join(keys) if keys else "none"
        raise RequestError(f"{where}: expected exactly one of {', '.join(_TEXT_KEYS)}, got {found}")
    key, value = keys[0], item[keys[0]]
    if key == "content":
        return _read_content(item, where, asked, settings)
    for extra in _CONTENT_EXTRAS:
        if extra in item:
            raise RequestError(f"{where}.{extra}: goes with content, not with {key}")
    if key == "input_ids":
        if asked.prompt_asked:
            raise RequestError(f"{where}.input_ids: no prompt can go before token ids; put its ids among them")
        where = f"{where}.input_ids"
        return Input(where, "", _token_ids(value, where))
    if key == "data" and isinstance(value, dict):
        value = _b64(json_values.members(value, f"{where}.data", ("b64",)).get("b64"), f"{where}.data.b64")
    elif key == "b64":
        value = _b64(value, f"{where}.b64")
    return Input(where, asked.prompt + json_values.text(value, f"{where}.{key}"))


def _read_content(item: dict[str, object], where: str, asked: Parameters, settings: Settings) -> Input:
    """Google's shape. Its task type goes before the request's own prompt; its title stands on a line of its own."""
    content = json_values.text(item["content"], f"{where}.content")
    prompt = asked.prompt
    if item.get("task_type") is not None:
        at = f"{where}.task_type"
        prompt = prompts.of_task(json_values.text(item["task_type"], at), settings.model, at)
    if item.get("title") is not None:
        content = json_values.text(item["title"], f"{where}.title") + "\n" + content
    return Input(where, prompt + content, detailed=True)


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


def _token_ids(value: object, where: str) -> list[int]:
    return [json_values.whole(item, f"{where}[{i}]") for i, item in enumerate(json_values.items(value, where))]
