"""A request's body -> an EmbeddingRequest: `instances`, and OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from marvec import embedding_parameters, embedding_response, json_values, prompts
from marvec.embedding_parameters import EmbeddingParameters
from marvec.errors import RequestError
from marvec.instances import Input, Reader, token_ids
from marvec.request import Request, read_body, require_few, require_path
from marvec.settings import EmbeddingSettings
from marvec.tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

OPENAI_PATH = "v1/embeddings"
_OPENAI_KEYS = ("input", "model", "encoding_format", "dimensions", "user")


@dataclass(frozen=True)
class EmbeddingRequest(Request):
    """A checked request for vectors.

    Attributes:
        parameters: How the vectors are wanted.
        openai_model: The model's name as an OpenAI client sent it, to be sent back; None for `instances` requests.
    """

    parameters: EmbeddingParameters
    openai_model: str | None = None
    for_less: ClassVar[str] = "ask for base64 or fewer dimensions"

    @property
    def auto_truncate(self) -> bool:
        """Whether a too long input is cut instead of refused."""
        return self.parameters.auto_truncate

    @property
    def answer_bytes(self) -> int:
        """The most that the answer can take."""
        return embedding_response.size_bytes(len(self.inputs), self.parameters)

    def finish(self, numbers: Tensor) -> Tensor:
        """Truncate and normalize: [inputs, model's dimension] -> [inputs, dimension asked for] float32."""
        from marvec.pooling import finish  # torch stands behind it, and requests are read without

        return finish(numbers, self.parameters.dimension, self.parameters.normalize)

    def serialize(self, tokens: Sequence[Tokens], numbers: Tensor) -> bytes:
        """Write vectors in the shape that was asked for."""
        vectors = embedding_response.encoded(numbers.numpy(), self.parameters)
        if self.openai_model is not None:
            return embedding_response.openai(self.openai_model, tokens, vectors)
        return embedding_response.predictions([item.detailed for item in self.inputs], tokens, vectors)


def parse(body: object, settings: EmbeddingSettings, query: Mapping[str, str], path: str = "") -> EmbeddingRequest:
    """Read and check a request.

    Args:
        body: Bytes or string of JSON, or what a server has already decoded.
        settings: For prompts, bounds and limits.
        query: Parameters from the URL or from form fields.
        path: What follows the model's own path: "" for `instances`, OPENAI_PATH for OpenAI's shape.

    Raises:
        RequestError: When the caller must send something else; the message says what.
    """
    require_path(path, (OPENAI_PATH,))
    if path.strip("/") == OPENAI_PATH:
        return _parse_openai(json_values.loads(body), settings, query)
    instances, given = read_body(body)
    require_few(len(instances), "instances", settings.limits)
    asked = embedding_parameters.parse(given, query, settings.model)
    reader = Reader(lambda task, where: prompts.of_task(task, settings.model, where), asked.prompt, asked.prompt_asked)
    return EmbeddingRequest([reader.read(item, f"instances[{i}]") for i, item in enumerate(instances)], asked)


def _parse_openai(value: object, settings: EmbeddingSettings, query: Mapping[str, str]) -> EmbeddingRequest:
    fields = json_values.members(value, "the body", _OPENAI_KEYS)
    if "input" not in fields:
        raise RequestError('the body has no input: send {"input": ["a text"]}')
    asked = embedding_parameters.parse_openai(
        fields.get("dimensions"), fields.get("encoding_format"), query, settings.model
    )
    model = fields.get("model")
    name = settings.model.id if model is None else json_values.text(model, "model")
    return EmbeddingRequest(_openai_inputs(fields["input"], asked, settings), asked, name)


def _openai_inputs(value: object, asked: EmbeddingParameters, settings: EmbeddingSettings) -> list[Input]:
    if isinstance(value, str):
        return [Input("input", asked.prompt + json_values.text(value, "input"))]
    items = json_values.items(value, "input")
    if all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in items):
        items = [items]
    require_few(len(items), "input", settings.limits)
    return [_openai_input(item, f"input[{i}]", asked, settings) for i, item in enumerate(items)]


def _openai_input(item: object, where: str, asked: EmbeddingParameters, settings: EmbeddingSettings) -> Input:
    if not isinstance(item, list):
        return Input(where, asked.prompt + json_values.text(item, where))
    if not settings.limits.openai_token_ids:
        raise RequestError(
            f"{where}: token ids are not accepted, since clients send those of another model's tokenizer; send text: "
            "LangChain does with check_embedding_ctx_length=False"
        )
    return Input(where, "", token_ids(item, where))
