"""Which prompt goes before an input: by name, by Google's task type, or the archive's default."""

from __future__ import annotations

from marvec.errors import RequestError
from marvec.settings import EmbeddingModel

# Prompt names that stand for a task type, the first one that the archive has. A prompt of the task's own name is first.
_PROMPTS_OF_TASK = {
    "RETRIEVAL_QUERY": ("query",),
    "RETRIEVAL_DOCUMENT": ("passage", "document"),
    "QUESTION_ANSWERING": ("query",),
    "FACT_VERIFICATION": ("query",),
    "CODE_RETRIEVAL_QUERY": ("query",),
    "SEMANTIC_SIMILARITY": (),
    "CLASSIFICATION": (),
    "CLUSTERING": (),
}


def named(name: str, model: EmbeddingModel, where: str) -> str:
    """The prompt of that name; "" names none.

    Raises:
        RequestError: When the archive has none of that name; the message lists those it has.
    """
    if not name:
        return ""
    if name not in model.prompts:
        known = ", ".join(model.prompts) or "none"
        raise RequestError(f"{where}: no such prompt; prompts of this model: {known}")
    return model.prompts[name]


def of_task(task_type: str, model: EmbeddingModel, where: str) -> str:
    """The prompt for a task type of Google's text-embeddings API.

    Raises:
        RequestError: When the task type is unknown; the message lists the known.
    """
    require_task(task_type, where)
    lower = {name.lower(): prompt for name, prompt in model.prompts.items()}
    for name in (task_type.lower(), *_PROMPTS_OF_TASK[task_type]):
        if name in lower:
            return lower[name]
    return default(model)


def require_task(task_type: str, where: str) -> None:
    """Refuse a task type that Google's text-embeddings API does not have.

    Raises:
        RequestError: The message lists the known.
    """
    if task_type not in _PROMPTS_OF_TASK:
        raise RequestError(f"{where}: unknown task type; known: {', '.join(_PROMPTS_OF_TASK)}")


def default(model: EmbeddingModel) -> str:
    """The archive's default prompt, or none."""
    return "" if model.default_prompt is None else model.prompts[model.default_prompt]
