"""The Prometheus text of a server's metrics port, read by name and label."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

import requests

from tests.server.running import Server

_LINE = re.compile(r"(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_DEADLINE_S = 20.0


@dataclass(frozen=True)
class Metrics:
    """The metrics of one model."""

    server: Server
    model: str

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's series with these labels, 0 where there is none."""
        wanted = {("ModelName", self.model), *labels.items()}
        text = requests.get(self.server.metrics_url, timeout=30).text
        found = (match for match in map(_LINE.fullmatch, text.splitlines()) if match and match["name"] == name)
        return sum(float(match["value"]) for match in found if wanted <= set(_LABEL.findall(match["labels"])))

    def settled(self, name: str, **labels: str) -> float:
        """Return a metric's value once nothing more comes in: a worker's lines take a moment to be read."""
        value = self.value(name, **labels)
        while True:
            time.sleep(0.2)
            before, value = value, self.value(name, **labels)
            if value == before:
                return value

    def reaches(self, expected: float, name: str, **labels: str) -> float:
        """Return a metric's value as soon as it is the expected one, or what it is at the deadline."""
        deadline = time.monotonic() + _DEADLINE_S
        while (value := self.value(name, **labels)) != expected and time.monotonic() < deadline:
            time.sleep(0.05)
        return value

    def received(self) -> float:
        """Return how many requests TorchServe has taken for the model, those in its queue included."""
        text = requests.get(self.server.metrics_url, timeout=30).text
        found = (match for match in map(_LINE.fullmatch, text.splitlines()) if match)
        return sum(
            float(match["value"])
            for match in found
            if match["name"] == "ts_inference_requests_total" and f'model_name="{self.model}"' in match["labels"]
        )
