"""One endpoint: its message, what is deployed on it, and whose turn it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from proto import Message as SdkMessage

from tests.cloud.standin.deployments import Deployment
from tests.cloud.standin.errors import precondition
from tests.cloud.standin.messages import copy, now
from tests.cloud.standin.names import Name

# Prime to 100: a hundred turns visit each per cent once, well mixed.
_STRIDE = 37


@dataclass
class Record:
    """An endpoint.

    Attributes:
        name: With the project's number.
        message: Without what is deployed.
        deployed: What is deployed, by id.
        deploying: What is being deployed, by id: not told to callers, but its model cannot be deleted.
        turn: Counts predictions since the traffic changed.
    """

    name: Name
    message: SdkMessage
    deployed: dict[str, Deployment] = field(default_factory=dict)
    deploying: dict[str, Deployment] = field(default_factory=dict)
    turn: Iterator[int] = field(default_factory=itertools.count)

    def answer(self) -> SdkMessage:
        """Return the message with what is deployed."""
        message = copy(self.message)
        message.deployed_models = [one.answer() for one in list(self.deployed.values())]
        return message

    def set_traffic(self, split: Mapping[str, int]) -> None:
        """Give out the traffic anew."""
        self.message.traffic_split = {one: share for one, share in split.items() if share}
        self.turn = itertools.count()
        self.touch()

    def touch(self) -> None:
        """Note that it changed."""
        self.message.update_time = now()
        self.message.etag = f"{self.name.id}-{self.message.update_time.timestamp():.6f}"

    def next_deployment(self) -> Deployment:
        """Return whose turn it is: of any hundred predictions in a row each gets exactly its per cent.

        Raises:
            ApiError: Nothing is deployed, or nothing has traffic.
        """
        split = dict(self.message.traffic_split)
        if not self.deployed or not split:
            raise precondition(f"Endpoint {self.name} doesn't have traffic_split.")
        place, start = next(self.turn) * _STRIDE % 100, 0
        # In the order of their ids: that of a protobuf map is chance.
        for number, share in sorted(split.items()):
            start += share
            if place < start:
                return self.deployed[number]
        raise precondition(f"Endpoint {self.name} doesn't have traffic_split.")
