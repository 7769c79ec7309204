"""A handler of ours in TorchServe's own Service, on the unpacked archive of a tiny model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import yaml
from ts.metrics.metric_cache_yaml_impl import MetricsCacheYamlImpl
from ts.service import Service

from archiver import model_dir
from embedding_handler import EmbeddingHandler
from marvec import golden
from marvec.embedder import Embedder
from marvec.settings import EmbeddingModel, EmbeddingSettings

ROOT = Path(__file__).resolve().parent.parent.parent


def write_archive(folder: Path, model: Path, config: Mapping[str, object]) -> Path:
    """Fill a folder with what the handler reads of an archive; `config` stands beside the `handler:` section."""
    (folder / "model").symlink_to(model)
    found = model_dir.read(folder / "model")
    settings = EmbeddingSettings(EmbeddingModel("tiny", None, found.max_length, found.hidden_size, ("mean",), True))
    golden.record(Embedder.load(folder / "model", settings)).save(folder / "golden.json")
    (folder / "model-config.yaml").write_text(yaml.safe_dump({**config, "handler": settings.to_mapping()}), "utf-8")
    return folder


def service_of(folder: Path, handler: EmbeddingHandler, batch_size: int) -> Service:
    """Return TorchServe's own Service around an initialized handler."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # TorchServe leaves the YAML files that it reads open
        metrics = MetricsCacheYamlImpl(str(ROOT / "serving" / "metrics.yaml"))
        metrics.model_name = "tiny"
        metrics.initialize_cache()
        manifest = {"model": {"modelName": "tiny", "configFile": "model-config.yaml"}}
        service = Service("tiny", str(folder), manifest, handler.handle, None, batch_size, metrics_cache=metrics)
    handler.initialize(service.context)
    return service
