"""`python -m demo NAME`: fetch a demo model if need be and print its folder, for use by make and by hand."""

from __future__ import annotations

import sys

from demo.models import MODELS, fetch


def main(arguments: list[str]) -> int:
    """Print the folder of the model named in the arguments; return the exit status."""
    if len(arguments) != 1 or arguments[0] not in MODELS:
        sys.stderr.write(f"usage: python -m demo {{{'|'.join(MODELS)}}}\n")
        return 2
    sys.stdout.write(f"{fetch(arguments[0])}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
