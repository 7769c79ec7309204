"""The command line of packing: options in, progress to stderr, a summary and the next command to stdout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from archiver.options import PackOptions, parse_pooling, parse_prompts
from marvec.settings import ClassificationSettings, EmbeddingSettings, Settings

if TYPE_CHECKING:
    from archiver.pack import Packed

# The newest of Google's prebuilt containers for PyTorch.
_VERTEX_IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/pytorch-cpu.2-4:latest"
_LABELS_SHOWN = 12
# Headings of pack's help.
_EMBEDDINGS = "Embedding models"
_CLASSIFIERS = "Text classifiers"


def pack(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model directory or a hub id.", show_default=False)],
    name: Annotated[
        str | None,
        typer.Option(help="The archive's name, and the model's on the server.  \\[default: MODEL's last part]"),
    ] = None,
    version: Annotated[str, typer.Option(help="The model's version on the server.")] = "1.0",
    model_store: Annotated[Path, typer.Option(help="Folder that the .mar is written into.")] = Path("model_store"),
    handler: Annotated[
        str | None,
        typer.Option(help="embedding or classification.  \\[default: what the model's architecture says]"),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_EMBEDDINGS,
            help="mean, cls, max, lasttoken, weightedmean or mean_sqrt_len_tokens; cls,mean concatenates.",
        ),
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", rich_help_panel=_EMBEDDINGS, help="A prompt; may be given several times."),
    ] = None,
    default_prompt: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=_EMBEDDINGS, help="Prompt of texts that name none; '' for no prompt."
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            help="float32, bfloat16, float16 (GPUs only), int8 (CPUs only), or auto: what the device is fast in."
        ),
    ] = "float32",
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Texts that int8 is fitted to, one a line: some hundreds are best."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="cpu, gpu, or any: for both, twice as large.  \\[default: cpu; with float16 gpu]"),
    ] = None,
    torchscript: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A traced forward(input_ids, attention_mask), served instead of the weights."
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_CLASSIFIERS,
            help="index_to_name.json.  \\[default: MODEL's, else its id2label]",
        ),
    ] = None,
    problem_type: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_CLASSIFIERS,
            help="What outputs mean, in the words of config.json's problem_type.  \\[default: config.json's]",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_CLASSIFIERS,
            help="What is answered: label, or score (a label with its score).  \\[default: score]",
        ),
    ] = None,
    pairs: Annotated[
        bool | None,
        typer.Option(
            "--pairs/--no-pairs",
            rich_help_panel=_CLASSIFIERS,
            help="Whether pairs of texts are taken.  \\[default: pairs]",
        ),
    ] = None,
    max_length: Annotated[int | None, typer.Option(help="Longest input in tokens; longer ones are cut.")] = None,
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize/--no-normalize", rich_help_panel=_EMBEDDINGS, help="Whether vectors get unit length."
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Requests that TorchServe hands over together, at most.")] = 16,
    workers: Annotated[int | None, typer.Option(help="Worker processes; `marvec serve` chooses otherwise.")] = None,
    max_instances: Annotated[int | None, typer.Option(help="Instances in a request, at most.")] = None,
    max_request_tokens: Annotated[int | None, typer.Option(help="Tokens in a request, at most.")] = None,
    max_batch_tokens: Annotated[int | None, typer.Option(help="Padded tokens in one forward pass, at most.")] = None,
    max_response_bytes: Annotated[int | None, typer.Option(help="Bytes in a response, at most.")] = None,
    openai_token_ids: Annotated[
        bool,
        typer.Option(
            "--openai-token-ids", rich_help_panel=_EMBEDDINGS, help="Let /v1/embeddings take token ids of this model."
        ),
    ] = False,
    vertex_prebuilt: Annotated[
        bool,
        typer.Option(
            "--vertex-prebuilt", help="Write MODEL_STORE/NAME.vertex/model.mar too, for Google's prebuilt containers."
        ),
    ] = False,
) -> None:
    """Pack an embedding model or a text classifier into MODEL_STORE/NAME.mar, proved by loading it as TorchServe does.

    Example: marvec pack intfloat/multilingual-e5-small --name e5 --workers 2
    """
    options = PackOptions(
        model=model,
        name=name,
        version=version,
        model_store=model_store,
        handler=handler,
        revision=revision,
        pooling=parse_pooling(pooling),
        prompts=parse_prompts(prompt or []),
        default_prompt=default_prompt,
        dtype=dtype,
        calibration=calibration,
        target=target,
        torchscript=torchscript,
        labels=labels,
        problem_type=problem_type,
        output=output,
        pairs=pairs,
        max_length=max_length,
        normalize=normalize,
        batch_size=batch_size,
        workers=workers,
        max_instances=max_instances,
        max_request_tokens=max_request_tokens,
        max_batch_tokens=max_batch_tokens,
        max_response_bytes=max_response_bytes,
        openai_token_ids=openai_token_ids,
        vertex_prebuilt=vertex_prebuilt,
    )
    from archiver import pack as road  # torch and transformers take seconds, and --help does not need them

    progress = Console(stderr=True, highlight=False)
    packed = road.pack(options, lambda line: progress.print(Text(line), soft_wrap=True))
    _summarize(packed, model_store, Console(highlight=False))


def _summarize(packed: Packed, model_store: Path, console: Console) -> None:
    model, engine, vertex = packed.settings.model, packed.settings.engine, packed.vertex
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for key, value in (
        ("name", f"{packed.name}, version {packed.version}"),
        ("file", str(packed.file)),
        ("size", f"{packed.size_bytes / 1e6:,.1f} MB"),
        ("model", model.id if model.revision is None else f"{model.id} at {model.revision}"),
        ("served for", packed.settings.task),
        *_of_task(packed.settings),
        ("max length", f"{model.max_length} tokens"),
        ("encoder", f"{engine.encoder}, {engine.dtype}"),
        *([("for Vertex AI", f"{vertex}, {vertex.stat().st_size / 1e6:,.1f} MB")] if vertex is not None else []),
    ):
        table.add_row(key, Text(value, overflow="fold"))
    console.print(table)
    store = "" if model_store == Path("model_store") else f" --model-store {model_store}"
    console.print(Text(f"\nnext: marvec serve {packed.name}{store}"), soft_wrap=True)
    if vertex is not None:
        console.print(Text(_vertex_steps(packed.name, vertex.parent)), soft_wrap=True)


def _of_task(settings: Settings) -> list[tuple[str, str]]:
    if isinstance(settings, EmbeddingSettings):
        vectors = settings.model
        return [
            ("dimension", str(vectors.served_dimension) + (", unit length" if vectors.normalize else "")),
            ("pooling", "+".join(vectors.pooling)),
            ("prompts", ", ".join(f"{name}={text!r}" for name, text in vectors.prompts.items()) or "none"),
        ]
    if isinstance(settings, ClassificationSettings):
        shown = ", ".join(settings.model.labels[:_LABELS_SHOWN])
        more = len(settings.model.labels) - _LABELS_SHOWN
        return [
            ("labels", f"{shown} and {more} more" if more > 0 else shown),
            ("problem", settings.model.problem_type),
            ("predictions", settings.model.output),
        ]
    return []


def _vertex_steps(name: str, folder: Path) -> str:
    return f"""
on Vertex AI, in Google's prebuilt container (until 2027-01-14, when Google removes it):
  gcloud storage cp -r {folder} gs://BUCKET/
  Model.upload(display_name="{name}", artifact_uri="gs://BUCKET/{folder.name}",
      serving_container_image_uri="{_VERTEX_IMAGE}")"""
