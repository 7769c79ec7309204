"""The server's log tells of each request, and never what was in it."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

import pytest

from tests.contract.archives import BOOM, POISON
from tests.contract.endpoint import Endpoint
from tests.contract.oracle import Oracle
from tests.server.running import Server

SECRET = "zanzibarsecret"


def test_no_text_of_a_request_reaches_the_log(
    tiny: Endpoint, strict: Endpoint, poisoned: Endpoint, tmp_path: Path
) -> None:
    encoded = base64.b64encode(SECRET.encode()).decode()
    body = json.dumps({"instances": [SECRET]})
    file = tmp_path / f"{SECRET}.json"
    file.write_text(body, encoding="utf-8")
    invocations = f"{tiny.server.url}/invocations?model_name=tiny&"
    statuses = [
        tiny.ask(SECRET, {"b64": encoded}, {"content": SECRET, "title": SECRET}).status,
        tiny.openai(input=SECRET, model=SECRET, user=SECRET).status,
        tiny.curl("--upload-file", str(file)).status,
        tiny.curl("--form", f"data=@{file}").status,
        tiny.send(body.encode(), {"X-Secret": SECRET}).status,
        tiny.post({"instances": ["a"]}, f"{tiny.url}?text={SECRET}").status,
        tiny.ask(SECRET, 5).status,
        tiny.ask({SECRET: SECRET}).status,
        tiny.ask({"content": "a", "task_type": SECRET}).status,
        tiny.ask("a", promptName=SECRET).status,
        tiny.send(body[:-2].encode()).status,
        tiny.send(body.encode() + b"\xff").status,
        tiny.curl("--data", body).status,
        tiny.curl("--form", f"{SECRET}=@{file}").status,
        tiny.post({"instances": ["a"]}, f"{invocations}promptName={SECRET}").status,
        tiny.post({"instances": ["a"]}, f"{invocations}{SECRET}=1").status,
        tiny.post({"instances": [SECRET]}, f"{tiny.url}/1.0/v2").status,
        tiny.post({"instances": [SECRET]}, f"{tiny.server.url}/explanations/tiny").status,
        strict.ask(*[SECRET] * 4).status,
        strict.ask(*[f"{SECRET} " * 100] * 2).status,
        poisoned.ask(f"{SECRET} {POISON}").status,
        poisoned.ask(SECRET, f"{SECRET} {BOOM}").status,
        tiny.curl("--data", f"{SECRET}=100%").status,
        tiny.curl("--data", f"100% {SECRET}=1").status,
        tiny.curl("--data", "{}", url=f"{invocations}promptName={SECRET}%zz").status,
    ]
    assert statuses == [200] * 6 + [400] * 6 + [415] + [400] * 3 + [404, 400] + [413] * 2 + [500] * 4 + [403]
    wait_for_requests(tiny.server, '"POST /predictions/poisoned HTTP/1.1" 500', 2)
    for text in (SECRET, encoded):
        assert text not in tiny.server.log()


def test_what_the_log_says_of_failures(poisoned: Endpoint, tiny_oracle: Oracle) -> None:
    """B34: a NaN leaves a line with the model's id and the rows; an exception leaves its trace."""
    model = tiny_oracle.embedder.settings.model.id
    assert poisoned.ask("a", POISON, "the", POISON).status == 500
    assert poisoned.ask("a", BOOM).status == 500
    line = f"{model}: inputs [1, 3] gave numbers that are not finite"
    for wanted in (line, f"{model}: the encoder failed", "IndexError: index out of range in self"):
        poisoned.server.wait_for(lambda text=wanted: logged(poisoned.server, text), 20, wanted)  # type: ignore[misc]


def logged(server: Server, text: str) -> bool:
    """Whether the log has an error with this text."""
    return any(text in message for message in server.messages("ERROR"))


@pytest.mark.parametrize(("instance", "status"), [("a", 200), (5, 400)])
def test_one_line_a_request(tiny: Endpoint, instance: object, status: int) -> None:
    line = f'"POST /predictions/tiny HTTP/1.1" {status}'
    before = sum(line in message for message in tiny.server.messages())
    events = len(tiny.server.events())
    assert tiny.ask(instance).status == status
    wait_for_requests(tiny.server, line, before + 1)
    time.sleep(0.2)
    assert [line in event["message"] for event in tiny.server.events()[events:]] == [True]


def wait_for_requests(server: Server, line: str, count: int) -> None:
    """Wait until the log has so many lines of a request."""
    server.wait_for(lambda: sum(line in text for text in server.messages()) >= count, 20, f"{count} lines of {line}")
