"""The settings file: what is uploaded, to which endpoint, on what; YAML in, frozen dataclasses out.

Everything that can be known to be wrong without asking Google is refused here, with what is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from vertex import machines
from vertex.errors import VertexError
from vertex.setting_values import (
    Account,
    Alias,
    Environment,
    Folder,
    Id,
    Image,
    Key,
    Labels,
    PerCent,
    Project,
    Region,
    Replicas,
    ServedName,
    Table,
    Task,
)

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
# Parts of the world whose Artifact Registry hosts serve all regions in them.
_CONTINENTS = ("us", "europe", "asia")


@dataclass(frozen=True, config=_STRICT)
class ModelSettings:
    """What is uploaded.

    Attributes:
        name: The model's id and display name; a later upload under it becomes a new version.
        image: The image, in the region's Artifact Registry.
        task: What it is for: `embedding` gives vectors, `classification` labels.
        served_as: NAME in `/predictions/NAME`; None for `name`.
        artifact_uri: Folder that the image fetches its archive from; None where it holds the model.
        description: For people.
        version_aliases: Names of this version beside its number.
        labels: Of the model.
        environment: Variables of the container.
        schema_folder: Where the schema files of the task are put; None for none.
        shared_memory_mb: /dev/shm of a container; None for Google's default.
        startup_timeout_s: How long a container may take to be READY.
        deployment_timeout_s: How long a deployment may take in all.
    """

    name: Id
    image: Image
    task: Task = "embedding"
    served_as: ServedName | None = None
    artifact_uri: Folder | None = None
    description: str = ""
    version_aliases: list[Alias] = field(default_factory=list)
    labels: Labels = field(default_factory=dict)
    environment: Environment = field(default_factory=dict)
    schema_folder: Folder | None = None
    shared_memory_mb: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    startup_timeout_s: Annotated[int, Field(ge=10, le=3600)] = 600
    deployment_timeout_s: Annotated[int, Field(ge=60, le=7200)] = 1800

    @model_validator(mode="after")
    def _fits(self) -> ModelSettings:
        if self.startup_timeout_s > self.deployment_timeout_s:
            least, most = self.startup_timeout_s, self.deployment_timeout_s
            raise ValueError(f"startup_timeout_s {least} is more than deployment_timeout_s {most}")
        if len(set(self.version_aliases)) < len(self.version_aliases):
            raise ValueError("version_aliases holds one of them twice")
        return self


@dataclass(frozen=True, config=_STRICT)
class EndpointSettings:
    """Where it is served.

    Attributes:
        name: The endpoint's id and display name; there is one of it, made when first needed.
        dedicated: An address of its own, which takes requests of 10 MB instead of 1.5 MB, and which
            `gcloud ai endpoints predict` does not reach.
        labels: Of the endpoint.
        log_table: Requests and responses are logged there, texts included; None for not at all.
        log_share: How many of them, above 0 and up to 1.
    """

    name: Id
    dedicated: bool = False
    labels: Labels = field(default_factory=dict)
    log_table: Table | None = None
    log_share: Annotated[float, Field(gt=0, le=1)] = 1.0


@dataclass(frozen=True, config=_STRICT)
class DeploymentSettings:
    """What it runs on.

    Attributes:
        machine: Machine type.
        accelerator: Accelerator in Vertex AI's words, such as NVIDIA_TESLA_T4; None for the machine's own or none.
        accelerator_count: How many; None for as many as the machine comes with, or one.
        min_replicas: Replicas that always run.
        max_replicas: Replicas at most; None for `min_replicas`.
        target_per_cent: Load from which another replica comes; None for what a full replica of the machine reaches.
        traffic_per_cent: Share of the endpoint's requests for this version.
        service_account: Whom the containers act as; None for Google's default.
        spot: Cheaper machines that may be taken away.
        access_logging: Log each request's line.
        container_logging: Keep what the containers print in Cloud Logging.
    """

    machine: str = "n1-standard-4"
    accelerator: str | None = None
    accelerator_count: Annotated[int, Field(ge=1, le=64)] | None = None
    min_replicas: Replicas = 1
    max_replicas: Replicas | None = None
    target_per_cent: PerCent | None = None
    traffic_per_cent: Annotated[int, Field(ge=0, le=100)] = 100
    service_account: Account | None = None
    spot: bool = False
    access_logging: bool = False
    container_logging: bool = True

    @model_validator(mode="after")
    def _fits(self) -> DeploymentSettings:
        try:
            machines.check(self.machine, self.accelerator, self.accelerator_count)
        except VertexError as err:
            raise ValueError(str(err)) from err
        if self.max_replicas is not None and self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas {self.max_replicas} is less than min_replicas {self.min_replicas}")
        return self


@dataclass(frozen=True, config=_STRICT)
class BatchSettings:
    """How batch predictions run; on the deployment's machine, with replicas of their own.

    Attributes:
        replicas: How many run; their number does not change during a job.
        instances_per_request: How many rows a replica is asked at once.
    """

    replicas: Replicas = 1
    instances_per_request: Annotated[int, Field(ge=1, le=1024)] = 64


@dataclass(frozen=True, config=_STRICT)
class VertexSettings:
    """The whole file.

    Attributes:
        project: The project's id.
        region: Region of all that is made.
        model: What is uploaded.
        endpoint: Where it is served.
        deployment: What it runs on.
        batch: How batch predictions run.
        kms_key: Encrypts model, endpoint and disks; in the same region.
        api_transport: How Google's API is spoken to: `grpc`, or `rest` where a proxy lets nothing else through.
    """

    project: Project
    region: Region
    model: ModelSettings
    endpoint: EndpointSettings
    deployment: DeploymentSettings = field(default_factory=DeploymentSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    kms_key: Key | None = None
    api_transport: Literal["grpc", "rest"] = "grpc"

    @property
    def location(self) -> str:
        """Parent of all that is made."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def model_name(self) -> str:
        """The model's resource name."""
        return f"{self.location}/models/{self.model.name}"

    @property
    def endpoint_name(self) -> str:
        """The endpoint's resource name."""
        return f"{self.location}/endpoints/{self.endpoint.name}"

    @model_validator(mode="after")
    def _in_one_region(self) -> VertexSettings:
        host = self.model.image.split("/")[0]
        place = host.removesuffix("-docker.pkg.dev")
        covering = [self.region, *(one for one in _CONTINENTS if self.region.startswith(f"{one}-"))]
        if place != host and place not in covering:
            allowed = " or ".join(f"{one}-docker.pkg.dev" for one in covering)
            raise ValueError(
                f"model.image is in {place}, which region {self.region} cannot pull from: push it to {allowed}"
            )
        if self.kms_key is not None and self.kms_key.split("/")[3] != self.region:
            raise ValueError(f"kms_key is in {self.kms_key.split('/')[3]}: expected a key in {self.region}")
        return self


def read(file: Path) -> VertexSettings:
    """Read the settings file.

    Args:
        file: YAML.

    Raises:
        VertexError: When it cannot be read, or a key or value is wrong; one line that names the first.
    """
    try:
        content: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise VertexError(f"there is no {file}: write one as docs/vertex.md shows, or name it with --settings") from err
    except OSError as err:
        raise VertexError(f"{file}: {err.strerror or err}") from err
    except (ValueError, RecursionError, yaml.YAMLError) as err:
        raise VertexError(f"{file} is no YAML ({str(err).splitlines()[0]})") from err
    return from_mapping(content, str(file))


def from_mapping(content: object, origin: str) -> VertexSettings:
    """Check what a settings file holds.

    Args:
        content: The parsed YAML.
        origin: The file's name, for messages.

    Raises:
        VertexError: As `read` does.
    """
    if not isinstance(content, Mapping):
        raise VertexError(f"{origin}: expected a mapping with project, region, model and endpoint")
    try:
        # As JSON: in its strict mode pydantic makes dataclasses of JSON's objects alone.
        return TypeAdapter(VertexSettings).validate_json(json.dumps(content, default=str))
    except ValidationError as err:
        raise VertexError(f"{origin}: {_first(err)}") from err
    except (TypeError, ValueError) as err:  # a date as a key, or a list that holds itself: YAML has them, JSON not
        raise VertexError(f"{origin}: expected keys and values as JSON has them ({err})") from err


def _first(err: ValidationError) -> str:
    problem = err.errors()[0]
    place = ".".join(str(step) for step in problem["loc"])
    told: Mapping[str, Callable[[], str]] = {
        "missing": lambda: "missing",
        "unexpected_keyword_argument": lambda: "unknown key",
        "value_error": lambda: problem["msg"].removeprefix("Value error, "),
    }
    # What stands in a container's environment may be a secret.
    got = "" if "environment" in problem["loc"] else f", got {problem['input']!r}"
    text = told.get(problem["type"], lambda: f"{problem['msg']}{got}")()
    return f"{place}: {text}" if place else text
