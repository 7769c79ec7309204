"""A batch prediction as a user of Google's SDK writes it; as sdk_script.py, it knows nothing of any stand-in."""

from __future__ import annotations

import json
import os
import sys

from google.cloud import aiplatform


def main() -> None:
    """Upload, run the job, and tell what became of it."""
    given = json.load(sys.stdin)
    aiplatform.init(project=os.environ["PROJECT"], location="us-central1", api_transport=os.environ["TRANSPORT"])
    model = aiplatform.Model.upload(
        display_name="batch embedder",
        artifact_uri=given["artifact_uri"],
        serving_container_image_uri=given["image"],
        serving_container_predict_route=f"/predictions/{given['served_as']}",
        serving_container_health_route="/ping",
        serving_container_ports=[7080],
        serving_container_startup_probe_exec=["python", "/home/model-server/serving/ready.py", "--wait", "170"],
        serving_container_startup_probe_period_seconds=180,
        serving_container_startup_probe_timeout_seconds=180,
    )
    job = model.batch_predict(
        job_display_name="all texts",
        gcs_source=given["source"],
        gcs_destination_prefix=given["destination"],
        instances_format="jsonl",
        predictions_format="jsonl",
        machine_type="n1-standard-4",
        starting_replica_count=1,
        max_replica_count=1,
        batch_size=2,
        model_parameters={"outputDimensionality": 8},
    )
    seen = {
        "state": job.state.name,
        "folder": job.output_info.gcs_output_directory,
        "succeeded": job.completion_stats.successful_count,
        "failed": job.completion_stats.failed_count,
    }
    job.delete()
    model.delete()
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
