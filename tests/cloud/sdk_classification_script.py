"""What a user of Google's SDK asks a classifier, as the sample for PyTorch on Vertex AI has it, and a little more.

As sdk_script.py, it knows nothing of any stand-in, and takes and writes JSON.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

from google.cloud import aiplatform


def sample(endpoint: Any, texts: list[str]) -> list[list[str]]:  # noqa: ANN401
    """Ask for one text at a time, as the sample does; it sends no parameters, since its handler knows labels alone."""
    labels = []
    for text in texts:
        b64_encoded = base64.b64encode(text.encode("utf-8"))
        test_instance = [{"data": {"b64": f"{b64_encoded.decode('utf-8')!s}"}}]
        prediction = endpoint.predict(instances=test_instance, parameters={"output": "label"})
        labels.append(prediction.predictions)
    return labels


def refusal(endpoint: Any, instances: list[object], parameters: dict[str, object]) -> str:  # noqa: ANN401
    """Return what the service says of a request that it does not take."""
    try:
        endpoint.predict(instances=instances, parameters=parameters)
    except Exception as err:
        return str(err)
    return "nothing: it was taken"


def ask(given: dict[str, Any], transport: str) -> dict[str, Any]:
    """Ask for labels and scores, and for what is refused."""
    aiplatform.init(project=os.environ["PROJECT"], location="us-central1", api_transport=transport)
    endpoint = aiplatform.Endpoint(given["endpoint"])
    texts, pair = given["texts"], given["pair"]
    return {
        "labels": sample(endpoint, texts),
        "best": endpoint.predict(instances=texts).predictions,
        "scores": endpoint.predict(instances=[*texts, pair], parameters={"scores": "all"}).predictions,
        # Every number arrives as a double: 1.0, and 0 as 0.0.
        "first": endpoint.predict(instances=texts, parameters={"topK": 1, "threshold": 0}).predictions,
        "bad_instance": refusal(endpoint, [texts[0], {"data": {"b64": "YQ"}}], {"output": "label"}),
        "bad_parameter": refusal(endpoint, texts, {"topK": 3}),
    }


def main() -> None:
    """Ask over each transport."""
    given = json.load(sys.stdin)
    sys.stdout.write(json.dumps({transport: ask(given, transport) for transport in given["transports"]}))


if __name__ == "__main__":
    main()
