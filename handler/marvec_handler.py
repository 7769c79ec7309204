"""TorchServe's rows in, Marvec's responses out, for every task. What is more lies in the package `marvec`."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar

# TorchServe's base handler tries this import for a torch.compile backend that nothing here uses; it takes seconds.
sys.modules.setdefault("openvino.torch", None)  # type: ignore[arg-type]

import psutil
import torch
from torch import Tensor
from ts.context import Context
from ts.metrics.dimension import Dimension
from ts.torch_handler.base_handler import BaseHandler

from marvec import logs, response, rows
from marvec.errors import BusyError, InternalError, MarvecError, SettingsError
from marvec.service import Job, Service
from marvec.settings import Settings, read_settings

logger = logging.getLogger("marvec")
_DEFAULT_RESPONSE_TIMEOUT_S = 120
_READING_SHARE_OF_TIMEOUT = 0.2  # megabytes of text take seconds to tokenize, and a batch may hold many of them


class MarvecHandler(BaseHandler):  # type: ignore[misc]  # TorchServe is untyped
    """Serves one archive. The archive's own handler names the task that it is for."""

    task: ClassVar[str | None] = None

    def initialize(self, context: Context) -> None:
        """Load and self-test the model of the archive that TorchServe unpacked.

        Raises:
            ConfigurationError: The worker then fails to load, and its log says why.
        """
        logs.set_up()
        imports_s = time.time() - psutil.Process().create_time()
        properties = context.system_properties
        response_timeout_s = context.model_yaml_config.get("responseTimeout", _DEFAULT_RESPONSE_TIMEOUT_S)
        self.manifest = context.manifest
        self.service = Service.load(
            folder=Path(properties["model_dir"]),
            settings=self._settings(context.model_yaml_config.get("handler")),
            device=_device(properties.get("gpu_id")),
            response_timeout_s=response_timeout_s,
        )
        if self.service.encoder == "openvino":
            torch.set_num_threads(1)  # little is left to torch, and its idle threads would spin beside OpenVINO's
        self.reading_timeout_s = response_timeout_s * _READING_SHARE_OF_TIMEOUT
        self.batch_size = max(1, properties.get("batch_size") or 1)
        self.initialized = True
        whole_s = time.time() - psutil.Process().create_time()
        logger.info(
            "%s is loaded and reproduces its golden answers: imports took %.1f s, the model and its self-test %.1f s",
            context.model_name,
            imports_s,
            whole_s - imports_s,
        )

    def preprocess(self, data: Sequence[Mapping[str, object]]) -> list[Job | MarvecError]:
        """Parse and tokenize each row alone: a bad one becomes its own error."""
        deadline = time.monotonic() + self.reading_timeout_s
        return [self._read(i, fields, deadline) for i, fields in enumerate(data)]

    def inference(self, data: list[Job | MarvecError]) -> list[tuple[Job, Tensor] | MarvecError]:
        """Compute the inputs of all sound rows in one call."""
        jobs = [item for item in data if isinstance(item, Job)]
        results = iter(zip(jobs, self.service.compute(jobs)))
        return [item if isinstance(item, MarvecError) else _joined(*next(results)) for item in data]

    def postprocess(self, data: list[tuple[Job, Tensor] | MarvecError]) -> list[bytes]:
        """Serialize one answer a row, with its own status."""
        self._count(data)
        return [self._write(i, item) for i, item in enumerate(data)]

    def describe_handle(self) -> dict[str, object]:
        """What `GET /models/NAME?customized=true` tells of the model."""
        return self.service.describe()

    def _settings(self, section: object) -> Settings:
        found = read_settings(section)
        if self.task not in (None, found.task):
            raise SettingsError(f"handler.task: {found.task!r} is not for {type(self).__name__}; pack the model again")
        return found

    def _is_describe(self) -> bool:
        return len(self.context.request_processor) == 1 and rows.is_describe(self.context.get_all_request_header(0))

    def _is_explain(self) -> bool:
        return False  # the header of one row would turn the whole batch into explanations; rows.read refuses it alone

    def _read(self, index: int, fields: Mapping[str, object], deadline: float) -> Job | MarvecError:
        if time.monotonic() > deadline:
            return BusyError()
        try:
            row = rows.read(fields, self.context.get_all_request_header(index))
            return self.service.read(row.body, row.query, row.path)
        except MarvecError as err:
            return err
        except Exception:
            logger.exception("reading request %s failed", self.context.get_request_id(index))
            return InternalError("reading the request failed")

    def _write(self, index: int, item: tuple[Job, Tensor] | MarvecError) -> bytes:
        self.context.set_response_content_type(index, "application/json")
        if not isinstance(item, MarvecError):
            return self.service.write(*item)
        self.context.set_response_status(item.status, HTTPStatus(item.status).phrase, index)
        return response.serialize_error(item)

    def _count(self, data: list[tuple[Job, Tensor] | MarvecError]) -> None:
        metrics = self.context.metrics
        jobs = [item[0] for item in data if not isinstance(item, MarvecError)]
        # A fresh list each: TorchServe appends to the list it is given, and its default is one list for all calls.
        metrics.add_counter("MarvecTexts", sum(len(job.tokens) for job in jobs), dimensions=[])
        metrics.add_counter("MarvecTokens", sum(job.token_count for job in jobs), dimensions=[])
        metrics.add_percent("MarvecBatchFill", 100 * len(data) / self.batch_size, dimensions=[])
        truncated = sum(item.truncated for job in jobs for item in job.tokens)
        if truncated:
            metrics.add_counter("MarvecTruncatedTexts", truncated, dimensions=[])
        for item in data:
            if isinstance(item, MarvecError):
                metrics.add_counter("MarvecRefusedRequests", 1, dimensions=[Dimension("Status", item.status)])


def _joined(job: Job, result: Tensor | MarvecError) -> tuple[Job, Tensor] | MarvecError:
    return result if isinstance(result, MarvecError) else (job, result)


def _device(gpu_id: int | None) -> str:
    """TorchServe gives None where the frontend saw no GPU."""
    return f"cuda:{gpu_id}" if gpu_id is not None and torch.cuda.is_available() else "cpu"
