"""The stub server's probe, where an image of ours has its own: asks the health route; `--wait SECONDS` waits for it."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request

URL = f"http://127.0.0.1:{os.environ['AIP_HTTP_PORT']}{os.environ['AIP_HEALTH_ROUTE']}"


def ready() -> bool:
    """Whether the stub says that it is ready."""
    try:
        with urllib.request.urlopen(URL, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    deadline = time.monotonic() + (float(sys.argv[2]) if sys.argv[1:2] == ["--wait"] else 0)
    while not (up := ready()) and time.monotonic() < deadline:
        time.sleep(0.05)
    sys.exit(0 if up else 1)
