"""Cosines between sentences, from an endpoint on Vertex AI, with Google's SDK alone.

    python examples/vertex_predict.py --project PROJECT --region europe-west1 --endpoint e5
    python examples/vertex_predict.py --project PROJECT --region europe-west1 --endpoint e5 'query: hello' 'query: hi'

It needs `pip install google-cloud-aiplatform numpy` and `gcloud auth application-default login`. Models of the e5
family want `query: ` before each sentence.
"""

from __future__ import annotations

import argparse

import numpy as np
from google.api_core.exceptions import GoogleAPIError
from google.cloud import aiplatform

SENTENCES = (
    "query: 日本の薔薇農家",
    "query: 食べられる薔薇を育てている農家",
    "query: バラの花束を贈る",
    "query: 今日の東京の天気は雨です",
    "query: 明日は傘が必要でしょう",
    "query: 量子コンピュータの仕組み",
)


def main() -> None:
    """Ask the endpoint once, and print the cosine of each sentence to each other."""
    parser = argparse.ArgumentParser(description="Print cosines between sentences, from an endpoint on Vertex AI.")
    parser.add_argument("--project", required=True, help="the project's id")
    parser.add_argument("--region", required=True, help="the endpoint's region, such as europe-west1")
    parser.add_argument("--endpoint", required=True, help="the endpoint's id: endpoint.name in vertex.yaml")
    parser.add_argument("sentences", nargs="*", default=SENTENCES, help="two or more; some in Japanese by default")
    asked = parser.parse_args()

    aiplatform.init(project=asked.project, location=asked.region)
    try:
        endpoint = aiplatform.Endpoint(asked.endpoint)  # it finds out whether the endpoint has an address of its own
        predictions = endpoint.predict(instances=list(asked.sentences), parameters={"normalize": True}).predictions
    except GoogleAPIError as err:
        parser.exit(1, f"{err}\n")

    vectors = np.array(predictions, dtype=np.float32)  # [sentences, dimension], unit length
    cosines = vectors @ vectors.T
    print("   " + "".join(f"{number:>7}" for number in range(1, len(vectors) + 1)))
    for number, (row, sentence) in enumerate(zip(cosines, asked.sentences, strict=True), 1):
        print(f"{number:>3}" + "".join(f"{cosine:>7.3f}" for cosine in row) + f"  {sentence}")


if __name__ == "__main__":
    main()
