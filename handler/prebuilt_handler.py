"""The handler of model.mar, for Google's prebuilt containers: TorchServe with little beside torch, and its envelope.

What those containers lack lies in packages/, beside this file. With `service_envelope=json` TorchServe takes a request
apart before a handler sees it: the rows of a call are then its instances, and what is returned for each becomes its
prediction. Without the envelope a row is a request, as everywhere else.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().with_name("packages")))

import orjson
import torch
from ts.context import Context
from ts.utils.util import PredictionException

from marvec.errors import MarvecError
from marvec.service import Job
from marvec_handler import MarvecHandler

# TorchServe would make a 507 of an exception's 413: a worker without memory, which clients ask again.
_TOLD_AS = {HTTPStatus.REQUEST_ENTITY_TOO_LARGE: HTTPStatus.BAD_REQUEST}


class PrebuiltHandler(MarvecHandler):
    """The handler of either task, behind TorchServe's JSON envelope, or without it."""

    def initialize(self, context: Context) -> None:
        """Load the model, with its share of the cores: nobody but the archive says how many workers there are.

        Raises:
            ConfigurationError: As MarvecHandler does.
        """
        if "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(max(1, torch.get_num_threads() // context.model_yaml_config.get("minWorkers", 1)))
        super().initialize(context)

    def handle(self, data: Sequence[object], context: Context) -> list[object]:
        """Answer requests, or the instances that the envelope made of them: those are one request again.

        Raises:
            PredictionException: For instances that cannot be answered, with the text that their request would get:
                their predictions have no place for it. Such an archive's batches hold one request.
        """
        if _are_requests(data, context):
            answers: list[object] = super().handle(data, context)
            return answers
        (answer,) = super().handle([{"body": {"instances": list(data)}}], context)
        content = orjson.loads(answer)
        status, _ = context.get_response_status(0)
        if status != HTTPStatus.OK:
            raise PredictionException(content["error"], _TOLD_AS.get(status, status))
        for i in range(len(context.request_processor)):
            context.set_response_content_type(i, "application/json")
        predictions: list[object] = content["predictions"]
        return predictions

    def preprocess(self, data: Sequence[Mapping[str, object]]) -> list[Job | MarvecError]:
        """Parse and tokenize each row alone, once its instances are as they were sent."""
        return super().preprocess([_restored(fields) for fields in data])


def _are_requests(data: Sequence[object], context: Context) -> bool:
    """Whether no envelope stands between: then each row has the very fields that its headers tell of."""
    headers = [context.get_all_request_header(i) for i in range(len(context.request_processor))]
    sent = [{name for name, value in each.items() if isinstance(value, dict)} for each in headers]
    return [set(row) if isinstance(row, dict) else None for row in data] == sent


def _restored(fields: Mapping[str, object]) -> Mapping[str, object]:
    body = fields.get("body")
    if not isinstance(body, dict) or not isinstance(body.get("instances"), list):
        return fields
    return {**fields, "body": {**body, "instances": [_as_sent(instance) for instance in body["instances"]]}}


def _as_sent(instance: object) -> object:
    """Undo what was done on the way: the envelope decodes base64, and Google wraps what is no object as its `data`."""
    if isinstance(instance, bytes):
        return _encoded(instance)
    if not isinstance(instance, dict):
        return instance
    if instance.keys() == {"data"} and isinstance(instance["data"], list):
        return instance["data"]
    return {name: _encoded(value) if isinstance(value, bytes) else value for name, value in instance.items()}


def _encoded(content: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(content).decode("ascii")}
