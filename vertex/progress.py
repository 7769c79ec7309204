"""What a user sees of long work: on a terminal a line that lives, elsewhere a line a minute. All on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

_SIGN_OF_LIFE_S = 60.0


class Progress:
    """Tells what is going on.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def tell(self, line: str) -> None:
        """Print a line that stays."""
        self._console.print(Text(line), soft_wrap=True)

    @contextmanager
    def during(self, title: str) -> Iterator[Callable[[str], None]]:
        """Show how long something lasts, until the block ends.

        Args:
            title: What it is, such as `deploying minilm version 2`.

        Yields:
            To be called now and then, with how far it is or "".
        """
        began = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(Text(title)) as status:
                yield lambda detail: status.update(Text(_line(title, began, detail)))
        else:
            self.tell(f"{title} …")
            yield self._signs_of_life(title, began)
        self.tell(f"{title}: done after {lasted(time.monotonic() - began)}")

    def _signs_of_life(self, title: str, began: float) -> Callable[[str], None]:
        said = began

        def show(detail: str) -> None:
            nonlocal said
            if time.monotonic() - said >= _SIGN_OF_LIFE_S:
                said = time.monotonic()
                self.tell(_line(title, began, detail))

        return show


def lasted(seconds: float) -> str:
    """Return a duration for people, such as `2 min 5 s`.

    Args:
        seconds: How long.
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _line(title: str, began: float, detail: str) -> str:
    return ", ".join(part for part in (title, lasted(time.monotonic() - began), detail) if part)
