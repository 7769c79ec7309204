"""What instances, parameters and predictions look like: files for Vertex AI, which only takes them from Cloud Storage.

They are OpenAPI 3.0.2 Schema Objects. A model's version keeps the addresses that it was uploaded with, so a folder's
name holds a digest of what lies in it, and what lies there is never written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from vertex.errors import VertexError

FILES = ("instance.yaml", "parameters.yaml", "prediction.yaml")
_FOLDER = Path(__file__).resolve().with_name("schemas")
_CONTENT_TYPE = "application/yaml"
_TIMEOUT_S = 20.0
_RETRY_S = 60.0


class SchemaUris(NamedTuple):
    """Addresses in the order of Vertex AI's PredictSchemata.

    Attributes:
        instance: Of the schema of one instance.
        parameters: Of the schema of a request's parameters.
        prediction: Of the schema of one prediction.
    """

    instance: str
    parameters: str
    prediction: str


def read(name: str) -> bytes:
    """Return the content of one of FILES."""
    return (_FOLDER / name).read_bytes()


def uris(folder: str) -> SchemaUris:
    """Return where `put` puts the files; nothing is sent.

    Args:
        folder: `gs://BUCKET` or `gs://BUCKET/FOLDER`.
    """
    digest = sha256(b"".join(read(name) for name in FILES)).hexdigest()[:12]
    return SchemaUris(*(f"{folder.rstrip('/')}/marvec-{digest}/{name}" for name in FILES))


def put(folder: str) -> SchemaUris:
    """Write the files where they are not there yet.

    Args:
        folder: `gs://BUCKET` or `gs://BUCKET/FOLDER`.

    Returns:
        Where they are.

    Raises:
        VertexError: They cannot be written; one line that says what to do.
    """
    from google.api_core.exceptions import PreconditionFailed
    from google.cloud import storage

    places = uris(folder)
    with _errors_told(folder):
        # Writing objects needs no project; without one the client would look for it, and fail where there is none.
        bucket = storage.Client(project="-").bucket(_bucket(folder))
        retry = storage.retry.DEFAULT_RETRY.with_timeout(_RETRY_S)
        for name, place in zip(FILES, places, strict=True):
            try:
                bucket.blob(place.removeprefix(f"gs://{bucket.name}/")).upload_from_string(
                    read(name), _CONTENT_TYPE, if_generation_match=0, timeout=_TIMEOUT_S, retry=retry
                )
            except PreconditionFailed:
                continue  # there already, and of this content, since its folder is named after that
    return places


@contextmanager
def _errors_told(folder: str) -> Iterator[None]:
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError
    from requests import RequestException

    bucket = _bucket(folder)
    try:
        yield
    except exceptions.NotFound as err:
        raise VertexError(
            f"model.schema_folder {folder}: there is no bucket {bucket}: make it (gcloud storage buckets create "
            f"gs://{bucket}), or name another"
        ) from err
    except (exceptions.Forbidden, exceptions.Unauthorized) as err:
        raise VertexError(
            f"model.schema_folder {folder}: not allowed to write there: ask for roles/storage.objectUser on gs://{bucket}"
        ) from err
    except GoogleAuthError as err:
        raise VertexError(
            f"model.schema_folder {folder}: not logged in to Google Cloud ({_first_line(err)}): gcloud auth "
            "application-default login"
        ) from err
    except (exceptions.GoogleAPIError, RequestException, ConnectionError, ValueError) as err:
        raise VertexError(
            f"model.schema_folder {folder}: Cloud Storage took no schema files ({_first_line(err)}): try again"
        ) from err


def _bucket(folder: str) -> str:
    return folder.removeprefix("gs://").split("/")[0]


def _first_line(err: BaseException) -> str:
    cause = getattr(err, "cause", None) or err
    status = getattr(getattr(cause, "response", None), "status_code", None)
    if status is not None:  # some of the client's errors say a tuple
        return f"HTTP status {status}"
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0][:300]
