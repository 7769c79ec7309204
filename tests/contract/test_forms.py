"""Every form of an instance and every parameter: the answer's bytes, and its numbers against the model in process."""

from __future__ import annotations

import base64
import json
from decimal import Decimal

import numpy as np
import orjson
import pytest

from tests.contract.endpoint import Endpoint, unpacked
from tests.contract.oracle import Oracle, assert_same, unit

ROSES = "a rose farm in japan: 日本の薔薇農家"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("instance", "text"),
    [
        (ROSES, ROSES),
        ({"text": ROSES}, ROSES),
        ({"inputs": ROSES}, ROSES),
        ({"data": ROSES}, ROSES),
        ([ROSES], ROSES),
        ({"b64": b64(ROSES)}, ROSES),
        ({"data": {"b64": b64(ROSES)}}, ROSES),
        ("", ""),
        (" \n\t", " \n\t"),
        ({"b64": ""}, ""),
        ("\ud800a\udbc0", "\ufffda\ufffd"),
        ("hello\u0000world", "hello\u0000world"),
        ("\u0000", "\u0000"),
        ("👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"),
        ("5.2", "5.2"),
        ("cafe\u0301", "café"),
    ],
)
def test_forms_of_a_text(tiny: Endpoint, tiny_oracle: Oracle, instance: object, text: str) -> None:
    """Among them A5, A11, A14 and A18 of the inputs that broke other servers: NUL, numerals, emoji, surrogates, NFD."""
    assert_same(tiny.ask(instance).vectors(), tiny_oracle.vectors(text))


def test_all_forms_in_one_request_keep_their_order(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    """B21 and B40: as many predictions as instances, each in the form that its own instance asks for."""
    ids = tiny_oracle.ids("small model")
    got = tiny.ask("a", {"text": ""}, ["the rose"], {"input_ids": ids}, {"content": "grow"}, "b").predictions()
    wanted = tiny_oracle.vectors("a", "", "the rose", "small model", "grow", "b")
    assert isinstance(got[4], dict)
    assert list(got[4]) == ["embeddings"]
    assert got[4]["embeddings"]["statistics"] == {"token_count": 3, "truncated": False}
    got[4] = got[4]["embeddings"]["values"]
    assert_same(np.array(got, dtype=np.float32), wanted)


@pytest.mark.parametrize("count", [1, 2, 101])
def test_one_prediction_an_instance(tiny: Endpoint, tiny_oracle: Oracle, count: int) -> None:
    """B39 too: gcloud reads at most 100 instances of a file; the server itself takes more."""
    texts = [f"text {number} of {count}" for number in range(count)]
    assert_same(tiny.ask(*texts).vectors(), tiny_oracle.vectors(*texts))


def test_empty_texts_among_others(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    """A7: an empty text has the vector of the special tokens, whatever stands beside it."""
    for texts in (["a", "", "b"], [""], ["", "", ""]):
        assert_same(tiny.ask(*texts).vectors(), tiny_oracle.vectors(*texts))


def test_token_ids(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    ids = tiny_oracle.ids(ROSES)
    assert_same(tiny.ask({"input_ids": ids}).vectors(), tiny_oracle.vectors(ROSES))
    assert_same(tiny.ask({"input_ids": [float(one) for one in ids]}).vectors(), tiny_oracle.vectors(ROSES))


def test_too_many_token_ids_are_cut_as_a_text_is(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    cls, *content, sep = tiny_oracle.ids("a " * 60)
    assert_same(tiny.ask({"input_ids": [cls, *content * 2, sep]}).vectors(), tiny_oracle.vectors("a " * 300))


@pytest.mark.parametrize(
    ("instance", "text", "tokens", "truncated"),
    [
        ({"content": "grow"}, "grow", 3, False),
        ({"content": ""}, "", 2, False),
        ({"content": "rose", "title": "farm"}, "farm\nrose", 4, False),
        ({"content": "rose", "title": None, "task_type": None}, "rose", 3, False),
        ({"content": "rose", "task_type": "RETRIEVAL_QUERY"}, "query: rose", 5, False),
        ({"content": "rose", "task_type": "RETRIEVAL_DOCUMENT", "title": "farm"}, "passage: farm\nrose", 6, False),
        ({"content": "a " * 300}, "a " * 300, 64, True),
    ],
)
def test_googles_form(
    tiny: Endpoint, tiny_oracle: Oracle, instance: object, text: str, tokens: int, truncated: bool
) -> None:
    """A20 too: an over-long text is cut, and the answer says so."""
    [prediction] = tiny.ask(instance).predictions()
    assert isinstance(prediction, dict)
    embeddings = prediction.pop("embeddings")
    assert prediction == {}
    assert embeddings["statistics"] == {"token_count": tokens, "truncated": truncated}
    assert list(embeddings) == ["values", "statistics"]
    assert_same(np.array([embeddings["values"]], dtype=np.float32), tiny_oracle.vectors(text))


@pytest.mark.parametrize(
    ("task_type", "prompt"),
    [
        ("RETRIEVAL_QUERY", "query: "),
        ("QUESTION_ANSWERING", "query: "),
        ("FACT_VERIFICATION", "query: "),
        ("CODE_RETRIEVAL_QUERY", "query: "),
        ("RETRIEVAL_DOCUMENT", "passage: "),
        ("CLUSTERING", "cluster: "),
        ("CLASSIFICATION", ""),
        ("SEMANTIC_SIMILARITY", ""),
    ],
)
def test_task_types(tiny: Endpoint, tiny_oracle: Oracle, task_type: str, prompt: str) -> None:
    wanted = tiny_oracle.vectors(prompt + "rose")
    assert_same(tiny.ask("rose", taskType=task_type).vectors(), wanted)
    assert_same(tiny.ask({"text": "rose"}, taskType=task_type).vectors(), wanted)


@pytest.mark.parametrize(
    ("name", "prompt"), [("query", "query: "), ("passage", "passage: "), ("Clustering", "cluster: ")]
)
def test_prompts_by_name(tiny: Endpoint, tiny_oracle: Oracle, name: str, prompt: str) -> None:
    got = tiny.ask("rose", {"text": "farm"}, ["a"], {"b64": b64("the")}, promptName=name).vectors()
    assert_same(got, tiny_oracle.vectors(*(prompt + text for text in ("rose", "farm", "a", "the"))))


def test_a_plain_text_gets_no_prompt(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    assert_same(tiny.ask("query: rose").vectors(), tiny_oracle.vectors("query: rose"))


@pytest.mark.parametrize("dimension", [1, 8, 8.0, 32])
def test_output_dimensionality(tiny: Endpoint, tiny_oracle: Oracle, dimension: float) -> None:
    """C56 too: cut, then brought to length 1 again."""
    got = tiny.ask(ROSES, "a", outputDimensionality=dimension).vectors()
    assert_same(got, unit(tiny_oracle.vectors(ROSES, "a")[:, : int(dimension)]))
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-6)


def test_not_normalized(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    """C61: normalize=false gives the pooled vector itself, cut where that was asked."""
    raw = tiny_oracle.raw_vectors(ROSES, "a")
    assert np.linalg.norm(raw, axis=1).min() > 1.5
    np.testing.assert_allclose(tiny.ask(ROSES, "a", normalize=False).vectors(), raw, atol=1e-5)
    got = tiny.ask(ROSES, "a", normalize=False, outputDimensionality=3).vectors()
    np.testing.assert_allclose(got, raw[:, :3], atol=1e-5)
    assert_same(tiny.ask(ROSES, "a", normalize=True).vectors(), tiny_oracle.vectors(ROSES, "a"))


def test_base64_holds_the_same_numbers(tiny: Endpoint) -> None:
    plain = tiny.ask(ROSES, {"content": "a"}, encodingFormat="float").predictions()
    first, second = tiny.ask(ROSES, {"content": "a"}, encodingFormat="base64").predictions()
    assert isinstance(plain[1], dict)
    assert isinstance(second, dict)
    np.testing.assert_array_equal(unpacked(first), np.array(plain[0], dtype=np.float32))
    values = np.array(plain[1]["embeddings"]["values"], dtype=np.float32)
    np.testing.assert_array_equal(unpacked(second["embeddings"]["values"]), values)
    assert second["embeddings"]["statistics"] == {"token_count": 3, "truncated": False}


def test_auto_truncate(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    fits, long = "a " * 62, "a " * 63
    assert_same(tiny.ask(fits, autoTruncate=False).vectors(), tiny_oracle.vectors(fits))
    assert_same(tiny.ask(long, autoTruncate=True).vectors(), tiny_oracle.vectors(fits))
    assert_same(tiny.ask(long).vectors(), tiny_oracle.vectors(fits))


@pytest.mark.parametrize("parameters", [None, {}])
def test_no_parameters(tiny: Endpoint, tiny_oracle: Oracle, parameters: object) -> None:
    got = tiny.post({"instances": ["a"], "parameters": parameters}).vectors()
    assert_same(got, tiny_oracle.vectors("a"))


def test_null_parameters_are_defaults(tiny: Endpoint, tiny_oracle: Oracle) -> None:
    nothing = dict.fromkeys(("outputDimensionality", "autoTruncate", "normalize", "promptName", "encodingFormat"))
    assert_same(tiny.ask("a", **nothing).vectors(), tiny_oracle.vectors("a"))


def test_the_bytes_are_compact_and_each_number_is_the_shortest_float32(minilm: Endpoint) -> None:
    body = minilm.ask("What is Deep Learning?", "").body
    rows = json.loads(body, parse_float=Decimal)["predictions"]
    for number in (number for row in rows for number in row):
        assert number == Decimal(str(np.float32(number)))
    vectors = [np.array(row, dtype=np.float32) for row in rows]
    assert body == orjson.dumps({"predictions": vectors}, option=orjson.OPT_SERIALIZE_NUMPY)


def test_the_demo_model_gives_its_golden_vectors(minilm: Endpoint, minilm_oracle: Oracle) -> None:
    """The vectors of pack time, each text alone and all together; C50: a neighbour changes nothing."""
    texts, wanted = minilm_oracle.golden.texts, np.array(minilm_oracle.golden.answers, dtype=np.float32)
    np.testing.assert_allclose(minilm.ask(*texts).vectors(), wanted, rtol=0, atol=1e-5)
    for text, vector in zip(texts, wanted, strict=True):
        np.testing.assert_allclose(minilm.ask(text).vectors()[0], vector, rtol=0, atol=1e-5)
