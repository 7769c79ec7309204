"""How a command that fails on purpose ends: one red line, and its exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from vertex.errors import VertexError

if TYPE_CHECKING:
    from marvec.errors import MarvecError


def tell(err: MarvecError) -> int:
    """Print an error as one line on stderr, without a traceback.

    Args:
        err: What ended the command.

    Returns:
        The exit status.
    """
    Console(stderr=True, highlight=False).print(Text(f"error: {err}", style="red"), soft_wrap=True)
    return err.exit_status if isinstance(err, VertexError) else 1
