"""Cloud Storage as the stand-in's service agent uses it: a few calls to the emulator."""

from __future__ import annotations

from fnmatch import fnmatchcase
from urllib.parse import quote

import requests

from tests.cloud.standin.errors import invalid, precondition

TIMEOUT_S = 60


class Storage:
    """An emulator.

    Args:
        address: Such as `http://127.0.0.1:4443`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._session = requests.Session()
        self._session.trust_env = False

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def find(self, uri: str) -> list[str]:
        """Return the objects that a URI names, where `*` stands for anything.

        Raises:
            ApiError: There is no such bucket.
        """
        bucket, pattern = split(uri)
        prefix = pattern.split("*")[0]
        names: list[str] = []
        token = ""
        while True:
            asked = {"prefix": prefix, **({"pageToken": token} if token else {})}
            answer = self._session.get(f"{self.address}/storage/v1/b/{bucket}/o", params=asked, timeout=TIMEOUT_S)
            if answer.status_code == 404:
                raise precondition(f"The bucket gs://{bucket} does not exist.")
            answer.raise_for_status()
            names += [item["name"] for item in answer.json().get("items", [])]
            token = answer.json().get("nextPageToken", "")
            if not token:
                return [f"gs://{bucket}/{name}" for name in sorted(names) if fnmatchcase(name, pattern)]

    def read(self, uri: str) -> bytes:
        """Return an object's content."""
        bucket, name = split(uri)
        url = f"{self.address}/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media"
        answer = self._session.get(url, timeout=TIMEOUT_S)
        answer.raise_for_status()
        return answer.content

    def write(self, uri: str, content: bytes) -> None:
        """Write an object."""
        bucket, name = split(uri)
        url = f"{self.address}/upload/storage/v1/b/{bucket}/o"
        asked = {"uploadType": "media", "name": name}
        answer = self._session.post(url, params=asked, data=content, timeout=TIMEOUT_S)
        if answer.status_code == 404:
            raise precondition(f"The bucket gs://{bucket} does not exist.")
        answer.raise_for_status()

    def make_bucket(self, bucket: str) -> None:
        """Make a bucket, unless there is one."""
        answer = self._session.post(f"{self.address}/storage/v1/b", json={"name": bucket}, timeout=TIMEOUT_S)
        if answer.status_code != 409:
            answer.raise_for_status()

    def copy(self, folder: str, target: str) -> int:
        """Copy a folder's objects into another bucket, which is made; returns how many there are."""
        self.make_bucket(split(target)[0])
        below = folder.rstrip("/") + "/"
        found = self.find(f"{below}*")
        for uri in found:
            self.write(f"{target}/{uri.removeprefix(below)}", self.read(uri))
        return len(found)


def split(uri: str) -> tuple[str, str]:
    """Return the bucket and the name in a `gs://` URI."""
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not uri.startswith("gs://") or not bucket:
        raise invalid(f"{uri!r}: expected gs://BUCKET/NAME")
    return bucket, name
