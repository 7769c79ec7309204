"""A compiled pipeline with what it is given: as Google's API takes it, once or on a schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from google.api_core.client_options import ClientOptions
from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1 import PipelineJob, PipelineState, Schedule
from pydantic import TypeAdapter

from vertex.api import READ
from vertex.errors import AbsentError, UnavailableError, VertexError
from vertex.found import LABEL, MADE_HERE
from vertex.settings import VertexSettings

ENDPOINT = "marvec-endpoint"
BATCH = "marvec-batch"
_PACK = "pack"
_TIMEOUT_S = 60.0
ENDED = (
    PipelineState.PIPELINE_STATE_SUCCEEDED,
    PipelineState.PIPELINE_STATE_FAILED,
    PipelineState.PIPELINE_STATE_CANCELLED,
)


@dataclass(frozen=True)
class PipelineRun:
    """One pipeline with its parameters.

    Attributes:
        spec: What the compiler wrote.
        settings: Go to every step, as they were checked here.
        root: Folder for what the steps make, `gs://BUCKET/FOLDER`.
        parameters: Those of the pipeline but `settings`.
        service_account: Whom the steps act as; None for Google's default.
        cache: Whether an archive of the same model, options and settings is taken from an earlier run.

    Raises:
        VertexError: Parameters are missing or unknown, or the root is no folder.
    """

    spec: Mapping[str, object]
    settings: VertexSettings
    root: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    service_account: str | None = None
    cache: bool = False

    def __post_init__(self) -> None:
        if not self.root.startswith("gs://"):
            raise VertexError(f"--root: expected gs://BUCKET/FOLDER, got {self.root!r}")
        known = _mapping(self.spec, "root", "inputDefinitions", "parameters")
        for name in self.parameters:
            if name not in known or name == "settings":
                raise VertexError(f"--parameter {name}: unknown to {self.name}; known: {', '.join(self._named(known))}")
        for name in self._named(known):
            if name not in self.parameters and not _mapping(known, name).get("isOptional"):
                raise VertexError(f"{self.name} needs --parameter {name}=…")

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return str(_mapping(self.spec, "pipelineInfo")["name"])

    def job(self) -> PipelineJob:
        """Return what creates a run of it."""
        settings = TypeAdapter(VertexSettings).dump_json(self.settings, exclude_defaults=True).decode()
        spec = json.loads(json.dumps(self.spec))
        if self.cache and _PACK in spec["root"]["dag"]["tasks"]:
            spec["root"]["dag"]["tasks"][_PACK]["cachingOptions"] = {"enableCache": True}
        return PipelineJob(
            display_name=self.name,
            pipeline_spec=spec,
            runtime_config=PipelineJob.RuntimeConfig(
                gcs_output_directory=self.root,
                parameter_values={"settings": settings, **self.parameters},
                failure_policy=aiplatform_v1.PipelineFailurePolicy.PIPELINE_FAILURE_POLICY_FAIL_FAST,
            ),
            service_account=self.service_account or "",
            labels=MADE_HERE,
        )

    def schedule(self, parent: str, name: str, cron: str) -> Schedule:
        """Return what runs it again and again, never twice at once.

        Args:
            parent: `projects/P/locations/L`.
            name: The schedule's display name.
            cron: As cron writes it, in UTC, or after `TZ=Europe/Berlin `.
        """
        return Schedule(
            display_name=name,
            cron=cron,
            max_concurrent_run_count=1,
            create_pipeline_job_request=aiplatform_v1.CreatePipelineJobRequest(parent=parent, pipeline_job=self.job()),
        )

    def _named(self, known: Mapping[str, object]) -> list[str]:
        return [name for name in known if name != "settings"]


@dataclass(frozen=True)
class PipelineApi:
    """Google's API of pipelines and schedules.

    Attributes:
        parent: Of what is made, `projects/P/locations/L`.
        pipelines: Google's client of pipelines.
        schedules: Google's client of schedules.
    """

    parent: str
    pipelines: aiplatform_v1.PipelineServiceClient
    schedules: aiplatform_v1.ScheduleServiceClient

    @classmethod
    def connect(cls, settings: VertexSettings) -> PipelineApi:
        """Make the clients.

        Args:
            settings: Project, region and transport.
        """
        options = ClientOptions(api_endpoint=f"{settings.region}-aiplatform.googleapis.com")
        return cls(
            settings.location,
            aiplatform_v1.PipelineServiceClient(client_options=options, transport=settings.api_transport),
            aiplatform_v1.ScheduleServiceClient(client_options=options, transport=settings.api_transport),
        )

    def submit(self, job: PipelineJob, run_id: str) -> PipelineJob:
        """Begin a run. It is never sent twice.

        Args:
            job: The run.
            run_id: Last part of its name; chosen here, so that it is known even when no answer comes.
        """
        return self.pipelines.create_pipeline_job(
            parent=self.parent, pipeline_job=job, pipeline_job_id=run_id, retry=None, timeout=_TIMEOUT_S
        )

    def run(self, name: str) -> PipelineJob:
        """Return a run as it stands."""
        return self.pipelines.get_pipeline_job(name=name, retry=READ, timeout=_TIMEOUT_S)

    def scheduled(self, name: str) -> list[Schedule]:
        """Return the schedules of a display name.

        Args:
            name: The display name.

        Raises:
            VertexError: One of them was made by somebody else.
        """
        request = aiplatform_v1.ListSchedulesRequest(parent=self.parent, filter=f'display_name="{name}"')
        there = list(self.schedules.list_schedules(request=request, retry=READ, timeout=_TIMEOUT_S))
        for one in there:
            # A schedule has no labels, but what it runs has.
            if one.create_pipeline_job_request.pipeline_job.labels.get(LABEL) != MADE_HERE[LABEL]:
                raise VertexError(
                    f"the schedule {name} ({one.name}) was not made by marvec, so it is left alone: choose another "
                    "name, or delete it in the console"
                )
        return there

    def put_schedule(self, schedule: Schedule, *, replace: bool) -> Schedule:
        """Create a schedule; one of its name is deleted afterwards.

        Args:
            schedule: What is created.
            replace: Whether there may be one of its name.

        Raises:
            VertexError: There is one of its name, or one that was made by somebody else.
        """
        there = self.scheduled(schedule.display_name)
        if there and not replace:
            raise VertexError(
                f"there is a schedule {schedule.display_name} ({there[0].cron}): --replace puts this in its place"
            )
        made = self.schedules.create_schedule(parent=self.parent, schedule=schedule, retry=None, timeout=_TIMEOUT_S)
        self._delete(there)
        return made

    def delete_schedules(self, name: str) -> int:
        """Delete the schedules of a display name; runs that have begun go on.

        Args:
            name: The display name.

        Returns:
            How many there were.

        Raises:
            VertexError: There is none (AbsentError), or one that was made by somebody else.
        """
        there = self.scheduled(name)
        if not there:
            raise AbsentError(f"there is no schedule {name}")
        self._delete(there)
        return len(there)

    def _delete(self, schedules: list[Schedule]) -> None:
        for schedule in schedules:
            deletion = self.schedules.delete_schedule(name=schedule.name, retry=None, timeout=_TIMEOUT_S)
            try:
                deletion.result(timeout=_TIMEOUT_S)
            except futures.TimeoutError as err:
                raise UnavailableError(f"{schedule.name} is still being deleted: look again in a while") from err


def read_spec(file: Path) -> Mapping[str, object]:
    """Read what the compiler wrote.

    Args:
        file: YAML.

    Raises:
        VertexError: It cannot be read, or is something else.
    """
    try:
        content: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as err:
        raise VertexError(f"{file}: {err.strerror or err}: python -m vertex.pipeline compile {file} makes it") from err
    except (UnicodeDecodeError, yaml.YAMLError) as err:
        raise VertexError(f"{file} is no YAML ({str(err).splitlines()[0]})") from err
    if not isinstance(content, dict) or not {"pipelineInfo", "root", "deploymentSpec"} <= content.keys():
        raise VertexError(f"{file} is no compiled pipeline: python -m vertex.pipeline compile {file} makes one")
    return content


def _mapping(content: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content
