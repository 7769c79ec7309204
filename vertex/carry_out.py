"""Plans carried out: what is missing is sent, one request at a time, and what it began is followed to its end.

After each step what exists is read anew and planned for anew. So a command that was interrupted, or cut off by the
network, goes on when it is run again, and what somebody else has begun is waited for, not begun twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from google.api_core.exceptions import Conflict

from vertex import api_errors
from vertex.api import Api, passing
from vertex.errors import AbsentError, UnavailableError, VertexError
from vertex.found import Found, read
from vertex.titles import operation_title, title

if TYPE_CHECKING:
    from google.longrunning import operations_pb2
    from proto import Message

    from vertex.progress import Progress
    from vertex.settings import VertexSettings

Plan = Callable[[Found], Sequence["Message"]]

# Between two looks at an operation: often at first, since some take a second.
_LOOK_S = (0.5, 1.0, 2.0, 5.0)
# A request that was perhaps not heard: wait, look whether it was, and else send it again.
_CUTS = 3
_AFTER_CUT_S = 2.0


def carry_out(api: Api, settings: VertexSettings, plan: Plan, progress: Progress) -> Found:
    """Send what a plan asks for until it asks for nothing.

    Args:
        api: Google's API.
        settings: Which model and endpoint.
        plan: From what there is to what is to be sent; called again after each step.
        progress: Told of each step.

    Returns:
        What there is in the end.

    Raises:
        VertexError: Google refused, or what it began failed; what was done before stays.
    """
    cuts = 0
    done: list[Message] = []
    while True:
        follow_begun(api, settings, progress)
        found = read(api, settings)
        steps = plan(found)
        # What was done and is still asked for, Google tells in other words than ours: once is enough.
        if not steps or steps[:1] == done[-1:]:
            return found
        if steps[0] in done:
            raise UnavailableError(
                f"{title(steps[0])}: was done, and somebody else has undone it: try again if need be"
            )
        try:
            carry_out_step(api, settings, steps[0], progress)
            done.append(steps[0])
        except Exception as err:
            cuts += 1
            if cuts > _CUTS or not (passing(err) or _was_overtaken(err)):
                raise
            time.sleep(_AFTER_CUT_S)


def carry_out_all(
    api: Api, settings: VertexSettings, steps: Sequence[Message], progress: Progress
) -> list[VertexError]:
    """Send requests one after another, and go on after one that fails.

    Args:
        api: Google's API.
        settings: Which model and endpoint.
        steps: What is sent.
        progress: Told of each step.

    Returns:
        The failures.
    """
    failures: list[VertexError] = []
    for step in steps:
        try:
            with api_errors.explained(settings):
                wait_for_begun(api, settings, progress)
                carry_out_step(api, settings, step, progress)
        except AbsentError:
            progress.tell(f"{title(step)}: somebody else has done it")
        except VertexError as err:
            said = str(err)
            progress.tell(said if said.startswith(title(step)) else f"{title(step)}: {said}")
            failures.append(err)
    return failures


def carry_out_step(api: Api, settings: VertexSettings, step: Message, progress: Progress) -> None:
    """Send one request, and follow what it begins.

    Args:
        api: Google's API.
        settings: Which model and endpoint.
        step: The request.
        progress: Told of it.
    """
    operation = api.send(step)
    if operation is None:
        progress.tell(f"{title(step)}: done")
    else:
        _follow(api, settings, operation, title(step), progress)


def begun(api: Api, settings: VertexSettings) -> list[operations_pb2.Operation]:
    """Return the operations on the model and the endpoint that are not done.

    Args:
        api: Google's API.
        settings: Which model and endpoint.
    """
    return [*api.running(settings.model_name), *api.running(settings.endpoint_name)]


def follow_begun(api: Api, settings: VertexSettings, progress: Progress) -> None:
    """Follow the operations that are not done to their end.

    Args:
        api: Google's API.
        settings: Which model and endpoint.
        progress: Told of each.

    Raises:
        VertexError: One of them failed.
    """
    for operation in begun(api, settings):
        _follow(api, settings, operation.name, operation_title(operation), progress)


def wait_for_begun(api: Api, settings: VertexSettings, progress: Progress) -> None:
    """Wait for the operations that are not done, and only tell how they end.

    Args:
        api: Google's API.
        settings: Which model and endpoint.
        progress: Told of each.
    """
    for operation in begun(api, settings):
        try:
            _follow(api, settings, operation.name, operation_title(operation), progress)
        except VertexError as err:
            progress.tell(str(err))


def _was_overtaken(err: Exception) -> bool:
    """Whether somebody else has begun something since it was looked."""
    return isinstance(err, Conflict) or "other operations running" in str(err)


def _follow(api: Api, settings: VertexSettings, name: str, doing: str, progress: Progress) -> None:
    looks = 0
    try:
        with progress.during(doing) as show:
            while not (operation := api.operation(name)).done:
                show("")
                time.sleep(_LOOK_S[min(looks, len(_LOOK_S) - 1)])
                looks += 1
            if operation.HasField("error"):
                raise api_errors.of_operation(operation.error, settings, doing)
    except KeyboardInterrupt:
        progress.tell(f"{doing} goes on at Google as {name}: the same command again follows it to its end")
        raise
