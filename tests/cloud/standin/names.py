"""Names: what they are made of, and which project and location they are in.

Answers always hold the project's NUMBER, as Google's do, so a caller that compares names with the project's id
is caught.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.cloud.standin.errors import ApiError, Code, invalid, not_found

MODEL_ID = r"[a-z_][a-z0-9_-]{0,62}"
ENDPOINT_ID = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?|[1-9][0-9]{0,8}"
DEPLOYED_MODEL_ID = r"[1-9][0-9]{0,9}"
ALIAS = r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]"
LABEL_KEY = r"[a-z][a-z0-9_-]{0,62}"
LABEL_VALUE = r"[a-z0-9_-]{0,63}"
MOST_LABELS = 64
LONGEST_DISPLAY_NAME = 128
LOCATIONS = ("us-central1", "us-east1", "us-west1", "europe-west1", "europe-west4", "asia-northeast1")


@dataclass(frozen=True)
class Project:
    """The one project that there is.

    Attributes:
        id: As people write it.
        number: As Google's answers write it.
    """

    id: str = "demo-project"
    number: str = "123456789012"


@dataclass(frozen=True)
class Name:
    """A resource's name, taken apart.

    Attributes:
        project: The project it is in.
        location: Its region.
        kind: Such as `models`; empty for the location itself.
        id: Of the resource, without a version.
        version: What stood after `@`; empty without one.
    """

    project: Project
    location: str
    kind: str = ""
    id: str = ""
    version: str = ""

    @property
    def parent(self) -> str:
        """The location's name."""
        return f"projects/{self.project.number}/locations/{self.location}"

    def __str__(self) -> str:
        return f"{self.parent}/{self.kind}/{self.id}" if self.kind else self.parent


def parse(name: str, kind: str, project: Project) -> Name:
    """Take a name apart.

    Args:
        name: Such as `projects/P/locations/L/models/M@2`.
        kind: What must stand before the id; empty for a location's name.
        project: The one that there is.

    Raises:
        ApiError: It is no such name, or the project or location is another.
    """
    rest = rf"/{kind}/([^/@]+)(?:@([^/@]+))?" if kind else "()()"
    found = re.fullmatch(rf"projects/([^/]+)/locations/([^/]+){rest}", name)
    if not found:
        wanted = "projects/PROJECT/locations/LOCATION" + (f"/{kind}/ID" if kind else "")
        raise invalid(f"Invalid resource name {name!r}: expected {wanted}")
    if found[1] not in (project.id, project.number):
        raise ApiError(Code.PERMISSION_DENIED, f"Permission denied on resource project {found[1]}.")
    if found[2] not in LOCATIONS:
        raise not_found(f"Location {found[2]}")
    return Name(project, found[2], kind, found[3] or "", found[4] or "")


def check(value: str, pattern: str, what: str) -> None:
    """Raise ApiError where a value does not match its pattern."""
    if not re.fullmatch(pattern, value, flags=re.ASCII):
        raise invalid(f"{what}: {value!r} does not match {pattern}")


def check_labels(labels: Mapping[str, str], what: str) -> None:
    """Raise ApiError where labels break the rules that the messages document."""
    if len(labels) > MOST_LABELS:
        raise invalid(f"{what}.labels: {len(labels)} of them, and at most {MOST_LABELS} are allowed")
    for key, value in labels.items():
        check(key, LABEL_KEY, f"{what}.labels key")
        check(value, LABEL_VALUE, f"{what}.labels[{key}]")


def check_display_name(value: str, what: str) -> None:
    """Raise ApiError where a display name is missing or too long."""
    if not value:
        raise invalid(f"{what}.display_name: required")
    if len(value) > LONGEST_DISPLAY_NAME:
        raise invalid(f"{what}.display_name: {len(value)} characters, and at most {LONGEST_DISPLAY_NAME} are allowed")


def check_output_only(message: object, fields: Sequence[str], what: str) -> None:
    """Raise ApiError where a request sets what only answers hold."""
    for field in fields:
        if getattr(message, field):
            raise invalid(f"{what}.{field}: output only")
