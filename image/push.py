"""`marvec image push`: an image, under the name that a registry knows it by."""

from __future__ import annotations

from image.engine import Engine
from image.errors import ImageError


def push(engine: Engine, image: str, destination: str) -> None:
    """Push an image.

    Args:
        engine: What pushes it.
        image: Its name here.
        destination: `HOST/PATH/NAME:TAG`, such as `europe-west1-docker.pkg.dev/PROJECT/REPOSITORY/minilm:1.0`.

    Raises:
        ImageError: When the image is not here, or the registry does not take it.
    """
    host, slash, rest = destination.partition("/")
    if not slash or not rest or not ("." in host or ":" in host or host == "localhost"):
        raise ImageError(
            f"{destination}: expected HOST/PATH/NAME:TAG, such as REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG"
        )
    if not engine.has_image(image):
        raise ImageError(f"there is no image {image}: marvec image build makes one")
    engine.ask("tag", image, destination)
    try:
        engine.follow("push", destination)
    except ImageError as err:
        login = f"gcloud auth configure-docker {host}" if host.endswith("pkg.dev") else f"{engine.program} login {host}"
        raise ImageError(f"{err}. If it was not allowed: {login}; the repository must exist") from err
