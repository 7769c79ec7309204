"""Regions of Vertex AI, as Google's SDK knows them (the tests hold them to its list)."""

from __future__ import annotations

from difflib import get_close_matches

from vertex.errors import VertexError

REGIONS = frozenset(
    {
        *("africa-south1", "asia-east1", "asia-east2", "asia-northeast1", "asia-northeast2", "asia-northeast3"),
        *("asia-south1", "asia-south2", "asia-southeast1", "asia-southeast2"),
        *("australia-southeast1", "australia-southeast2", "europe-central2", "europe-north1", "europe-north2"),
        *("europe-southwest1", "europe-west1", "europe-west2", "europe-west3", "europe-west4", "europe-west6"),
        *("europe-west8", "europe-west9", "europe-west12", "me-central1", "me-central2", "me-west1"),
        *("northamerica-northeast1", "northamerica-northeast2", "southamerica-east1", "southamerica-west1"),
        *("us-central1", "us-east1", "us-east4", "us-east5", "us-east7", "us-south1"),
        *("us-west1", "us-west2", "us-west3", "us-west4", "us-west8"),
    }
)
_SUGGESTIONS = 3


def check(region: str) -> None:
    """Refuse what is no region.

    Args:
        region: Such as europe-west1.

    Raises:
        VertexError: With those that it may have been meant for, or all.
    """
    if region not in REGIONS:
        near = get_close_matches(region.lower(), sorted(REGIONS), _SUGGESTIONS) or sorted(REGIONS)
        raise VertexError(f"{region!r} is no region of Vertex AI; such as {', '.join(near)}")
