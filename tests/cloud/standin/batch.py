"""The rows of a batch prediction: read, asked of a container, and written.

What is documented: a JSON line is an instance as it stands (changed by instanceConfig), `batch_size` of them make a
request, parameters go with each. What is not, and decided here as the harsher way, UNVERIFIED:
- a request that fails, after a second try where the container said 5xx, fails all its rows: none is asked again alone;
- `prediction.errors_stats-…` has a line for each such request: its message and how many rows it took along;
- a job in which a row succeeded has succeeded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import requests
from proto import Message as SdkMessage

from tests.cloud.standin.containers import Container
from tests.cloud.standin.errors import ApiError, Code, precondition
from tests.cloud.standin.storage import Storage

TIMEOUT_S = 600
TRIES = 2
RESULTS = "prediction.results-00000-of-00001"
ERRORS = "prediction.errors_stats-00000-of-00001"


@dataclass(frozen=True)
class Row:
    """One line of the input.

    Attributes:
        instance: What the container is asked.
        told: What stands beside the prediction: `{"instance": …}`, or `{"key": …}`.
    """

    instance: Any
    told: Mapping[str, Any]


@dataclass
class Result:
    """What came of the rows.

    Attributes:
        answers: Lines with an instance and its prediction, in the input's order.
        errors: Message and count of the requests that failed.
    """

    answers: list[Mapping[str, Any]] = field(default_factory=list)
    errors: list[tuple[str, int]] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """How many rows have no prediction."""
        return sum(count for _, count in self.errors)

    def write(self, storage: Storage, folder: str) -> None:
        """Write both files."""
        answers = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.answers)
        errors = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.errors)
        storage.write(f"{folder}/{RESULTS}", answers.encode())
        storage.write(f"{folder}/{ERRORS}", errors.encode())


@dataclass(frozen=True)
class Batch:
    """How the rows of one job are asked.

    Attributes:
        storage: Where they are.
        instance_config: The job's InstanceConfig.
        parameters: Sent with each request; None for none.
        size: Rows in a request.
    """

    storage: Storage
    instance_config: Any
    parameters: Any
    size: int

    def read(self, uris: list[str]) -> list[Row]:
        """Return the rows of all files.

        Raises:
            ApiError: No file is there, or a line is no JSON.
        """
        rows = []
        for uri in uris:
            found = self.storage.find(uri)
            if not found:
                raise precondition(f"No files were found for {uri}.")
            for file in found:
                for number, line in enumerate(self.storage.read(file).decode().splitlines(), 1):
                    if line.strip():
                        rows.append(self._row(line, f"{file}:{number}"))
        if not rows:
            raise precondition("The input has no instances.")
        return rows

    def ask(self, rows: list[Row], container: Container, cancelled: Event) -> Result:
        """Ask the container for all rows, one request after the other."""
        result = Result()
        for start in range(0, len(rows), self.size):
            if cancelled.is_set():
                raise ApiError(Code.CANCELLED, "The job was cancelled.")
            batch = rows[start : start + self.size]
            answer = self._request([row.instance for row in batch], container)
            if isinstance(answer, str):
                result.errors.append((answer, len(batch)))
            else:
                result.answers += [{**row.told, "prediction": one} for row, one in zip(batch, answer, strict=True)]
        return result

    def folder(self, prefix: str, version: SdkMessage, created: SdkMessage) -> str:
        """Return the folder that a job writes into: a new one in the destination."""
        name = re.sub(r"[^\w.-]", "_", version.display_name)
        return f"{prefix.rstrip('/')}/prediction-{name}-{created.strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3]}Z"

    def _request(self, instances: list[Any], container: Container) -> list[Any] | str:
        content = {"instances": instances}
        if self.parameters is not None:
            content["parameters"] = self.parameters
        said = ""
        for _ in range(TRIES):
            try:
                answer = container.session.post(container.predict_url, json=content, timeout=TIMEOUT_S)
            except requests.RequestException as err:
                said = f"Post request fails. Cannot get predictions. Error: {err}"
                continue
            if answer.status_code != 200:
                said = f"Post request fails. Cannot get predictions. Error: {answer.status_code} {answer.text}"
                if answer.status_code < 500:
                    break
                continue
            predictions = answer.json().get("predictions")
            if isinstance(predictions, list) and len(predictions) == len(instances):
                return predictions
            return f"Expected {len(instances)} predictions in the response, got: {answer.text[:200]}"
        return said

    def _row(self, line: str, place: str) -> Row:
        try:
            content = json.loads(line)
        except ValueError as err:
            raise precondition(f"{place} is no JSON: {err}") from err
        config = self.instance_config
        included, excluded, key = list(config.included_fields), list(config.excluded_fields), config.key_field
        if not (included or excluded or key or config.instance_type):
            return Row(content, {"instance": content})
        if not isinstance(content, dict):
            if config.instance_type == "array" and isinstance(content, list) and not (included or excluded or key):
                return Row(content, {"instance": content})
            raise precondition(f"{place}: instance_config needs an object in each line")
        fields = included or [name for name in content if name not in (*excluded, key)]
        if config.instance_type == "array" and not included:
            raise precondition("instance_config.included_fields: required to make arrays of objects")
        chosen = {name: content[name] for name in fields}
        instance = list(chosen.values()) if config.instance_type == "array" else chosen
        return Row(instance, {"key": content[key]} if key else {"instance": content})
