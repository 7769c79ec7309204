"""What every request is: inputs, and how they want to be answered. Each task has its own kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from marvec import json_values
from marvec.errors import NotFoundError, RequestError, TooLargeError
from marvec.instances import Input
from marvec.settings import LimitSettings
from marvec.tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

_BODY_KEYS = ("instances", "parameters")


@dataclass(frozen=True)
class Request(ABC):
    """A checked request.

    Attributes:
        inputs: What to compute, in order.
        for_less: What makes the answer smaller, for the error of one that would be too large.
    """

    inputs: Sequence[Input]
    for_less: ClassVar[str]

    @property
    @abstractmethod
    def auto_truncate(self) -> bool:
        """Whether a too long input is cut instead of refused."""

    @property
    @abstractmethod
    def answer_bytes(self) -> int:
        """The most that the answer can take."""

    @abstractmethod
    def finish(self, numbers: Tensor) -> Tensor:
        """What was asked for: the model's [inputs, width] float32 -> [inputs, numbers] float32."""

    @abstractmethod
    def serialize(self, tokens: Sequence[Tokens], numbers: Tensor) -> bytes:
        """Write the answer.

        Args:
            tokens: The tokens of each input, for the counts.
            numbers: As `finish` gives them, finite.
        """


def read_body(body: object) -> tuple[list[object], object]:
    """Take a body of `instances` apart.

    Args:
        body: Bytes or string of JSON, or what a server has already decoded.

    Returns:
        The instances, at least one, and `parameters`, None where there are none.

    Raises:
        RequestError: When it is anything else.
    """
    fields = json_values.members(json_values.loads(body), "the body", _BODY_KEYS)
    if "instances" not in fields:
        raise RequestError('the body has no instances: send {"instances": ["a text"]}')
    return json_values.items(fields["instances"], "instances"), fields.get("parameters")


def require_few(count: int, what: str, limits: LimitSettings) -> None:
    """Refuse more inputs than the limit.

    Raises:
        TooLargeError: The message names both.
    """
    most = limits.max_instances
    if count > most:
        raise TooLargeError(f"{what}: {count} given, the limit is {most}; send them in several requests")


def require_path(path: str, known: Sequence[str] = ()) -> None:
    """Refuse a path after the model's version that leads nowhere.

    Raises:
        NotFoundError: The message lists what is served.
    """
    if path.strip("/") not in ("", *known):
        if not known:
            raise NotFoundError("no such path; a classifier has none after its version")
        served = ", ".join("/" + name for name in known)
        raise NotFoundError(f"no such path; after the model's version only {served} is served")
