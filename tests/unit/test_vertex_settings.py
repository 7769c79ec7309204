"""The settings file: what it may hold, and the one line that is said of what it may not."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from vertex.errors import VertexError
from vertex.settings import BatchSettings, DeploymentSettings, from_mapping, read

IMAGE = "europe-west1-docker.pkg.dev/my-project/models/minilm:1.0"
LEAST = f"""
project: my-project
region: europe-west1
model:
  name: minilm
  image: {IMAGE}
endpoint:
  name: minilm
"""
KEY = "projects/p/locations/{}/keyRings/r/cryptoKeys/k"
KEY_FORM = "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY"
ID = "lower-case letters, digits and '-', at most 63, a letter first"


def changed(path: str, value: object) -> dict[str, object]:
    """Return the least settings with one value of another kind."""
    settings: dict[str, object] = {
        "project": "my-project",
        "region": "europe-west1",
        "model": {"name": "minilm", "image": IMAGE},
        "endpoint": {"name": "minilm"},
        "deployment": {},
        "batch": {},
    }
    settings = copy.deepcopy(settings)
    section: dict[str, object] = settings
    *parents, key = path.split(".")
    for parent in parents:
        inner = section[parent]
        assert isinstance(inner, dict)
        section = inner
    section[key] = value
    return settings


def test_the_least_that_must_be_said(tmp_path: Path) -> None:
    file = tmp_path / "vertex.yaml"
    file.write_text(LEAST)
    settings = read(file)
    assert (settings.project, settings.region, settings.model.image) == ("my-project", "europe-west1", IMAGE)
    assert settings.endpoint.dedicated is False
    assert (settings.model.task, settings.model.environment, settings.model.schema_folder) == ("embedding", {}, None)
    assert (settings.api_transport, settings.batch) == ("grpc", BatchSettings(replicas=1, instances_per_request=64))
    assert settings.deployment == DeploymentSettings()
    assert settings.deployment.machine == "n1-standard-4"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.image", "europe-docker.pkg.dev/my-project/models/minilm:1.0"),
        ("model.image", "registry.example.com/minilm@sha256:" + "0" * 64),
        ("model.artifact_uri", "gs://bucket/models/minilm"),
        ("model.labels", {"team": "search", "cost-centre": "42"}),
        ("model.version_aliases", ["v2", "canary"]),
        ("kms_key", KEY.format("europe-west1")),
        ("endpoint.log_table", "bq://my-project.logs.requests"),
        ("deployment.service_account", "serving@my-project.iam.gserviceaccount.com"),
        ("deployment.traffic_per_cent", 0),
        ("model.name", "a"),
        ("model.name", "a" * 62 + "1"),
        ("endpoint.name", "e5-small-2"),
        ("endpoint.dedicated", True),
        ("model.served_as", "MiniLM_v1.2"),
        ("model.environment", {"MARVEC_WORKERS": "2", "_x": "", "lower": "東京, 大阪"}),
        ("model.schema_folder", "gs://bucket"),
        ("batch", {"replicas": 20, "instances_per_request": 1024}),
        ("api_transport", "rest"),
    ],
)
def test_what_may_be_said(path: str, value: object) -> None:
    from_mapping(changed(path, value), "vertex.yaml")


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("projekt", "x", "projekt: unknown key"),
        ("project", "My Project", "project: expected a project's id, such as my-project-1, got 'My Project'"),
        (
            "region",
            "Europe",
            "region: 'Europe' is no region of Vertex AI; such as europe-west9, europe-west8, europe-west6",
        ),
        ("model", None, "model: Input should be an object, got None"),
        ("model.image", "minilm:1.0", "model.image: expected HOST/PATH/NAME:TAG, got 'minilm:1.0'"),
        ("model.image", IMAGE.removesuffix(":1.0"), f"model.image: expected HOST/PATH/NAME:TAG, got '{IMAGE[:-4]}'"),
        (
            "model.image",
            "us-docker.pkg.dev/a/b:1",
            "model.image is in us, which region europe-west1 cannot pull from: push it to "
            "europe-west1-docker.pkg.dev or europe-docker.pkg.dev",
        ),
        ("model.artifact_uri", "/models", "model.artifact_uri: expected gs://BUCKET/FOLDER, got '/models'"),
        (
            "model.labels",
            {"Team": "a"},
            "model.labels: Team: 'a': expected lower-case letters, digits, '_' and '-', at most 63, a letter first in "
            "a key",
        ),
        ("model.labels", {f"k{i}": "" for i in range(65)}, "model.labels: at most 60 labels, got 65"),
        (
            "model.version_aliases",
            ["default"],
            "model.version_aliases.0: expected letters, digits and '-', a letter first, not default, got 'default'",
        ),
        ("endpoint.log_share", 2, "endpoint.log_share: Input should be less than or equal to 1, got 2"),
        ("deployment.min_replicas", 0, "deployment.min_replicas: Input should be greater than or equal to 1, got 0"),
        ("deployment.min_replicas", "1", "deployment.min_replicas: Input should be a valid integer, got '1'"),
        (
            "deployment.traffic_per_cent",
            101,
            "deployment.traffic_per_cent: Input should be less than or equal to 100, got 101",
        ),
        (
            "deployment",
            {"min_replicas": 3, "max_replicas": 2},
            "deployment: max_replicas 2 is less than min_replicas 3",
        ),
        (
            "deployment",
            {"machine": "n1-standard-16", "accelerator": "NVIDIA_TESLA_V100", "accelerator_count": 1},
            "deployment: n1-standard-16 does not take 1 x NVIDIA_TESLA_V100; allowed counts: 2, 4, 8",
        ),
        ("kms_key", KEY.format("us-east1"), "kms_key is in us-east1: expected a key in europe-west1"),
        ("kms_key", "k", f"kms_key: expected {KEY_FORM}, got 'k'"),
        (
            "model.task",
            "sentiment",
            "model.task: Input should be 'embedding' or 'classification', got 'sentiment'",
        ),
        ("model.name", "MiniLM", f"model.name: expected {ID}, got 'MiniLM'"),
        ("model.name", "1model", f"model.name: expected {ID}, got '1model'"),
        ("model.name", "a" * 64, f"model.name: expected {ID}, got '{'a' * 64}'"),
        ("endpoint.name", "search-", f"endpoint.name: expected {ID}, got 'search-'"),
        ("endpoint.name", "my_search", f"endpoint.name: expected {ID}, got 'my_search'"),
        ("endpoint.name", 7, "endpoint.name: Input should be a valid string, got 7"),
        ("endpoint.dedicated", "yes", "endpoint.dedicated: Input should be a valid boolean, got 'yes'"),
        ("model.served_as", "a/b", "model.served_as: expected a model's name on the server, got 'a/b'"),
        (
            "model.environment",
            {"AIP_HTTP_PORT": "8080"},
            "model.environment: AIP_HTTP_PORT: expected a variable's name; those that begin with AIP_ are Vertex AI's "
            "own",
        ),
        (
            "model.environment",
            {"A-B": "1"},
            "model.environment: A-B: expected a variable's name; those that begin with AIP_ are Vertex AI's own",
        ),
        ("model.environment", {"A": 1}, "model.environment.A: Input should be a valid string"),
        ("model.environment", ["A=1"], "model.environment: Input should be an object"),
        ("model.schema_folder", "bucket", "model.schema_folder: expected gs://BUCKET/FOLDER, got 'bucket'"),
        (
            "model.labels",
            {"made-with": "terraform"},
            "model.labels: made-with: made-with and what begins with marvec- are marvec's own labels",
        ),
        ("model.startup_timeout_s", 1801, "model: startup_timeout_s 1801 is more than deployment_timeout_s 1800"),
        ("model.version_aliases", ["a1", "a1"], "model: version_aliases holds one of them twice"),
        ("endpoint.log_share", 0.0, "endpoint.log_share: Input should be greater than 0, got 0.0"),
        ("batch.replicas", 0, "batch.replicas: Input should be greater than or equal to 1, got 0"),
        (
            "batch.instances_per_request",
            1025,
            "batch.instances_per_request: Input should be less than or equal to 1024, got 1025",
        ),
        ("batch.size", 1, "batch.size: unknown key"),
        ("api_transport", "http", "api_transport: Input should be 'grpc' or 'rest', got 'http'"),
    ],
)
def test_what_may_not_be_said(path: str, value: object, reason: str) -> None:
    with pytest.raises(VertexError) as caught:
        from_mapping(changed(path, value), "vertex.yaml")
    assert str(caught.value) == f"vertex.yaml: {reason}"


def test_files_that_hold_no_settings(tmp_path: Path) -> None:
    file = tmp_path / "vertex.yaml"
    with pytest.raises(
        VertexError,
        match=r"^there is no .*vertex\.yaml: write one as docs/vertex\.md shows, or name it with --settings$",
    ):
        read(file)
    file.write_text("project: [")
    with pytest.raises(VertexError, match=r"vertex\.yaml is no YAML \("):
        read(file)
    file.write_text("- project")
    with pytest.raises(VertexError, match=r"vertex\.yaml: expected a mapping with project, region, model and endpoint"):
        read(file)
    file.write_text("project: my-project\nregion: europe-west1\nendpoint: {name: a}\n")
    with pytest.raises(VertexError, match=r"vertex\.yaml: model: missing"):
        read(file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("model: {2024-01-01: x}", "keys must be str, int, float, bool or None, not datetime.date"),
        ("project: &a [*a]", "Circular reference detected"),
    ],
)
def test_what_yaml_has_and_json_has_not(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "vertex.yaml"
    file.write_text(text)
    with pytest.raises(VertexError) as caught:
        read(file)
    assert str(caught.value) == f"{file}: expected keys and values as JSON has them ({reason})"


def test_the_names_of_what_is_made() -> None:
    settings = from_mapping(changed("model.name", "e5"), "vertex.yaml")
    assert settings.location == "projects/my-project/locations/europe-west1"
    assert settings.model_name == "projects/my-project/locations/europe-west1/models/e5"
    assert settings.endpoint_name == "projects/my-project/locations/europe-west1/endpoints/minilm"


@pytest.mark.parametrize("text", ["[" * 3000, "2024-13-45: 1", "a: " + "9" * 5000], ids=["deep", "date", "long"])
def test_what_yaml_chokes_on_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "vertex.yaml"
    file.write_text(text)
    with pytest.raises(VertexError, match=r"^[^\n]*vertex\.yaml[^\n]*$"):
        read(file)
