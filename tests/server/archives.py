"""Small archives for the life-cycle tests, built with torch-model-archiver: no model, all behaviour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Sends the body back, of a long one its length; {"sleep": s} makes it slow. It answers a describe call, too.
ECHO = """
import json
import os
import time

from ts.metrics.dimension import Dimension
from ts.metrics.metric_type_enum import MetricTypes


class EchoHandler:
    def initialize(self, context):
        print(f"marvec echo loaded, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}")

    def handle(self, rows, context):
        if context.get_request_header(0, "describe"):
            return [json.dumps({"pid": os.getpid()})]
        metrics = context.metrics
        metrics.add_counter("MarvecTokens", 7, dimensions=[])
        metrics.add_counter("MarvecTexts", 2, dimensions=[])
        metrics.add_counter("MarvecTruncatedTexts", 1, dimensions=[])
        metrics.add_counter("MarvecRefusedRequests", 1, dimensions=[Dimension("Status", "413")])
        metrics.add_metric("MarvecBatchFill", 0.5, "count", dimensions=[], metric_type=MetricTypes.GAUGE)
        answers = []
        for number, row in enumerate(rows):
            body = bytes(row["body"])
            if len(body) > 1 << 20:
                body = json.dumps({"bytes": len(body)}).encode()
            if body.startswith(b"{"):
                time.sleep(json.loads(body).get("sleep", 0))
            context.set_response_content_type(number, "application/json")
            answers.append(body)
        return answers
"""

RAISES = """
class RaisingHandler:
    def initialize(self, context):
        try:
            {}["pooling"]
        except KeyError as err:
            raise ValueError("model.safetensors does not match config.json") from err

    def handle(self, rows, context):
        return rows
"""

IMPORTS = """
import a_package_that_nobody_installed


class ImportingHandler:
    def initialize(self, context):
        pass

    def handle(self, rows, context):
        return rows
"""

# Loads while the file named by the environment is not there, then never again.
LOADS_ONCE = """
import os


class LoadsOnceHandler:
    def initialize(self, context):
        if os.path.exists(os.environ["LOADS_ONCE_MARK"]):
            raise OSError("the weights are gone")
        open(os.environ["LOADS_ONCE_MARK"], "w").close()

    def handle(self, rows, context):
        return rows
"""


def build(store: Path, name: str, handler: str, *, version: str = "1.0", **settings: int) -> Path:
    """Build an archive.

    Args:
        store: Where it goes.
        name: The model's name.
        handler: The handler's source.
        version: The model's version.
        **settings: For model-config.yaml, over one worker that takes one request at a time.

    Returns:
        The .mar file.
    """
    sources = store.parent / f"{name}-sources"
    sources.mkdir(parents=True, exist_ok=True)
    store.mkdir(parents=True, exist_ok=True)
    source, config = sources / f"{name}_handler.py", sources / "model-config.yaml"
    source.write_text(handler)
    values = {"minWorkers": 1, "maxWorkers": 1, "batchSize": 1, "maxBatchDelay": 1, "maxRetryTimeoutInSec": 30}
    config.write_text("".join(f"{key}: {value}\n" for key, value in {**values, **settings}.items()))
    archiver = str(Path(sys.executable).with_name("torch-model-archiver"))
    command = [archiver, "--force", "--model-name", name, "--version", version, "--handler", str(source)]
    command += ["--config-file", str(config), "--export-path", str(store)]
    subprocess.run(command, check=True, capture_output=True, env={"TMPDIR": str(sources), "PATH": ""})
    return store / f"{name}.mar"
