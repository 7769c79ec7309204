"""Files and folders of Cloud Storage, and what is said where it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from vertex.errors import AbsentError, AccessError, UnavailableError, VertexError

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Bucket

SCHEME = "gs://"
TIMEOUT_S = 60.0
RETRY_S = 120.0
READER = "roles/storage.objectViewer"
WRITER = "roles/storage.objectUser"
_AT_ONCE = 8
_CHUNK_BYTES = 1 << 20


def blob(uri: str) -> Blob:
    """Return the client's handle of an object; nothing is sent.

    Args:
        uri: `gs://BUCKET/NAME`.
    """
    name, _, path = uri.removeprefix(SCHEME).partition("/")
    return _bucket(name).blob(path)


def put(content: bytes, uri: str, content_type: str) -> None:
    """Write an object unless there is one of that name.

    Args:
        content: All of it.
        uri: `gs://BUCKET/NAME`.
        content_type: Its media type.

    Raises:
        VertexError: It cannot be written.
    """
    from google.api_core.exceptions import PreconditionFailed
    from google.cloud.storage.retry import DEFAULT_RETRY

    with explained(uri, WRITER), suppress(PreconditionFailed):
        blob(uri).upload_from_string(
            content,
            content_type,
            if_generation_match=0,
            timeout=TIMEOUT_S,
            retry=DEFAULT_RETRY.with_timeout(RETRY_S),
        )


def put_file(file: Path, uri: str) -> None:
    """Write a file as an object, in the place of one of that name.

    Args:
        file: Is read in parts.
        uri: `gs://BUCKET/NAME`.

    Raises:
        VertexError: It cannot be written.
    """
    from google.cloud.storage.retry import DEFAULT_RETRY

    retry = DEFAULT_RETRY.with_timeout(RETRY_S)
    with explained(uri, WRITER):
        blob(uri).upload_from_filename(str(file), timeout=TIMEOUT_S, retry=retry, checksum="crc32c")


def fetch_folder(uri: str, folder: Path) -> list[str]:
    """Copy what lies below a folder of a bucket.

    Args:
        uri: `gs://BUCKET/FOLDER`.
        folder: Copied to; exists.

    Returns:
        The files' names below it.

    Raises:
        VertexError: There is nothing, or it cannot be read.
    """
    from google.cloud.storage.transfer_manager import THREAD, download_many_to_path

    name, _, path = uri.removeprefix(SCHEME).partition("/")
    prefix = f"{path.strip('/')}/" if path.strip("/") else ""
    with explained(uri, READER):
        bucket = _bucket(name)
        listed = (one.name.removeprefix(prefix) for one in bucket.list_blobs(prefix=prefix, timeout=TIMEOUT_S))
        names = [one for one in listed if one and not one.endswith("/")]  # folders are objects too, for some tools
        if not names:
            raise AbsentError(f"{uri}: nothing is there")
        if any(".." in one.split("/") for one in names):
            raise VertexError(f"{uri}: an object's name leads out of the folder")
        download_many_to_path(
            bucket,
            names,
            destination_directory=str(folder),
            blob_name_prefix=prefix,
            worker_type=THREAD,
            max_workers=_AT_ONCE,
            raise_exception=True,
        )
    return names


@contextmanager
def opened(uri: str) -> Iterator[BinaryIO]:
    """Open an object to be read in any order.

    Args:
        uri: `gs://BUCKET/NAME`.

    Yields:
        A file that fetches what is read.

    Raises:
        VertexError: It cannot be read.
    """
    with explained(uri, READER), blob(uri).open("rb", chunk_size=_CHUNK_BYTES) as content:
        yield content


@contextmanager
def explained(uri: str, role: str) -> Iterator[None]:
    """Turn what the client raises into a VertexError.

    Args:
        uri: What is read or written.
        role: What somebody needs who may do that.

    Raises:
        VertexError: One of its kinds, by what can be done about it.
    """
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError
    from requests import RequestException

    bucket = f"{SCHEME}{uri.removeprefix(SCHEME).split('/')[0]}"
    try:
        yield
    except exceptions.NotFound as err:
        raise AbsentError(
            f"{uri}: no such bucket, or nothing of that name in it: check the name, or make the bucket (gcloud storage "
            f"buckets create {bucket})"
        ) from err
    except (exceptions.Forbidden, exceptions.Unauthorized) as err:
        raise AccessError(f"{uri}: not allowed: ask for {role} on {bucket}") from err
    except GoogleAuthError as err:
        raise AccessError(
            f"{uri}: not logged in to Google Cloud ({_first_line(err)}): gcloud auth application-default login"
        ) from err
    except (exceptions.GoogleAPIError, RequestException, ConnectionError) as err:
        raise UnavailableError(f"{uri}: Cloud Storage does not answer ({_first_line(err)}): try again") from err


def _bucket(name: str) -> Bucket:
    from google.cloud import storage

    with explained(f"{SCHEME}{name}", READER):
        # Objects need no project; without one the client would look for it, and fail where there is none.
        return storage.Client(project="-").bucket(name)


def _first_line(err: BaseException) -> str:
    cause = getattr(err, "cause", None) or err
    status = getattr(getattr(cause, "response", None), "status_code", None)
    if status is not None:  # some of the client's errors say a tuple
        return f"HTTP status {status}"
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0][:300]
