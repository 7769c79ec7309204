"""What the road to Vertex AI raises, and the exit status that a command ends with.

    VertexError           1  a setting is wrong, or what is asked for cannot be
    ├── AccessError       3  not logged in, or not permitted
    │   └── LoginError    3  nobody is logged in
    ├── AbsentError       4  what is asked for does not exist
    ├── QuotaError        5  a quota is used up
    ├── OperationError    6  Google began it, and it failed
    ├── UnavailableError  7  no answer, or not now: the same command again goes on
    └── RowsError         8  a batch prediction ended, and rows of it failed

A wrong command line ends with 2, Ctrl-C with 130.
"""

from __future__ import annotations

from marvec.errors import MarvecError


class VertexError(MarvecError):
    """A setting is wrong, or Google refused; the message is one line that says what to do."""

    exit_status = 1


class AccessError(VertexError):
    """Nobody is logged in, or who is may not do this."""

    exit_status = 3


class LoginError(AccessError):
    """Nobody is logged in."""


class AbsentError(VertexError):
    """A model, version, endpoint, bucket or table does not exist."""

    exit_status = 4


class QuotaError(VertexError):
    """Google has no more of it for this project, or none at all in the region."""

    exit_status = 5


class OperationError(VertexError):
    """A long operation was begun and failed."""

    exit_status = 6


class UnavailableError(VertexError):
    """The connection was cut or the service is overloaded; nothing is lost."""

    exit_status = 7


class RowsError(VertexError):
    """A batch prediction is done, and some of its rows have no prediction."""

    exit_status = 8
