"""One served model as a client meets it, and its worker as an operator sees it."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import psutil
import requests

from serving.management import model_status
from tests.server.running import Server

JSON = {"Content-Type": "application/json"}
TIMEOUT_S = 120.0
VERSION = "1.0"


@dataclass(frozen=True)
class Answer:
    """A response, as far as the contract speaks of it.

    Attributes:
        status: The HTTP status.
        content_type: The header, "" without it.
        body: The bytes.
    """

    status: int
    content_type: str
    body: bytes

    def json(self) -> dict[str, object]:
        """Return the decoded body; anything but a JSON object without NaN and Infinity fails the test."""
        value = json.loads(self.body, parse_constant=_refuse)
        if not isinstance(value, dict):
            raise TypeError(f"expected an object, got {value!r}")
        return value

    def predictions(self) -> list[object]:
        """Return the predictions of a 200; anything else fails the test."""
        if (self.status, self.content_type) != (200, "application/json"):
            raise ValueError(f"{self.status} {self.content_type}: {self.body[:500]!r}")
        predictions = self.json()["predictions"]
        if not isinstance(predictions, list):
            raise TypeError(f"expected a list, got {predictions!r}")
        return predictions

    def vectors(self) -> npt.NDArray[np.float32]:
        """Return the predictions as [instances, dimension] float32."""
        return np.array(self.predictions(), dtype=np.float32)


def refusal(status: int, message: str) -> Answer:
    """Return the answer that the contract has for an error: exactly this body."""
    body = json.dumps({"error": message}, ensure_ascii=False, separators=(",", ":"))
    return Answer(status, "application/json", body.encode())


def torchserve_refusal(status: int, kind: str, message: str) -> Answer:
    """Return the answer that TorchServe itself gives to what never reaches a model."""
    body = json.dumps({"code": status, "type": kind, "message": message}, indent=2)
    return Answer(status, "application/json", f"{body}\n".encode())


def unpacked(encoded: object) -> npt.NDArray[np.float32]:
    """Return the numbers of a base64 vector: little-endian float32."""
    if not isinstance(encoded, str):
        raise TypeError(f"expected base64, got {encoded!r}")
    return np.frombuffer(base64.b64decode(encoded, validate=True), dtype="<f4")


@dataclass(frozen=True)
class Endpoint:
    """A model of a running server.

    Attributes:
        server: The server.
        model: The model's name.
        batch_size: Requests in its batches, at most.
    """

    server: Server
    model: str
    batch_size: int

    @property
    def url(self) -> str:
        """Where instances go."""
        return self.server.predictions(self.model)

    @property
    def openai_url(self) -> str:
        """Where OpenAI clients send to."""
        return f"{self.url}/{VERSION}/v1/embeddings"

    def ask(self, *instances: object, **parameters: object) -> Answer:
        """Send instances, with parameters where there are any."""
        body = {"instances": list(instances)}
        return self.post({**body, "parameters": parameters} if parameters else body)

    def post(self, value: object, url: str = "") -> Answer:
        """Send a value as JSON; lone surrogates leave as escapes."""
        return self.send(json.dumps(value).encode(), url=url)

    def openai(self, **fields: object) -> Answer:
        """Send OpenAI's fields to OpenAI's path."""
        return self.post(fields, self.openai_url)

    def send(self, body: bytes, headers: Mapping[str, str] | None = None, url: str = "") -> Answer:
        """Send bytes, as application/json unless the headers say otherwise."""
        answer = requests.post(url or self.url, data=body, headers={**JSON, **(headers or {})}, timeout=TIMEOUT_S)
        return Answer(answer.status_code, answer.headers.get("Content-Type", ""), answer.content)

    def curl(self, *arguments: str, url: str = "", stdin: bytes = b"") -> Answer:
        """Send a request with curl, as a user would."""
        return curl(*arguments, url or self.url, stdin=stdin)

    def describe(self) -> dict[str, object]:
        """Return what the describe call tells."""
        answer = requests.get(f"{self.server.management_url}/models/{self.model}?customized=true", timeout=TIMEOUT_S)
        answer.raise_for_status()
        told: dict[str, object] = answer.json()[0]["customizedMetadata"]
        return told

    def limit(self, name: str) -> int:
        """Return a limit in force; max_request_tokens depends on the speed that the worker measured."""
        limits = self.describe()["limits"]
        if not isinstance(limits, dict):
            raise TypeError(f"expected an object, got {limits!r}")
        return int(limits[name])

    def pending(self) -> int:
        """Return how many requests no worker has taken yet."""
        return model_status(self.server.management_port, self.model, VERSION, TIMEOUT_S).pending_requests

    def worker(self) -> psutil.Process:
        """Return the model's one worker."""
        answer = requests.get(f"{self.server.management_url}/models/{self.model}", timeout=TIMEOUT_S)
        [worker] = answer.json()[0]["workers"]
        return psutil.Process(worker["pid"])

    @contextmanager
    def stopped_worker(self) -> Iterator[None]:
        """Let no batch be answered inside this block."""
        worker = self.worker()
        worker.suspend()
        try:
            yield
        finally:
            worker.resume()


def curl(*arguments: str, stdin: bytes = b"") -> Answer:
    """Run curl on a URL among the arguments.

    Raises:
        subprocess.CalledProcessError: curl itself failed.
    """
    end = "\n%{http_code} %{content_type}"
    command = ["curl", "--silent", "--show-error", "--max-time", f"{TIMEOUT_S:g}", "--write-out", end, *arguments]
    output = subprocess.run(command, input=stdin, capture_output=True, check=True).stdout
    body, _, last = output.rpartition(b"\n")
    status, _, content_type = last.decode().partition(" ")
    return Answer(int(status), content_type, body)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
