"""A request's body -> a ClassificationRequest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from marvec import classification_parameters, classification_response, prompts
from marvec.classification_parameters import ClassificationParameters
from marvec.instances import Reader
from marvec.request import Request, read_body, require_few, require_path
from marvec.scores import scores
from marvec.settings import ClassificationModel, ClassificationSettings
from marvec.tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ClassificationRequest(Request):
    """A checked request for labels.

    Attributes:
        parameters: Which labels are wanted, and how.
        model: For what its outputs mean.
    """

    parameters: ClassificationParameters
    model: ClassificationModel
    for_less: ClassVar[str] = "ask for fewer labels (topK)"

    @property
    def auto_truncate(self) -> bool:
        """Whether a too long input is cut instead of refused."""
        return self.parameters.auto_truncate

    @property
    def answer_bytes(self) -> int:
        """The most that the answer can take."""
        return classification_response.size_bytes(len(self.inputs), self.parameters, self.model)

    def finish(self, numbers: Tensor) -> Tensor:
        """Score each label: logits [inputs, labels] -> scores [inputs, labels] float32."""
        return scores(numbers, self.model.problem_type)

    def serialize(self, tokens: Sequence[Tokens], numbers: Tensor) -> bytes:
        """Write labels, or a regression's numbers."""
        if self.model.regression:
            return classification_response.regression(numbers.numpy())
        return classification_response.labels(numbers.numpy(), self.parameters, self.model.labels)


def parse(
    body: object, settings: ClassificationSettings, query: Mapping[str, str], path: str = ""
) -> ClassificationRequest:
    """Read and check a request.

    Args:
        body: Bytes or string of JSON, or what a server has already decoded.
        settings: For labels and limits.
        query: Parameters from the URL or from form fields.
        path: What follows the model's own path; nothing is served there.

    Raises:
        RequestError: When the caller must send something else; the message says what.
    """
    require_path(path)
    instances, given = read_body(body)
    require_few(len(instances), "instances", settings.limits)
    asked = classification_parameters.parse(given, query, settings.model)
    reader = Reader(_no_prompt, pairs=settings.model.pairs)
    inputs = [reader.read(item, f"instances[{i}]") for i, item in enumerate(instances)]
    return ClassificationRequest(inputs, asked, settings.model)


def _no_prompt(task_type: str, where: str) -> str:
    """Classifiers put nothing before a text, whatever Google's task type is; an unknown one is refused all the same."""
    prompts.require_task(task_type, where)
    return ""
