"""Everything that Marvec raises, and the HTTP status that a server answers with.

    MarvecError                      500
    ├── RequestError                 400  the caller can mend it: the message says how
    │   ├── NotFoundError            404  no such path below the model
    │   ├── TooLargeError            413  too many instances, tokens or bytes
    │   └── UnsupportedMediaTypeError 415 the body's content type lost information
    ├── BusyError                    503  sound, but not now: send it again
    ├── InternalError                500  a sound request failed: no usable answer, or a defect
    └── ConfigurationError           500  what was packed or set cannot be served
        ├── SettingsError                 model-config.yaml
        ├── ModelDirError                 the model's files
        └── SelfTestError                 the loaded model does not answer as it did when packed

A RequestError's or BusyError's message goes to the caller, so it never holds a request's text. The messages of the
others are for the operator's log; the caller gets a fixed sentence.
"""

from __future__ import annotations


class MarvecError(Exception):
    """Base of all errors raised on purpose."""

    status = 500

    @property
    def public_message(self) -> str:
        """What the caller may read."""
        return "internal error: the server's log has the cause"


class RequestError(MarvecError):
    """The request cannot be answered as it is; its message says what to send instead."""

    status = 400

    @property
    def public_message(self) -> str:
        """The message itself: request errors are written for the caller."""
        return str(self)


class NotFoundError(RequestError):
    """The path after the model's own leads nowhere."""

    status = 404


class TooLargeError(RequestError):
    """The request asks for more than a limit allows; the message names the limit and the count."""

    status = 413


class UnsupportedMediaTypeError(RequestError):
    """The body was sent as a content type from which the JSON cannot be recovered exactly."""

    status = 415


class BusyError(MarvecError):
    """The request is sound, but what stands before it fills the time that the server allows."""

    status = 503

    def __init__(self) -> None:
        super().__init__("the server is busy: try again in a moment")

    @property
    def public_message(self) -> str:
        """The message itself: it tells the caller to try again."""
        return str(self)


class InternalError(MarvecError):
    """A sound request failed: the model gave no answer that can be sent, or the code has a defect."""


class ConfigurationError(MarvecError):
    """Base of the errors that an operator mends before anything is served."""


class SettingsError(ConfigurationError):
    """model-config.yaml holds an unknown key or a value out of range."""


class ModelDirError(ConfigurationError):
    """A model directory lacks a file, or its files contradict each other."""


class SelfTestError(ConfigurationError):
    """The loaded model does not reproduce the answers recorded when it was packed."""
