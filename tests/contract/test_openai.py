"""OpenAI's shape below a model's version: what its clients send, and the answers and refusals that they get."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contract.endpoint import Answer, Endpoint, refusal, unpacked
from tests.contract.oracle import Oracle, assert_same, unit

IDS_REFUSED = (
    "token ids are not accepted, since clients send those of another model's tokenizer; send text: LangChain does "
    "with check_embedding_ctx_length=False"
)
KEYS = "known keys: input, model, encoding_format, dimensions, user"


def embeddings(answer: Answer, model: str, tokens: int) -> list[object]:
    """Return the embeddings of an answer that is in all else exactly OpenAI's."""
    assert (answer.status, answer.content_type) == (200, "application/json")
    body = answer.json()
    data = body["data"]
    assert isinstance(data, list)
    vectors = [item.pop("embedding") for item in data]
    assert body == {
        "object": "list",
        "data": [{"object": "embedding", "index": index} for index in range(len(vectors))],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return vectors


def test_one_text(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    [vector] = embeddings(tiny.openai(input="the rose", model="mine"), "mine", 4)
    assert_same(np.array([vector], dtype=np.float32), tiny_oracle.vectors("the rose"))


def test_several_texts_in_order(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    texts = ["the rose", "", "a " * 300]
    got = embeddings(tiny.openai(input=texts, model="mine", user="someone"), "mine", 4 + 2 + 64)
    assert_same(np.array(got, dtype=np.float32), tiny_oracle.vectors(*texts))


def test_without_a_name_the_model_tells_its_own(minilm: Endpoint, minilm_oracle: Oracle) -> None:
    name = minilm_oracle.embedder.settings.model.id
    nothing = dict.fromkeys(("model", "encoding_format", "dimensions", "user"))
    assert len(embeddings(minilm.openai(input="a", **nothing), name, 3)) == 1


def test_dimensions(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    got = embeddings(tiny.openai(input=["the rose"], model="m", dimensions=4), "m", 4)
    assert_same(np.array(got, dtype=np.float32), unit(tiny_oracle.vectors("the rose")[:, :4]))


def test_base64_as_the_openai_client_asks_for_it(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    """The official client always asks for base64 and decodes it as little-endian float32."""
    got = embeddings(tiny.openai(input=["the rose", "a"], model="m", encoding_format="base64"), "m", 7)
    assert_same(np.stack([unpacked(item) for item in got]), tiny_oracle.vectors("the rose", "a"))


def test_a_text_alone_and_in_a_list_are_the_same(strict: Endpoint) -> None:
    """D65: no other rule, and no other limit, for a text than for a list of it."""
    assert strict.openai(input="apple", model="m") == strict.openai(input=["apple"], model="m")
    alone, listed = (strict.openai(input=value, dimensions=33) for value in ("apple", ["apple"]))
    assert alone == listed == refusal(400, "dimensions: allowed are 1 to 32, got 33")


def test_a_trailing_slash(tiny: Endpoint) -> None:
    assert tiny.post({"input": "a"}, f"{tiny.openai_url}/").status == 200


@pytest.mark.parametrize(
    "sent", [[[57668, 53901]], [57668, 53901], [[1.0]], [0]], ids=["langchain", "flat", "doubles", "zero"]
)
def test_token_ids_are_refused(tiny: Endpoint, sent: object) -> None:
    """B24 and B26: ids of a foreign tokenizer are never embedded without a word."""
    answer = tiny.openai(input=sent, model="x", encoding_format="base64")
    assert answer == refusal(400, f"input[0]: {IDS_REFUSED}")


def test_token_ids_where_the_archive_allows_them(strict: Endpoint, tiny_oracle: Oracle) -> None:
    rose, a = tiny_oracle.ids("the rose"), tiny_oracle.ids("a")
    [vector] = embeddings(strict.openai(input=rose, model="m"), "m", 4)
    assert_same(np.array([vector], dtype=np.float32), tiny_oracle.vectors("the rose"))
    got = embeddings(strict.openai(input=[rose, a], model="m"), "m", 7)
    assert_same(np.array(got, dtype=np.float32), tiny_oracle.vectors("the rose", "a"))
    highest = tiny_oracle.embedder.tokenizer.vocab_size - 1
    assert strict.openai(input=[rose, [57668]]) == refusal(
        400, f"input[1][0]: 57668 is not a token id of this model; allowed are 0 to {highest}"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, 'the body has no input: send {"input": ["a text"]}'),
        ({"instances": ["a"]}, f"the body: unknown key 'instances'; {KEYS}"),
        ({"input": []}, "input: expected at least one, got an empty list"),
        ({"input": None}, "input: expected a list, got null"),
        ({"input": 5}, "input: expected a list, got a number"),
        ({"input": {"text": "a"}}, "input: expected a list, got an object"),
        ({"input": ["a", None]}, "input[1]: expected a string, got null"),
        ({"input": ["a", 5]}, "input[1]: expected a string, got a number"),
        ({"input": ["a", [5]]}, f"input[1]: {IDS_REFUSED}"),
        ({"input": "a", "model": 5}, "model: expected a string, got a number"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format: expected one of float, base64"),
        ({"input": "a", "dimensions": 0}, "dimensions: allowed are 1 to 32, got 0"),
        ({"input": "a", "dimensions": "8"}, "dimensions: expected a whole number, got a string"),
        ({"input": "a", "normalize": False}, f"the body: unknown key 'normalize'; {KEYS}"),
    ],
)
def test_refusals(tiny: Endpoint, fields: dict[str, object], message: str) -> None:
    assert tiny.openai(**fields) == refusal(400, message)
