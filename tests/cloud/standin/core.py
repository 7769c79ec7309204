"""One core under both wires: trouble, the log of calls, and the services."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, TypeVar

from google.cloud import aiplatform_v1
from google.protobuf import empty_pb2
from google.protobuf.message import Message
from proto import Message as SdkMessage

from tests.cloud.standin.calls import Call, CallLog
from tests.cloud.standin.deployments import Deployer
from tests.cloud.standin.endpoints import Endpoints
from tests.cloud.standin.errors import ApiError, Code, Cut
from tests.cloud.standin.images import Image
from tests.cloud.standin.jobs import Jobs
from tests.cloud.standin.messages import to_json
from tests.cloud.standin.methods import Method, all_methods, snake
from tests.cloud.standin.models import Models
from tests.cloud.standin.names import Project
from tests.cloud.standin.operations import Operations
from tests.cloud.standin.predictions import Asked, Predictions, RawAnswer, http_body
from tests.cloud.standin.storage import Storage
from tests.cloud.standin.trouble import Trouble

_Answer = TypeVar("_Answer", Message, RawAnswer)


@dataclass(frozen=True)
class Options:
    """What a stand-in is made with.

    Attributes:
        images: What stands for an image, by its URI; others cannot be pulled.
        project: The one that there is.
        storage: The address of an emulator of Cloud Storage; None for none.
        upload_s: How long an upload takes.
        ready_limit_s: How long a container may take at most, whatever its spec says.
        local_dns: Whether dedicated endpoints are at 127.0.0.1:PORT, so that they are reached without the proxy.
    """

    images: Mapping[str, Image]
    project: Project = field(default_factory=Project)
    storage: str | None = None
    upload_s: float = 0.3
    ready_limit_s: float = 180.0
    local_dns: bool = False


class Core:
    """The API without its wires.

    Args:
        options: What it is made with.
        dedicated_dns: The address of dedicated endpoints; Google's own form when empty.

    Attributes:
        trouble: The control plane of tests.
        calls: The log of calls.
    """

    def __init__(self, options: Options, dedicated_dns: str) -> None:
        self.trouble = Trouble()
        self.calls = CallLog()
        lock = RLock()
        project = options.project
        self._storage = Storage(options.storage) if options.storage else None
        self._operations = Operations(project, self.trouble)
        self.deployer = Deployer(project, options.images, self._storage, options.ready_limit_s)
        self._models = Models(project, self._operations, lock, options.upload_s)
        self._endpoints = Endpoints(project, self._operations, lock, self._models, self.deployer, dedicated_dns)
        self._jobs = Jobs(project, self._operations, self._models, self.deployer, self._storage, self.trouble)
        self.predictions = Predictions(self._endpoints)
        services = (self._models, self._endpoints, self._jobs)
        self._handlers: dict[str, Callable[[Any], Message]] = {
            name: getattr(service, snake(name))
            for service in services
            for name in (method.name for method in all_methods())
            if hasattr(service, snake(name))
        }

    def call(self, method: Method, request: SdkMessage, wire: str, asked: Asked) -> Message:
        """Carry out a call.

        Args:
            method: Which.
            request: Protobuf's own message.
            wire: `grpc` or `rest`.
            asked: On what host, and how large.

        Raises:
            ApiError: It is refused.
            Cut: The connection is to be cut.
        """
        return self._logged(method.name, to_json(request), wire, lambda: self._dispatch(method.name, request, asked))

    def raw(self, method: Method, endpoint: str, body: bytes, content_type: str, wire: str, asked: Asked) -> RawAnswer:
        """Carry out a raw prediction that came over HTTP; raises as `call` does."""
        predict = self.predictions.raw_predict
        logged = {"endpoint": endpoint, "contentType": content_type}
        return self._logged(method.name, logged, wire, lambda: predict(endpoint, body, content_type, asked))

    def reset(self) -> None:
        """End every container and operation, and forget all models, endpoints, jobs, calls and troubles."""
        self.trouble.clear()
        self._jobs.stop()
        self._operations.clear()
        self.deployer.end_all()
        for service in (self._models, self._endpoints, self._jobs, self.calls):
            service.clear()

    def close(self) -> None:
        """End everything."""
        self.reset()
        self.deployer.close()
        if self._storage:
            self._storage.close()

    def _dispatch(self, name: str, request: SdkMessage, asked: Asked) -> Message:
        if name == "Predict":
            return self.predictions.predict(request, asked)
        if name in ("RawPredict", "StreamRawPredict"):
            return http_body(self.predictions.raw_message(request, asked))
        if name in self._handlers:
            # The services read the SDK's own messages, which wrap protobuf's.
            return self._handlers[name](getattr(aiplatform_v1, f"{name}Request").wrap(request))
        operation = getattr(self._operations, snake(name))(request)
        return operation if operation is not None else empty_pb2.Empty()

    def _logged(self, name: str, body: Mapping[str, Any], wire: str, carry_out: Callable[[], _Answer]) -> _Answer:
        outcome = "OK"
        try:
            cut = self.trouble.before(name)
            answer = carry_out()
            if cut:
                raise Cut
        except ApiError as err:
            outcome = err.code.name
            raise
        except Cut:
            outcome = "CUT"
            raise
        except Exception as err:
            outcome = Code.INTERNAL.name
            raise ApiError(Code.INTERNAL, f"the stand-in failed: {err!r}") from err
        finally:
            self.calls.add(Call(name, body, wire, outcome))
        return answer
