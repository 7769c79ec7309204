"""How a server is used: clients that each wait for an answer before they ask again, and texts in a request."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.corpora import Corpus


@dataclass(frozen=True)
class Load:
    """A closed loop.

    Attributes:
        clients: Requests under way at any time.
        texts: Texts in each request.
    """

    clients: int
    texts: int

    @property
    def name(self) -> str:
        """As on the command line: "16x1" is 16 clients that send one text at a time."""
        return f"{self.clients}x{self.texts}"

    @classmethod
    def parse(cls, name: str) -> Load:
        """Read a load's name.

        Raises:
            ValueError: It is not two whole numbers of at least 1 with an x between them.
        """
        found = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,3})", name)
        if found is None:
            raise ValueError(f"load {name!r}: expected CLIENTSxTEXTS, such as 16x1")
        return cls(int(found[1]), int(found[2]))

    def shrunk(self, factor: int) -> Load:
        """The same with fewer texts in a request, at least one: what is dear a text comes in small numbers."""
        return Load(self.clients, max(1, self.texts // factor))

    def batches(self, corpus: Corpus) -> list[list[str]]:
        """The texts of each request: as many requests as it takes to send the corpus once, the last one filled up."""
        count = -(-len(corpus.texts) // self.texts)
        return [
            [corpus.texts[(i * self.texts + k) % len(corpus.texts)] for k in range(self.texts)] for i in range(count)
        ]


LOADS = tuple(Load.parse(name) for name in ("1x1", "16x1", "4x32", "1x256"))
