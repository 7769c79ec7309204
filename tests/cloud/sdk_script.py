"""A script as a user of Google's SDK writes it: the whole life of a model on shared and dedicated endpoints.

It knows nothing of any stand-in: where it is led to is its environment's matter. It takes its images and its texts as
JSON on the standard input, and writes what it saw as JSON to the standard output.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from google.cloud import aiplatform

READY = ["python", "/home/model-server/serving/ready.py"]
REGION = "us-central1"


def upload(name: str, given: dict[str, Any], **arguments: Any) -> Any:  # noqa: ANN401
    """Upload a model with every setting of a container that the SDK has."""
    return aiplatform.Model.upload(
        display_name=name,
        serving_container_image_uri=given["image"],
        serving_container_predict_route=f"/predictions/{given['served_as']}",
        serving_container_health_route="/ping",
        serving_container_ports=[7080],
        serving_container_environment_variables={"MARVEC_LOG_LEVEL": "info"},
        serving_container_shared_memory_size_mb=64,
        serving_container_deployment_timeout=900,
        serving_container_startup_probe_exec=[*READY, "--wait", "170"],
        serving_container_startup_probe_period_seconds=180,
        serving_container_startup_probe_timeout_seconds=180,
        serving_container_health_probe_exec=READY,
        serving_container_health_probe_period_seconds=30,
        serving_container_health_probe_timeout_seconds=30,
        labels={"team": "search"},
        **arguments,
    )


def large(megabytes: float) -> list[dict[str, str]]:
    """Return instances that make a body of that size."""
    return [{"text": "word " * 20_000} for _ in range(round(megabytes * 10))]


def refusal(endpoint: Any, instances: list[dict[str, str]]) -> str:  # noqa: ANN401
    """Return what the service says of a request that it does not take."""
    try:
        endpoint.predict(instances=instances)
    except Exception as err:
        return str(err)
    return "nothing: it was taken"


def shared(seen: dict[str, Any], given: dict[str, Any]) -> Any:  # noqa: ANN401
    """Serve on a shared endpoint, then a second version beside the first; returns the model."""
    model = upload("embedder", given["first"], model_id="embedder")
    endpoint = aiplatform.Endpoint.create(display_name="search", endpoint_id="search")
    model.deploy(endpoint=endpoint, machine_type="n1-standard-4", min_replica_count=1, max_replica_count=2)
    texts = given["texts"]
    prediction = endpoint.predict(instances=texts)
    seen["vectors"] = prediction.predictions
    seen["model"] = [prediction.model_resource_name, prediction.model_version_id]
    many = endpoint.predict(instances=[f"text {i}" for i in range(101)], parameters={"outputDimensionality": 16})
    seen["many"] = [len(many.predictions), sorted({len(vector) for vector in many.predictions})]
    seen["b64"] = endpoint.predict(instances=[{"data": {"b64": given["b64"]}}]).predictions
    seen["large"] = len(endpoint.predict(instances=large(1.4)).predictions)
    seen["too_large"] = refusal(endpoint, large(1.6))
    seen["bad"] = refusal(endpoint, [{"txt": "x"}])
    body = json.dumps({"instances": texts}).encode()
    raw = endpoint.raw_predict(body=body, headers={"Content-Type": "application/json"})
    seen["raw"] = raw.json()["predictions"]
    seen["raw_headers"] = {name: raw.headers[name] for name in raw.headers if name.lower().startswith("x-vertex")}

    version = upload(
        "embedder",
        given["second"],
        parent_model=model.resource_name,
        is_default_version=False,
        version_aliases=["canary"],
    )
    seen["version"] = [version.version_id, list(version.version_aliases)]
    canary = aiplatform.Model(f"{model.resource_name}@canary")
    canary.deploy(endpoint=endpoint, machine_type="n1-standard-2", traffic_percentage=20)
    answers = [endpoint.predict(instances=["x"]).model_version_id for _ in range(100)]
    seen["split"] = {number: answers.count(number) for number in ("1", "2")}
    first_id, second_id = (
        next(one.id for one in endpoint.list_models() if one.model_version_id == number) for number in ("1", "2")
    )
    endpoint.undeploy(first_id, traffic_split={second_id: 100})
    seen["left"] = [one.model_version_id for one in endpoint.list_models()]
    endpoint.undeploy_all()
    endpoint.delete()
    return model


def dedicated(seen: dict[str, Any], model: Any) -> None:  # noqa: ANN401
    """Serve the second version on a dedicated endpoint, which takes larger requests."""
    endpoint = aiplatform.Endpoint.create(display_name="large", endpoint_id="large", dedicated_endpoint_enabled=True)
    canary = aiplatform.Model(f"{model.resource_name}@canary")
    canary.deploy(endpoint=endpoint, machine_type="n1-standard-2")
    endpoint = aiplatform.Endpoint("large")
    seen["dns"] = endpoint.dedicated_endpoint_dns
    seen["dedicated_large"] = len(endpoint.predict(instances=large(1.6), use_dedicated_endpoint=True).predictions)
    endpoint.delete(force=True)


def main() -> None:
    """Run it all, and tidy up."""
    given, seen = json.load(sys.stdin), dict[str, Any]()
    aiplatform.init(project=os.environ["PROJECT"], location=REGION, api_transport=os.environ["TRANSPORT"])
    model = shared(seen, given)
    dedicated(seen, model)
    model.delete()
    seen["models"] = [one.display_name for one in aiplatform.Model.list()]
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
