"""The images that a stand-in can pull: ours, with a model or without, and stubs that are up, or broken, in a blink."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.cloud.standin.images import Image, marvec_image, stub_image

REGISTRY = "us-central1-docker.pkg.dev/demo-project/models"
# Ours: MiniLM, the tiny model of tests/contract, and one without a model, for AIP_STORAGE_URI.
MINILM = f"{REGISTRY}/minilm:1.0"
TINY = f"{REGISTRY}/tiny:1.0"
SERVER = f"{REGISTRY}/marvec-server:latest"
# Stubs: two that answer who they are; one that ends at once; one that is ready after two seconds; one whose predictions
# are all 500; one that refuses instances with the word "bad".
STUB = f"{REGISTRY}/stub:1"
OTHER_STUB = f"{REGISTRY}/stub:2"
BROKEN = f"{REGISTRY}/stub:broken"
SLOW = f"{REGISTRY}/stub:slow"
FAILING = f"{REGISTRY}/stub:failing"
PICKY = f"{REGISTRY}/stub:picky"


def stub_images() -> dict[str, Image]:
    """Return the stubs."""
    return {
        STUB: stub_image(STUB_ANSWER="one"),
        OTHER_STUB: stub_image(STUB_ANSWER="two"),
        BROKEN: stub_image(STUB_EXIT="3"),
        SLOW: stub_image(STUB_READY_AFTER_S="2"),
        FAILING: stub_image(STUB_STATUS="500"),
        PICKY: stub_image(STUB_REFUSE="bad"),
    }


def all_images(minilm_store: Path, tiny_store: Path, empty_store: Path) -> Mapping[str, Image]:
    """Return the stubs and ours.

    Args:
        minilm_store: Holds minilm.mar.
        tiny_store: Holds tiny.mar.
        empty_store: An empty folder.
    """
    ours = {
        MINILM: marvec_image(minilm_store),
        TINY: marvec_image(tiny_store),
        SERVER: marvec_image(empty_store),
    }
    return {**stub_images(), **ours}
