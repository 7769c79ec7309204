"""Shares of an endpoint's traffic in whole per cent: pure arithmetic on `{deployed model id: per cent}`.

Google takes a split only when it sums to 100, and names a model that is just being deployed "0".
"""

from __future__ import annotations

from collections.abc import Mapping

from vertex.errors import AbsentError, VertexError

NEW = "0"
WHOLE = 100


def serving(split: Mapping[str, int]) -> dict[str, int]:
    """Return the shares above 0, which are all that Google tells and takes.

    Args:
        split: Deployed models' ids to per cent.
    """
    return {one: share for one, share in split.items() if share > 0}


def with_share(split: Mapping[str, int], model: str, share: int) -> dict[str, int]:
    """Give one model a share; the others keep their proportions in what is left.

    Args:
        split: What holds now; empty where nothing is deployed.
        model: A deployed model's id, or NEW.
        share: 0 to 100.

    Returns:
        A split that sums to 100.

    Raises:
        VertexError: When no other model could take the rest.
    """
    others = {one: per_cent for one, per_cent in split.items() if one != model and per_cent > 0}
    if not others:
        if share != WHOLE and any(one != model for one in split):
            raise VertexError(f"{share} % leaves {WHOLE - share} % to versions that have no traffic: name their shares")
        return {model: WHOLE}
    parts = _scaled(others, WHOLE - share)
    return serving({**parts, model: share})


def without(split: Mapping[str, int], model: str) -> dict[str, int]:
    """Take a model's share from it, for the others in their proportions.

    Where none has any, the one before it gets all, or the newest where there is none before.

    Args:
        split: What holds now, with every deployed model, those without traffic at 0, oldest first.
        model: A deployed model's id.

    Returns:
        A split that sums to 100; empty when no other model is left.
    """
    others = {one: per_cent for one, per_cent in split.items() if one != model}
    if not others:
        return {}
    if not any(others.values()):
        older = list(split)[: list(split).index(model)]
        return {(older or list(others))[-1]: WHOLE}
    return serving(_scaled(others, WHOLE))


def back_from(split: Mapping[str, int], model: str) -> dict[str, int]:
    """Take a model's share from it, for the older ones.

    Args:
        split: As `without` takes it.
        model: The newest deployed model's id.

    Raises:
        AbsentError: There is no older one.
    """
    if split[model] == 0:
        return serving(split)
    older = dict(list(split.items())[: list(split).index(model)])
    if not older:
        raise AbsentError("no older version is deployed on the endpoint: marvec vertex deploy --version N")
    return without({**older, model: split[model]}, model)


def named(shares: Mapping[str, int]) -> dict[str, int]:
    """Check shares that somebody named.

    Args:
        shares: Deployed model's id to per cent.

    Returns:
        Those above 0.

    Raises:
        VertexError: When one is no per cent, or they do not sum to 100.
    """
    if any(not 0 <= share <= WHOLE for share in shares.values()):
        raise VertexError("shares of traffic are whole numbers from 0 to 100")
    if sum(shares.values()) != WHOLE:
        raise VertexError(f"the shares of traffic sum to {sum(shares.values())}: expected {WHOLE}")
    return serving(shares)


def _scaled(parts: Mapping[str, int], total: int) -> dict[str, int]:
    """Whole numbers in the proportion of `parts` that sum to `total`: the largest remainders are rounded up."""
    exact = {one: part * total / sum(parts.values()) for one, part in parts.items()}
    scaled = {one: int(part) for one, part in exact.items()}
    by_remainder = sorted(exact, key=lambda one: exact[one] - scaled[one], reverse=True)
    for one in by_remainder[: total - sum(scaled.values())]:
        scaled[one] += 1
    return scaled
