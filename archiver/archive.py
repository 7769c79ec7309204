"""The .mar, by torch-model-archiver."""

from __future__ import annotations

import logging
from pathlib import Path

from model_archiver.model_archiver_config import ModelArchiverConfig
from model_archiver.model_packaging_utils import ModelExportUtils

from archiver.progress import watched
from archiver.staging import CONFIG

# Weights do not get smaller by compression, but take minutes to be compressed and unpacked.
_FORMAT = "zip-store"


def build(staged: Path, folder: Path, name: str, version: str, handler: str) -> Path:
    """Archive a staged tree.

    The archiver's two steps that matter are called one by one: its command copies all files to a folder named after
    the model below the system's temporary one, deleting what lies there, and the tree is already as it should be.

    Args:
        staged: All that the archive will hold, but the manifest.
        folder: Where to write it.
        name: The model's name on the server.
        version: The model's version on the server.
        handler: The file that TorchServe loads, in the tree's root.

    Returns:
        The file NAME.mar.
    """
    config = ModelArchiverConfig(
        model_name=name,
        handler=handler,
        version=version,
        config_file=CONFIG,
        export_path=str(folder),
        archive_format=_FORMAT,
    )
    archive = folder / f"{name}.mar"
    size_bytes = sum(file.stat().st_size for file in staged.rglob("*") if file.is_file())
    manifest = ModelExportUtils.generate_manifest_json(config)
    logging.disable(logging.CRITICAL)  # what it logs before it raises is told once, by us
    try:
        with watched(f"archive {archive.name}", archive, size_bytes):
            ModelExportUtils.archive(str(folder), name, str(staged), manifest, _FORMAT)
    finally:
        logging.disable(logging.NOTSET)
    return archive
