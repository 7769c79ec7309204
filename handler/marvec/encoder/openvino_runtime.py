"""OpenVINO without its telemetry: left alone, importing it would report to Google Analytics from every worker."""

from __future__ import annotations

import sys

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # makes the import of it fail, as if absent

import openvino  # noqa: E402

__all__ = ["openvino"]
