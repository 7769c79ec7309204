"""OpenVINO without its telemetry: left alone, importing it would report to Google Analytics from every worker."""

from __future__ import annotations

import sys
from functools import cache

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # makes the import of it fail, as if absent

import openvino  # noqa: E402

__all__ = ["core", "openvino"]


@cache
def core() -> openvino.Core:
    """The process's one Core, never freed.

    Its CPU plugin gives the main thread a stack for signal handlers. Of two plugins, the second one's end would bring
    back the stack of the first, which is unmapped by then: the next SIGINT or SIGTERM would be a segmentation fault.
    """
    return openvino.Core()
