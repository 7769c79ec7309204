"""Trouble on demand: by the method's name (or `*`), the next so many times; each call meets one trouble at most."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock, local

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
        # A call is carried out by one thread, whichever wire it came over.
        self._met = local()

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
        self._met.operation = None
        if self.refuse_tokens:
            raise ApiError(Code.UNAUTHENTICATED, DEFAULT_TEXTS[Code.UNAUTHENTICATED])
        met = self._take(method)
        if met is None:
            return False
        if met.kind == "slow":
            time.sleep(met.seconds)
        elif met.kind == "fail":
            raise ApiError(met.code, met.message)
        elif met.kind == "operation":
            self._met.operation = ApiError(met.code, met.message)
        elif not met.after:
            raise Cut
        return met.kind == "cut"

    def of_operation(self) -> ApiError | None:
        """Return what the operation that this thread's call begins is to fail with."""
        failing: ApiError | None = self._met.operation
        return failing

    def _add(self, trouble: _Trouble) -> None:
        with self._lock:
            self._waiting.append(trouble)

    def _take(self, method: str) -> _Trouble | None:
        with self._lock:
            for one in self._waiting:
                if one.method in (method, ANY):
                    one.left -= 1
                    if one.left == 0:
                        self._waiting.remove(one)
                    return one
        return None
