"""The upload: a settings file as the model that Google is to make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import (
    EncryptionSpec,
    EnvVar,
    Model,
    ModelContainerSpec,
    Port,
    PredictSchemata,
    Probe,
    UploadModelRequest,
)

from vertex import names, schemas
from vertex.found import MADE_HERE

if TYPE_CHECKING:
    from vertex.found import Found
    from vertex.settings import VertexSettings

# The digest of the settings that a version was uploaded with: an upload that was cut is found by it.
SETTINGS_LABEL = "marvec-settings"
PORT = 7080
# The probe's own end comes before the one that is put to it, so that the container's log has the reason.
_PROBE_ENDS_BEFORE_S = 5
_PROBE = ("python", "/home/model-server/serving/ready.py")
# Vertex AI ends a container after three failures of the health probe, and a busy one may be slow to answer.
_HEALTH_S = 30


def plan(settings: VertexSettings, found: Found, *, again: bool = False) -> list[UploadModelRequest]:
    """Return what is to be sent: nothing when the newest version has these settings.

    Args:
        settings: What is uploaded.
        found: What there is.
        again: Upload a version though the newest has these settings.
    """
    model = _model(settings)
    digest = model.labels[SETTINGS_LABEL]
    newest = found.versions[-1] if found.versions else None
    if newest is not None and newest.labels.get(SETTINGS_LABEL) == digest and not again:
        return []
    request = UploadModelRequest(parent=settings.location, model=model)
    if newest is None:
        request.model_id = settings.model.name
    else:
        request.parent_model = settings.model_name
        request.model.version_aliases = ["default", *settings.model.version_aliases]
    return [request]


def digest(settings: VertexSettings) -> str:
    """Return what a version's SETTINGS_LABEL holds when it was uploaded with these settings."""
    return str(_model(settings).labels[SETTINGS_LABEL])


def _model(settings: VertexSettings) -> Model:
    wanted = settings.model
    model = Model(
        display_name=wanted.name,
        description=wanted.description,
        container_spec=_container(settings),
        artifact_uri=wanted.artifact_uri or "",
        version_aliases=wanted.version_aliases,
        labels={**wanted.labels, **MADE_HERE},
    )
    if wanted.schema_folder is not None:
        instance, parameters, prediction = schemas.uris(wanted.schema_folder, wanted.task)
        model.predict_schemata = PredictSchemata(
            instance_schema_uri=instance, parameters_schema_uri=parameters, prediction_schema_uri=prediction
        )
    if settings.kms_key is not None:
        model.encryption_spec = EncryptionSpec(kms_key_name=settings.kms_key)
    model.labels[SETTINGS_LABEL] = names.digest(model)
    return model


def _container(settings: VertexSettings) -> ModelContainerSpec:
    wanted = settings.model
    return ModelContainerSpec(
        image_uri=wanted.image,
        env=[EnvVar(name=name, value=value) for name, value in wanted.environment.items()],
        ports=[Port(container_port=PORT)],
        predict_route=f"/predictions/{wanted.served_as or wanted.name}",
        health_route="/ping",
        deployment_timeout={"seconds": wanted.deployment_timeout_s},
        shared_memory_size_mb=wanted.shared_memory_mb or 0,
        # One call that waits: gcloud and the SDK cannot set how often the probe may fail.
        startup_probe=_probe(
            *_PROBE,
            "--wait",
            str(wanted.startup_timeout_s - _PROBE_ENDS_BEFORE_S),
            every_s=wanted.startup_timeout_s,
        ),
        health_probe=_probe(*_PROBE, every_s=_HEALTH_S),
    )


def _probe(*command: str, every_s: int) -> Probe:
    # Google's pages differ on which of the two may be the longer one.
    return Probe(exec_=Probe.ExecAction(command=command), period_seconds=every_s, timeout_seconds=every_s)
