"""Cloud Storage as the launcher needs it: the archives in a folder, and their bytes.

The client is imported when the first object is made: only images that fetch their models hold it.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from serving.errors import FetchError

if TYPE_CHECKING:
    from google.cloud.storage import Blob

RETRY_S = 60.0
TIMEOUT_S = 20.0
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class RemoteArchive:
    """A .mar in Cloud Storage, in the generation that was listed.

    Attributes:
        name: Its name without the folder.
        size_bytes: Its size.
        crc32c: Its checksum, base64 as Cloud Storage tells it.
        blob: The client's handle.
    """

    name: str
    size_bytes: int
    crc32c: str
    blob: Blob


class StorageFolder:
    """One folder of a bucket.

    Args:
        uri: `gs://BUCKET` or `gs://BUCKET/FOLDER`.

    Raises:
        FetchError: The URI is no such, the client is not installed, or there are no credentials.
    """

    def __init__(self, uri: str) -> None:
        bucket, _, prefix = uri[len("gs://") :].partition("/")
        if not bucket:
            raise FetchError(f"AIP_STORAGE_URI={uri!r}: expected gs://BUCKET/FOLDER")
        self.uri = uri
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        try:
            from google.cloud import storage
        except ImportError as err:
            raise FetchError(
                f"{uri} needs the client of Cloud Storage: {sys.executable} -m pip install google-cloud-storage"
            ) from err
        with self._errors_told():
            # Reading needs no project; without one the client would look for it, and fail where there is none.
            self._bucket = storage.Client(project="-").bucket(bucket)
        self._retry = storage.retry.DEFAULT_RETRY.with_timeout(RETRY_S)

    def archives(self) -> list[RemoteArchive]:
        """Lists the folder's archives.

        Returns:
            Every .mar directly in it, by name.

        Raises:
            FetchError: The bucket cannot be listed.
        """
        with self._errors_told():
            blobs = list(
                self._bucket.list_blobs(prefix=self._prefix, delimiter="/", timeout=TIMEOUT_S, retry=self._retry)
            )
        found = [
            RemoteArchive(
                name=blob.name[len(self._prefix) :],
                size_bytes=blob.size,
                crc32c=blob.crc32c,
                # Of this generation, so that an upload in the middle is an error and not a mixture.
                blob=self._bucket.blob(blob.name, generation=blob.generation),
            )
            for blob in blobs
            if blob.name.endswith(".mar")
        ]
        return sorted(found, key=lambda one: one.name)

    def read(self, archive: RemoteArchive, start: int, end: int) -> bytes:
        """Reads a part of an archive, again and again for a minute where the network fails.

        Args:
            archive: From `archives`.
            start: The first byte.
            end: The byte after the last.

        Returns:
            `end - start` bytes.

        Raises:
            FetchError: They cannot be had.
        """
        with self._errors_told():
            data: bytes = archive.blob.download_as_bytes(
                start=start, end=end - 1, raw_download=True, checksum=None, timeout=TIMEOUT_S, retry=self._retry
            )
        if len(data) != end - start:
            raise FetchError(f"{self.uri}: {archive.name} was cut short while it was read: start again")
        return data

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        from google.api_core import exceptions
        from google.auth.exceptions import GoogleAuthError
        from requests import RequestException

        try:
            yield
        except exceptions.NotFound as err:
            raise FetchError(f"{self.uri}: no such bucket, or the archive was replaced meanwhile: check it") from err
        except (exceptions.Forbidden, exceptions.Unauthorized) as err:
            raise FetchError(
                f"{self.uri}: not allowed: give the service account roles/storage.objectViewer on the bucket"
            ) from err
        except GoogleAuthError as err:
            raise FetchError(
                f"{self.uri}: no usable Google credentials ({_first_line(err)}): run with a service account, or mount "
                "a key and name it in GOOGLE_APPLICATION_CREDENTIALS"
            ) from err
        except (exceptions.GoogleAPIError, RequestException, ConnectionError, ValueError) as err:
            raise FetchError(f"{self.uri}: Cloud Storage cannot be read ({_first_line(err)})") from err


def crc32c(file: Path) -> str:
    """Computes a file's checksum as Cloud Storage does.

    Args:
        file: A file.

    Returns:
        CRC-32C, big-endian, in base64.
    """
    import google_crc32c

    checksum = google_crc32c.Checksum()
    with file.open("rb") as content:
        while chunk := content.read(_READ_BYTES):
            checksum.update(chunk)
    return base64.b64encode(checksum.digest()).decode("ascii")


def _first_line(err: BaseException) -> str:
    cause = getattr(err, "cause", None) or err
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0][:300]
