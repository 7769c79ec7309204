"""Prompts that the model cards of some families fix, and that their files do not carry.

Matched on the last part of the model's id, in full: `multilingual-e5-small` is one, `multilingual-e5-large-instruct`
(whose card wants an instruction of the caller's own) and `my-e5-small-finetune` are none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_SEARCH = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True)
class Family:
    """Models that share their prompts.

    Attributes:
        name: What pack calls it.
        pattern: Matches the last part of the model's id, in lower case.
        prompts: As the model card has them; "" where it says that such texts get none.
        query_tasks: Task types for which the card wants the query prompt, beside queries themselves.
    """

    name: str
    pattern: str
    prompts: Mapping[str, str]
    query_tasks: tuple[str, ...] = ()


FAMILIES = (
    Family(
        "e5",
        r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?",
        {"query": "query: ", "passage": "passage: "},
        ("semantic_similarity", "classification", "clustering"),
    ),
    Family("bge-en", r"bge-(small|base|large)-en(-v1\.5)?", {"query": _SEARCH, "document": ""}),
    Family("arctic-embed", r"snowflake-arctic-embed-(xs|s|m|m-long|l|m-v1\.5)", {"query": _SEARCH, "document": ""}),
    Family("arctic-embed-v2", r"snowflake-arctic-embed-(m|l)-v2\.0", {"query": "query: ", "document": ""}),
    Family("mxbai-embed", r"mxbai-embed-large-v1", {"query": _SEARCH, "document": ""}),
    Family(
        "nomic-embed",
        r"nomic-embed-text-v(1|1\.5|2-moe)",
        {
            "query": "search_query: ",
            "document": "search_document: ",
            "classification": "classification: ",
            "clustering": "clustering: ",
        },
    ),
)


def find(model_id: str) -> Family | None:
    """The family that a model belongs to by its id, if any."""
    last = model_id.rstrip("/").rsplit("/", 1)[-1].lower()
    return next((family for family in FAMILIES if re.fullmatch(family.pattern, last)), None)
