"""What a request for labels may ask for beside its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marvec import json_values, parameters
from marvec.errors import RequestError
from marvec.settings import OUTPUTS, ClassificationModel

NAMES = ("topK", "scores", "threshold", "output", "autoTruncate")
_KINDS = {"topK": "whole", "threshold": "number", "autoTruncate": "boolean"}
_SCORES = ("best", "all")


@dataclass(frozen=True)
class ClassificationParameters:
    """Checked parameters, with the model's defaults filled in.

    Attributes:
        most: Labels of a prediction, at most.
        several: Whether a prediction is a list of labels, the best first, or the best one alone.
        threshold: The least score of a label in a list; None for any.
        output: "score" for each label with its score, "label" for the label alone.
        auto_truncate: Whether a too long input is cut instead of refused.
    """

    most: int
    several: bool
    threshold: float | None
    output: str
    auto_truncate: bool


def parse(value: object, query: Mapping[str, str], model: ClassificationModel) -> ClassificationParameters:
    """Check a request's parameters.

    Args:
        value: The body's `parameters`: an object, or None.
        query: Parameters from the URL or from form fields; the body's win.
        model: For defaults and bounds.

    Raises:
        RequestError: For an unknown parameter, a value out of range, or one that the model has no answer for.
    """
    given = {} if value is None else json_values.members(value, "parameters", NAMES)
    asked = {**parameters.of_query(query, NAMES, _KINDS), **given}
    asked = {name: item for name, item in asked.items() if item is not None}
    if model.regression:
        _refuse_labels(asked)
    most = _most(asked, model)
    threshold = _threshold(asked["threshold"]) if "threshold" in asked else None
    return ClassificationParameters(
        most=len(model.labels) if most is None and threshold is not None else most or 1,
        several=most is not None or threshold is not None,
        threshold=threshold,
        output=json_values.one_of(asked["output"], "parameters.output", OUTPUTS) if "output" in asked else model.output,
        auto_truncate=json_values.boolean(asked.get("autoTruncate", True), "parameters.autoTruncate"),
    )


def _most(asked: Mapping[str, object], model: ClassificationModel) -> int | None:
    """How many labels were asked for; None where none of the parameters says."""
    scores = json_values.one_of(asked["scores"], "parameters.scores", _SCORES) if "scores" in asked else None
    if "topK" not in asked:
        return len(model.labels) if scores == "all" else None
    if scores is not None:
        raise RequestError("parameters.topK and parameters.scores both say how many labels: send one of them")
    count, labels = json_values.whole(asked["topK"], "parameters.topK"), len(model.labels)
    if not 1 <= count <= labels:
        raise RequestError(f"parameters.topK: allowed are 1 to {labels}, got {count}")
    return count


def _threshold(value: object) -> float:
    threshold = json_values.number(value, "parameters.threshold")
    if not 0 <= threshold <= 1:
        raise RequestError(f"parameters.threshold: allowed are 0 to 1, got {threshold!r}")
    return threshold


def _refuse_labels(asked: Mapping[str, object]) -> None:
    """A regression answers with numbers. `output: score` and `scores: all` are that already."""
    for name, value in asked.items():
        if name != "autoTruncate" and (name, value) not in (("output", "score"), ("scores", "all")):
            raise RequestError(
                f"parameters.{name}: this model is a regression: its answer is a number, not a label; leave it out"
            )
