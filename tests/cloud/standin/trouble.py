"""Trouble on demand: by the method's name (or `*`), the next so many times."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock

from tests.cloud.standin.errors import ApiError, Code, Cut

ANY = "*"
QUOTA = (
    "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_serving_cpus,"
    "aiplatform.googleapis.com/custom_model_serving_nvidia_t4_gpus"
)
DEFAULT_TEXTS = {
    Code.PERMISSION_DENIED: "Permission denied on resource project demo-project.",
    Code.NOT_FOUND: "The requested resource is not found.",
    Code.RESOURCE_EXHAUSTED: QUOTA,
    Code.ALREADY_EXISTS: "The resource already exists.",
    Code.UNAVAILABLE: "The service is currently unavailable.",
    Code.UNAUTHENTICATED: "Request had invalid authentication credentials. Expected OAuth 2 access token.",
    Code.INTERNAL: "Internal error encountered.",
}


@dataclass
class _Trouble:
    kind: str
    method: str
    left: int
    code: Code = Code.INTERNAL
    message: str = ""
    after: bool = False
    seconds: float = 0.0


class Trouble:
    """The control plane that tests use; what is asked for first comes first.

    Attributes:
        refuse_tokens: Whether /token answers that the account is not known, and bearer tokens are refused.
    """

    def __init__(self) -> None:
        self.refuse_tokens = False
        self._waiting: list[_Trouble] = []
        self._lock = Lock()

    def fail(self, method: str, code: Code, message: str = "", *, times: int = 1) -> None:
        """Refuse the next calls; nothing is carried out.

        Args:
            method: Such as CreateEndpoint; `*` for any.
            code: For instance Code.UNAVAILABLE.
            message: What the caller reads; a text in Google's words when empty.
            times: How many calls.
        """
        self._add(_Trouble("fail", method, times, code, message or DEFAULT_TEXTS.get(code, code.name)))

    def fail_operation(self, method: str, code: Code, message: str = "", *, times: int = 1) -> None:
        """Accept the next calls, and let the operations that they begin fail; nothing is carried out."""
        self._add(_Trouble("operation", method, times, code, message or DEFAULT_TEXTS.get(code, code.name)))

    def cut(self, method: str, *, after: bool = True, times: int = 1) -> None:
        """Cut the connection instead of answering.

        Over gRPC the caller gets UNAVAILABLE with "Socket closed", which is what gRPC says of a connection that is cut.

        Args:
            method: Such as UploadModel.
            after: Whether the call is carried out before, so that only its answer is lost.
            times: How many calls.
        """
        self._add(_Trouble("cut", method, times, after=after))

    def slow(self, method: str, seconds: float, *, times: int = 1) -> None:
        """Let the next calls wait before they are answered."""
        self._add(_Trouble("slow", method, times, seconds=seconds))

    def clear(self) -> None:
        """Forget what was asked for."""
        with self._lock:
            self._waiting.clear()
        self.refuse_tokens = False

    def left(self) -> int:
        """Return how many times trouble is still to come."""
        with self._lock:
            return sum(one.left for one in self._waiting)

    def before(self, method: str) -> bool:
        """Make the trouble that comes before a call is carried out.

        Returns:
            Whether the connection is to be cut afterwards.

        Raises:
            ApiError: The call is refused.
            Cut: The connection is to be cut now.
        """
        slow = self._take("slow", method)
        if slow:
            time.sleep(slow.seconds)
        if self.refuse_tokens:
            raise ApiError(Code.UNAUTHENTICATED, DEFAULT_TEXTS[Code.UNAUTHENTICATED])
        failing = self._take("fail", method)
        if failing:
            raise ApiError(failing.code, failing.message)
        cut = self._take("cut", method)
        if cut and not cut.after:
            raise Cut
        return cut is not None

    def of_operation(self, method: str) -> ApiError | None:
        """Return what the operation that a call begins is to fail with."""
        failing = self._take("operation", method)
        return ApiError(failing.code, failing.message) if failing else None

    def _add(self, trouble: _Trouble) -> None:
        with self._lock:
            self._waiting.append(trouble)

    def _take(self, kind: str, method: str) -> _Trouble | None:
        with self._lock:
            for one in self._waiting:
                if one.kind == kind and one.method in (method, ANY):
                    one.left -= 1
                    if one.left == 0:
                        self._waiting.remove(one)
                    return one
        return None
