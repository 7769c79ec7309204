"""Google's services of pipelines and schedules, as far as this project uses them, over gRPC on 127.0.0.1.

It keeps what it is sent and runs nothing: what the steps do is tried by running their command lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.cloud import aiplatform_v1
from google.cloud.aiplatform_v1.services.pipeline_service.transports import PipelineServiceGrpcTransport
from google.cloud.aiplatform_v1.services.schedule_service.transports import ScheduleServiceGrpcTransport
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from vertex.pipeline_run import PipelineApi

SETTINGS = {
    "project": "my-project",
    "region": "europe-west1",
    "model": {"name": "minilm", "image": "europe-west1-docker.pkg.dev/my-project/models/server:1"},
    "endpoint": {"name": "minilm"},
}
PARENT = "projects/my-project/locations/europe-west1"
_PACKAGE = "google.cloud.aiplatform.v1"


@dataclass
class Kept:
    """What the services were sent.

    Attributes:
        jobs: Runs that were begun.
        schedules: Schedules that there are.
        calls: Names of the methods, in order.
        states: What the next looks at a run see; the last one stays.
        unavailable: Names of methods; the next call of each is done, but its answer is UNAVAILABLE.
    """

    jobs: list[aiplatform_v1.PipelineJob] = field(default_factory=list)
    schedules: list[aiplatform_v1.Schedule] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    states: list[aiplatform_v1.PipelineState] = field(default_factory=list)
    unavailable: list[str] = field(default_factory=list)

    def create_pipeline_job(self, request: Any, context: object) -> aiplatform_v1.PipelineJob:  # noqa: ANN401
        """Keep a run."""
        self.calls.append("CreatePipelineJob")
        assert request.parent == PARENT
        job = aiplatform_v1.PipelineJob(request.pipeline_job)
        job.name = f"{PARENT}/pipelineJobs/{request.pipeline_job_id}"
        self.jobs.append(job)
        return job

    def get_pipeline_job(self, request: Any, context: object) -> aiplatform_v1.PipelineJob:  # noqa: ANN401
        """Tell a run's next state."""
        (job,) = [one for one in self.jobs if one.name == request.name]
        job.state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return job

    def create_schedule(self, request: Any, context: object) -> aiplatform_v1.Schedule:  # noqa: ANN401
        """Keep a schedule."""
        self.calls.append("CreateSchedule")
        schedule = aiplatform_v1.Schedule(request.schedule)
        schedule.name = f"{PARENT}/schedules/{self.calls.count('CreateSchedule')}"
        self.schedules.append(schedule)
        return schedule

    def list_schedules(self, request: Any, context: object) -> aiplatform_v1.ListSchedulesResponse:  # noqa: ANN401
        """Tell the schedules of a display name."""
        found = [one for one in self.schedules if request.filter == f'display_name="{one.display_name}"']
        return aiplatform_v1.ListSchedulesResponse(schedules=found)

    def delete_schedule(self, request: Any, context: object) -> operations_pb2.Operation:  # noqa: ANN401
        """Forget a schedule."""
        self.calls.append("DeleteSchedule")
        self.schedules = [one for one in self.schedules if one.name != request.name]
        operation = operations_pb2.Operation(name=f"{PARENT}/operations/1", done=True)
        operation.response.Pack(empty_pb2.Empty())
        return operation

    def answering(self, name: str, call: Callable[[Any, grpc.ServicerContext], Any]) -> Callable[..., Any]:
        """Return a method of a service, which answers UNAVAILABLE when it is told to."""

        def answer(request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401
            answer = call(request, context)
            if name in self.unavailable:
                self.unavailable.remove(name)
                context.abort(grpc.StatusCode.UNAVAILABLE, "broken pipe")
            return answer

        return answer


@contextmanager
def pipeline_api() -> Iterator[tuple[PipelineApi, Kept]]:
    """Start the services; yields Google's clients of them, and what they keep."""
    kept = Kept()
    server = grpc.server(ThreadPoolExecutor(2))
    methods = {
        "PipelineService": {
            "CreatePipelineJob": (kept.create_pipeline_job, aiplatform_v1.CreatePipelineJobRequest),
            "GetPipelineJob": (kept.get_pipeline_job, aiplatform_v1.GetPipelineJobRequest),
        },
        "ScheduleService": {
            "CreateSchedule": (kept.create_schedule, aiplatform_v1.CreateScheduleRequest),
            "ListSchedules": (kept.list_schedules, aiplatform_v1.ListSchedulesRequest),
            "DeleteSchedule": (kept.delete_schedule, aiplatform_v1.DeleteScheduleRequest),
        },
    }
    for service, named in methods.items():
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(kept.answering(name, call), request.deserialize, _serialized)
            for name, (call, request) in named.items()
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(f"{_PACKAGE}.{service}", handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    try:
        pipelines = aiplatform_v1.PipelineServiceClient(transport=PipelineServiceGrpcTransport(channel=channel))
        schedules = aiplatform_v1.ScheduleServiceClient(transport=ScheduleServiceGrpcTransport(channel=channel))
        yield PipelineApi(PARENT, pipelines, schedules), kept
    finally:
        channel.close()
        server.stop(None).wait(10)


def _serialized(message: Any) -> bytes:  # noqa: ANN401 -- a message of the SDK, or one of protobuf's own
    content: bytes = (
        message.SerializeToString() if hasattr(message, "SerializeToString") else message._pb.SerializeToString()
    )
    return content
