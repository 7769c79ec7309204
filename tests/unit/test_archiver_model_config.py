"""model-config.yaml as pack writes it, and the commented template at the root: the same keys and defaults."""

from __future__ import annotations

from pathlib import Path

import yaml

from archiver import model_config
from marvec.settings import EmbeddingModel, EmbeddingSettings, EngineSettings, LimitSettings, read_settings

TEMPLATE = Path(__file__).parents[2] / "model-config.yaml"
SETTINGS = EmbeddingSettings(
    EmbeddingModel(
        id="intfloat/multilingual-e5-small",
        revision=None,
        dimension=384,
        max_length=512,
        pooling=("mean",),
        normalize=True,
        prompts={"query": "query: ", "passage": "passage: "},
    ),
    EngineSettings("openvino"),
)


def keys(tree: object, path: str = "") -> set[str]:
    """Return the dotted names of all keys."""
    if not isinstance(tree, dict) or path.endswith(".prompts"):
        return {path}
    return {name for key, value in tree.items() for name in keys(value, f"{path}.{key}")}


def test_the_template_is_what_pack_would_write() -> None:
    template = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    written = yaml.safe_load(model_config.render(SETTINGS, batch_size=16, workers=1))

    assert keys(template) == keys(written)
    assert template == written


def test_every_key_of_the_template_is_explained() -> None:
    lines = TEMPLATE.read_text(encoding="utf-8").splitlines()
    explained = {"minWorkers", "maxWorkers", "model", "engine", "limits", "handler", "query", "passage"}
    for above, line in zip(lines, lines[1:]):
        key = line.strip().partition(":")[0]
        if line.strip() and not line.lstrip().startswith("#") and key not in explained:
            assert above.lstrip().startswith("#") or key in ("revision", "default_prompt"), line


def test_the_settings_come_back_from_what_was_written() -> None:
    settings = EmbeddingSettings(
        EmbeddingModel(
            id="org/model",
            revision="c0ffee",
            dimension=8,
            max_length=64,
            pooling=("cls", "mean"),
            dense=("2_Dense",),
            normalize=False,
            prompts={"query": "query: ", "日本": "検索:\n\t「", "yes": "no", "null": "# - {x: 1} " * 30},
            default_prompt="yes",
        ),
        EngineSettings(dtype="bfloat16", max_batch_tokens=512),
        LimitSettings(max_instances=1, max_request_tokens=2, max_response_bytes=1000, openai_token_ids=True),
    )

    written = yaml.safe_load(model_config.render(settings, batch_size=4, workers=None))

    assert read_settings(written["handler"]) == settings
    assert "minWorkers" not in written
    assert written["batchSize"] == 4


def test_the_section_of_a_classifier_in_the_template() -> None:
    (_, commented) = TEMPLATE.read_text(encoding="utf-8").split("# --- The model section of a classifier")
    lines = [line[1:] for line in commented.splitlines()[1:] if not line.startswith("#     #")]
    section = yaml.safe_load("\n".join(lines))
    settings = read_settings({"task": "classification", **section})
    assert settings.to_mapping()["model"] == section["model"]
    written = yaml.safe_load(model_config.render(settings, batch_size=16, workers=1))
    assert read_settings(written["handler"]) == settings
