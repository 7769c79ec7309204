"""What exists in the project of what a settings file names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vertex.errors import AbsentError, VertexError
from vertex.names import last

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1 import DeployedModel, Endpoint, Model

    from vertex.api import Api
    from vertex.settings import VertexSettings

# On all that is made here: what does not carry it is somebody else's, and is neither changed nor deleted.
LABEL = "made-with"
MADE_HERE: Mapping[str, str] = {LABEL: "marvec"}


@dataclass(frozen=True)
class Found:
    """The model and the endpoint of a settings file, as Google tells them.

    Attributes:
        versions: The model's versions, oldest first; none when there is no such model.
        endpoint: The endpoint; None when there is none.
    """

    versions: tuple[Model, ...] = ()
    endpoint: Endpoint | None = None

    @property
    def deployed(self) -> tuple[DeployedModel, ...]:
        """What is deployed on the endpoint, oldest first."""
        if self.endpoint is None:
            return ()
        return tuple(sorted(self.endpoint.deployed_models, key=lambda one: one.create_time.timestamp()))

    @property
    def split(self) -> dict[str, int]:
        """Per cent of the traffic for each deployed model's id, oldest first; those without traffic at 0."""
        shares = {} if self.endpoint is None else dict(self.endpoint.traffic_split)
        return {one.id: shares.get(one.id, 0) for one in self.deployed}

    @property
    def others(self) -> tuple[DeployedModel, ...]:
        """What is deployed of other models."""
        own = {_id(version.name) for version in self.versions}
        return tuple(one for one in self.deployed if _id(one.model) not in own)

    def version(self, wanted: str | None) -> Model:
        """Return one version of the model.

        Args:
            wanted: Its number or an alias; None for the newest.

        Raises:
            AbsentError: There is none; the message lists those there are.
        """
        if not self.versions:
            raise AbsentError("the model is not uploaded: marvec vertex upload")
        if wanted is None:
            return self.versions[-1]
        for version in self.versions:
            if wanted == version.version_id or wanted in version.version_aliases:
                return version
        raise AbsentError(f"there is no version {wanted}; there are {', '.join(map(_told, self.versions))}")

    def is_version(self, wanted: str) -> bool:
        """Whether there is a version of that number or alias."""
        return any(wanted == one.version_id or wanted in one.version_aliases for one in self.versions)

    def deployed_as(self, wanted: str) -> DeployedModel:
        """Return what is deployed of a version.

        Args:
            wanted: The version's number or alias, or a deployed model's id where a version is deployed twice.

        Raises:
            AbsentError: It is not deployed.
            VertexError: It is deployed more than once.
        """
        numbers = {version.version_id for version in self.versions if wanted in version.version_aliases} | {wanted}
        found = [one for one in self.deployed if one.id == wanted or one.model_version_id in numbers]
        if len(found) > 1:
            ids = ", ".join(f"{one.id} ({one.dedicated_resources.machine_spec.machine_type})" for one in found)
            raise VertexError(f"version {wanted} is deployed more than once: name one of {ids}")
        if not found:
            there = ", ".join(one.model_version_id for one in self.deployed) or "none"
            raise AbsentError(f"version {wanted} is not deployed on the endpoint; deployed: {there}")
        return found[0]


def look(api: Api, settings: VertexSettings) -> Found:
    """Ask Google what there is, whoever made it.

    Args:
        api: Google's API.
        settings: Which model and endpoint.
    """
    return Found(api.model_versions(settings.model_name), api.endpoint(settings.endpoint_name))


def read(api: Api, settings: VertexSettings) -> Found:
    """Ask Google what there is, and make sure that all of it is ours to change.

    Args:
        api: Google's API.
        settings: Which model and endpoint.

    Raises:
        VertexError: A model or endpoint of that name was made by somebody else, or is of use to somebody else.
    """
    found = look(api, settings)
    if found.versions and not any(version.labels.get(LABEL) == MADE_HERE[LABEL] for version in found.versions):
        raise VertexError(
            f"the model {settings.model.name} of {settings.project} was not uploaded by marvec, so it is left alone: "
            "choose another model.name"
        )
    if found.endpoint is not None and found.endpoint.labels.get(LABEL) != MADE_HERE[LABEL]:
        adopt = (
            f"gcloud ai endpoints update {settings.endpoint.name} --project={settings.project} "
            f"--region={settings.region} --update-labels={LABEL}={MADE_HERE[LABEL]}"
        )
        raise VertexError(
            f"the endpoint {settings.endpoint.name} was not made by marvec, so it is left alone: choose another "
            f"endpoint.name, or hand it over with: {adopt}"
        )
    strange = others(found, settings)
    if strange:
        names = ", ".join(one.display_name or one.model for one in strange)
        raise VertexError(
            f"the endpoint {settings.endpoint.name} serves another model too ({names}), so it is left alone: choose "
            "another endpoint.name; an endpoint is for the versions of one model"
        )
    return found


def others(found: Found, settings: VertexSettings) -> tuple[DeployedModel, ...]:
    """Return what is deployed on the endpoint of other models.

    Args:
        found: What there is.
        settings: Which model is ours.
    """
    return tuple(one for one in found.deployed if _id(one.model) != settings.model.name)


def _id(name: str) -> str:
    """A model's id, out of its name or a version's."""
    return last(name).split("@")[0]


def _told(version: Model) -> str:
    aliases = ", ".join(version.version_aliases)
    return f"{version.version_id} ({aliases})" if aliases else str(version.version_id)
