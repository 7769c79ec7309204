"""Deployments: a version of a model in a container of its own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event, Lock, Thread

from proto import Message as SdkMessage

from tests.cloud.standin.containers import Container, NeverReady, Place
from tests.cloud.standin.errors import precondition
from tests.cloud.standin.guard import Guard
from tests.cloud.standin.images import Image
from tests.cloud.standin.messages import copy, now
from tests.cloud.standin.names import Name, Project
from tests.cloud.standin.storage import Storage

# Google's own words.
NEVER_READY = (
    "Model server never became ready. Please validate that your model file or container configuration are valid. Model "
    "server logs can be found at https://console.cloud.google.com/logs/viewer?project={project}&resource="
    "aiplatform.googleapis.com%2FEndpoint&advancedFilter=resource.labels.endpoint_id%3D%22{endpoint}%22"
)
MANAGED_BUCKET = "managed-model-copies"


@dataclass
class Deployment:
    """A version that is, or is being, deployed.

    Attributes:
        message: Its DeployedModel.
        version: The model's version, as it was then.
        model_display_name: Of its model.
        container: Once it is started.
    """

    message: SdkMessage
    version: SdkMessage
    model_display_name: str
    container: Container | None = None

    def answer(self) -> SdkMessage:
        """Return the DeployedModel with its status; one process stands for all replicas."""
        answer = copy(self.message)
        alive = self.container is not None and self.container.alive
        answer.status.available_replica_count = answer.dedicated_resources.min_replica_count if alive else 0
        answer.status.last_update_time = now()
        return answer


class Deployer:
    """Starts and ends containers.

    Args:
        project: The one that there is.
        images: What stands for an image, by its URI.
        storage: Where artifacts are copied; None where there is no Cloud Storage.
        ready_limit_s: How long a container may take at most, whatever its spec says.
    """

    def __init__(
        self, project: Project, images: Mapping[str, Image], storage: Storage | None, ready_limit_s: float
    ) -> None:
        self._project = project
        self._images = images
        self._storage = storage
        self._ready_limit_s = ready_limit_s
        self._guard = Guard()
        self._running: list[Container] = []
        self._lock = Lock()

    def start(self, deployment: Deployment, endpoint: Name, given_up: Event) -> None:
        """Start a deployment's container and wait until it is up.

        Raises:
            ApiError: It does not come up.
        """
        message = deployment.message
        deployment.container = self.run(deployment.version, message, endpoint.id, given_up)

    def run(self, version: SdkMessage, deployed: SdkMessage, endpoint_id: str, given_up: Event) -> Container:
        """Start a version's container and wait until it is up.

        Args:
            version: A Model.
            deployed: A DeployedModel, of which the id and the machine are read.
            endpoint_id: Of the endpoint, or of a job's own.
            given_up: Set when nobody wants it any more.

        Raises:
            ApiError: It does not come up.
        """
        spec = version.container_spec
        image = self._images.get(spec.image_uri)
        if image is None:
            raise precondition(f"The image {spec.image_uri} cannot be pulled: it does not exist, or access is denied.")
        place = self._place(version, deployed, endpoint_id)
        more = {"STORAGE_EMULATOR_HOST": self._storage.address} if self._storage else {}
        container = Container(spec, image, place, self._guard, more)
        with self._lock:
            self._running.append(container)
        timeout = spec.deployment_timeout
        limit_s = min(self._ready_limit_s, timeout.total_seconds() if timeout else self._ready_limit_s)
        try:
            container.start()
            container.wait_ready(limit_s, given_up)
        except NeverReady as err:
            sys.stderr.write(
                f"stand-in: the container of {spec.image_uri} never became ready: {err}\n{container.log()}\n"
            )
            self.end(container)
            raise precondition(NEVER_READY.format(project=self._project.number, endpoint=endpoint_id)) from err
        return container

    def stop(self, deployment: Deployment) -> None:
        """End a deployment's container."""
        if deployment.container is not None:
            self.end(deployment.container)

    def end(self, container: Container) -> None:
        """End a container."""
        container.stop()
        with self._lock:
            if container in self._running:
                self._running.remove(container)

    def end_all(self) -> None:
        """End every container, all at once."""
        with self._lock:
            running, self._running = self._running, []
        threads = [Thread(target=one.stop) for one in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """End everything."""
        self.end_all()
        self._guard.close()

    def _place(self, version: SdkMessage, deployed: SdkMessage, endpoint_id: str) -> Place:
        default = f"/v1/endpoints/{endpoint_id}/deployedModels/{deployed.id}"
        spec, machine = version.container_spec, deployed.dedicated_resources.machine_spec
        predict_route = spec.predict_route or f"{default}:predict"
        health_route = spec.health_route or default
        variables = {
            "AIP_MODE": "PREDICTION",
            "AIP_MODE_VERSION": "1.0.0",
            "AIP_FRAMEWORK": "CUSTOM_CONTAINER",
            "AIP_PROJECT_NUMBER": self._project.number,
            "AIP_ENDPOINT_ID": endpoint_id,
            "AIP_MODEL_NAME": endpoint_id,
            "AIP_DEPLOYED_MODEL_ID": deployed.id,
            "AIP_VERSION_NAME": deployed.id,
            "AIP_MACHINE_TYPE": machine.machine_type,
            "AIP_STORAGE_URI": self._copied(version.artifact_uri, deployed.id) if version.artifact_uri else "",
            "AIP_PREDICT_ROUTE": predict_route,
            "AIP_HEALTH_ROUTE": health_route,
        }
        if machine.accelerator_type:
            variables["AIP_ACCELERATOR_TYPE"] = machine.accelerator_type.name
        return Place(variables, predict_route, health_route)

    def _copied(self, artifact_uri: str, number: str) -> str:
        if self._storage is None:
            raise precondition(f"{artifact_uri}: this stand-in was started without Cloud Storage.")
        target = f"gs://{MANAGED_BUCKET}/{number}"
        if not self._storage.copy(artifact_uri, target):
            raise precondition(f"Vertex AI found no files in {artifact_uri}.")
        return target
