"""ModelService: models, their versions, aliases and labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from google.cloud import aiplatform_v1
from google.protobuf import empty_pb2
from google.protobuf.message import Message
from proto import Message as SdkMessage

from tests.cloud.standin.checks import SERVICE_ACCOUNT, check_container
from tests.cloud.standin.errors import ApiError, Code, invalid, not_found, precondition
from tests.cloud.standin.filters import chosen
from tests.cloud.standin.messages import copy, now, plain
from tests.cloud.standin.names import (
    ALIAS,
    MODEL_ID,
    Name,
    Project,
    check,
    check_display_name,
    check_labels,
    check_output_only,
    parse,
)
from tests.cloud.standin.operations import Operation, Operations

DEFAULT = "default"
_INPUTS = ("jsonl", "bigquery", "csv", "tf-record", "tf-record-gzip", "file-list")
_OUTPUTS = ("jsonl", "csv", "bigquery")
_OUTPUT_ONLY = ("version_id", "create_time", "update_time", "version_create_time", "deployed_models")


@dataclass
class Versions:
    """A model and its versions.

    Attributes:
        name: Of the model.
        labels: Of the model; a version's own are in its message.
        display_name: Of the model.
        description: Of the model.
        by_id: The versions' messages, with their own aliases and labels.
    """

    name: Name
    labels: dict[str, str]
    display_name: str
    description: str
    by_id: dict[str, Any] = field(default_factory=dict)

    def find(self, version: str) -> SdkMessage:
        """Return the version that a number or an alias names, the default one for none."""
        for number, message in self.by_id.items():
            if (version or DEFAULT) == number or (version or DEFAULT) in message.version_aliases:
                return message
        raise not_found(f"Model {self.name}@{version}")

    def move(self, aliases: list[str], to: SdkMessage) -> None:
        """Give a version some aliases; an alias that another version has moves."""
        for message in self.by_id.values():
            message.version_aliases = [one for one in message.version_aliases if one not in aliases]
        to.version_aliases = sorted({*to.version_aliases, *aliases})


class Models:
    """All models.

    Args:
        project: The one that there is.
        operations: Where uploads and deletes run.
        lock: Held while anything changes.
        upload_s: How long an upload takes.
    """

    def __init__(self, project: Project, operations: Operations, lock: RLock, upload_s: float) -> None:
        self._project = project
        self._operations = operations
        self._lock = lock
        self._upload_s = upload_s
        self._all: dict[str, Versions] = {}
        self._ids = itertools.count(4_000_000_000_000_000_001)
        # Set by the endpoints: what of a model is deployed, as pairs of a version's id and a reference.
        self.deployments_of: Callable[[str], list[tuple[str, Any]]] = lambda name: []

    def clear(self) -> None:
        """Forget all."""
        self._all.clear()

    def upload_model(self, request: SdkMessage) -> Message:
        """Begin the upload of a model, or of a version of one."""
        location = parse(request.parent, "", self._project)
        model = copy(request.model)
        self._check(model, location.location)
        if request.service_account:
            check(request.service_account, SERVICE_ACCOUNT, "service_account")
        known = None
        if request.parent_model:
            if request.model_id:
                raise invalid("model_id and parent_model exclude each other")
            known = self.record(request.parent_model)
            if known.name.location != location.location:
                raise invalid(f"parent_model {request.parent_model} is not in {location.location}")
            name = known.name
        else:
            if request.model_id:
                check(request.model_id, MODEL_ID, "model_id")
            name = Name(self._project, location.location, "models", request.model_id or str(next(self._ids)))
            if str(name) in self._all:
                raise ApiError(Code.ALREADY_EXISTS, f"Model {name} already exists.")
        metadata = aiplatform_v1.UploadModelOperationMetadata()

        def work(operation: Operation) -> SdkMessage:
            with self._lock:
                record = known or self._all.setdefault(
                    str(name), Versions(name, dict(model.labels), model.display_name, model.description)
                )
                version = self._add(record, model)
            return aiplatform_v1.UploadModelResponse(model=str(name), model_version_id=version.version_id)

        return self._operations.begin("UploadModel", str(name), metadata, work, delay_s=self._upload_s)

    def get_model(self, request: SdkMessage) -> Message:
        """Return one version of a model: the default one where none is named."""
        record = self.record(request.name)
        version = record.find(parse(request.name, "models", self._project).version)
        return plain(self._answer(record, version))

    def list_models(self, request: SdkMessage) -> Message:
        """Return the models of a location, each by its default version."""
        location = parse(request.parent, "", self._project)
        found = [
            self._answer(one, one.find(""))
            for one in list(self._all.values())
            if one.name.location == location.location
        ]
        page, token = chosen(found, request, ("model",))
        return plain(aiplatform_v1.ListModelsResponse(models=page, next_page_token=token))

    def list_model_versions(self, request: SdkMessage) -> Message:
        """Return a model's versions; their names hold the version's id."""
        record = self.record(request.name)
        found = [self._answer(record, version) for version in list(record.by_id.values())]
        for answer in found:
            answer.name = f"{answer.name}@{answer.version_id}"
        page, token = chosen(found, request, ())
        return plain(aiplatform_v1.ListModelVersionsResponse(models=page, next_page_token=token))

    def update_model(self, request: SdkMessage) -> Message:
        """Change a model's, or with `@` in the name a version's, own fields."""
        name = parse(request.model.name, "models", self._project)
        record, paths = self.record(request.model.name), set(request.update_mask.paths)
        of_model, of_version = {"display_name", "description", "labels"}, {"version_description", "labels"}
        allowed = of_version if name.version not in ("", "-") else of_model
        if not paths:
            raise invalid("update_mask: required")
        if not paths <= allowed:
            raise precondition(f"update_mask: {sorted(paths - allowed)} cannot be updated of {request.model.name}")
        check_labels(request.model.labels, "model")
        version = record.find(name.version if allowed is of_version else "")
        with self._lock:
            if allowed is of_version:
                for path in paths:
                    setattr(version, path, getattr(request.model, path))
            else:
                for path in paths:
                    value = getattr(request.model, path)
                    setattr(record, path, dict(value) if path == "labels" else value)
            version.version_update_time = version.update_time = now()
        return plain(self._answer(record, version))

    def merge_version_aliases(self, request: SdkMessage) -> Message:
        """Add aliases to a version, and with a leading `-` remove them."""
        name, record = parse(request.name, "models", self._project), self.record(request.name)
        if name.version not in record.by_id:
            raise invalid(f"{request.name}: expected a version's id after '@'")
        version = record.by_id[name.version]
        added = [one for one in request.version_aliases if not one.startswith("-")]
        removed = [one[1:] for one in request.version_aliases if one.startswith("-")]
        if not added and not removed:
            raise invalid("version_aliases: required")
        self._check_aliases([*added, *removed])
        if DEFAULT in removed:
            raise invalid("version_aliases: there must be exactly one default version: give it to another one")
        with self._lock:
            version.version_aliases = [one for one in version.version_aliases if one not in removed]
            record.move(added, version)
        return plain(self._answer(record, version))

    def delete_model(self, request: SdkMessage) -> Message:
        """Begin the end of a model with all its versions; it must not be deployed."""
        if parse(request.name, "models", self._project).version:
            raise invalid(f"{request.name}: expected a model's name, without a version")
        record = self.record(request.name)
        self._require_undeployed(record, None)
        return self._delete("DeleteModel", record, lambda: self._all.pop(str(record.name)))

    def delete_model_version(self, request: SdkMessage) -> Message:
        """Begin the end of one version, which must not be deployed, nor the only or the default one."""
        name, record = parse(request.name, "models", self._project), self.record(request.name)
        if not name.version.isdigit():
            raise invalid(f"{request.name}: expected a version's id after '@'")
        version = record.find(name.version)
        if len(record.by_id) == 1:
            raise precondition(f"{request.name} is the only version: delete the model instead.")
        if DEFAULT in version.version_aliases:
            raise precondition(f"{request.name} is the default version: move the alias to another one first.")
        self._require_undeployed(record, name.version)
        return self._delete("DeleteModelVersion", record, lambda: record.by_id.pop(name.version))

    def record(self, name: str) -> Versions:
        """Return a model by its name; a version in it is not looked at."""
        record = self._all.get(str(parse(name, "models", self._project)))
        if record is None:
            raise not_found(f"Model {name}")
        return record

    def version(self, name: str) -> tuple[Versions, Any]:
        """Return a model and the version that its name holds, the default one for none."""
        record = self.record(name)
        return record, record.find(parse(name, "models", self._project).version)

    def _check(self, model: SdkMessage, location: str) -> None:
        check_display_name(model.display_name, "model")
        check_output_only(model, _OUTPUT_ONLY, "model")
        check_labels(model.labels, "model")
        self._check_aliases(model.version_aliases)
        if model.name:
            raise invalid("model.name: output only: give model_id")
        if "container_spec" not in model:
            raise invalid("model.container_spec: required")
        check_container(model.container_spec, location)
        if model.artifact_uri and not model.artifact_uri.startswith("gs://"):
            raise invalid(f"model.artifact_uri: {model.artifact_uri!r}: expected gs://BUCKET/FOLDER")
        for uri in (
            model.predict_schemata.instance_schema_uri,
            model.predict_schemata.parameters_schema_uri,
            model.predict_schemata.prediction_schema_uri,
        ):
            if uri and not uri.startswith("gs://"):
                raise invalid(f"model.predict_schemata: {uri!r}: expected gs://BUCKET/FILE")

    def _check_aliases(self, aliases: list[str]) -> None:
        for alias in aliases:
            check(alias, ALIAS, "version_aliases")

    def _add(self, record: Versions, model: SdkMessage) -> SdkMessage:
        version = copy(model)
        version.version_id = str(max(map(int, record.by_id), default=0) + 1)
        version.version_aliases = []
        version.create_time = version.update_time = now()
        version.version_create_time = version.version_update_time = version.create_time
        version.supported_deployment_resources_types = [1]  # DEDICATED_RESOURCES; without it gcloud fails
        version.supported_input_storage_formats = list(_INPUTS)
        version.supported_output_storage_formats = list(_OUTPUTS)
        first = not record.by_id
        record.by_id[version.version_id] = version
        record.move([*model.version_aliases, *([DEFAULT] if first else [])], version)
        return version

    def _answer(self, record: Versions, version: SdkMessage) -> SdkMessage:
        answer = copy(version)
        answer.name = str(record.name)
        answer.display_name, answer.description = record.display_name, record.description
        answer.labels = {**record.labels, **version.labels}
        answer.etag = f"{record.name.id}-{version.version_id}-{version.update_time.timestamp():.6f}"
        answer.deployed_models = [
            ref for number, ref in self.deployments_of(str(record.name)) if number == version.version_id
        ]
        return answer

    def _require_undeployed(self, record: Versions, version: str | None) -> None:
        where = [ref.endpoint for number, ref in self.deployments_of(str(record.name)) if version in (None, number)]
        if where:
            told = ", ".join(sorted(set(where)))
            raise precondition(
                f'The Model "{record.name}" is deployed or being deployed at the following Endpoint(s): {told}.'
            )

    def _delete(self, method: str, record: Versions, end: Callable[[], object]) -> Message:
        def work(operation: Operation) -> Message:
            with self._lock:
                end()
            return empty_pb2.Empty()

        metadata = aiplatform_v1.DeleteOperationMetadata()
        return self._operations.begin(method, record.name.parent, metadata, work, target=str(record.name))

    def __iter__(self) -> Iterator[Versions]:
        return iter(list(self._all.values()))
