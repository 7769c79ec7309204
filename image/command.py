"""The command line of images: progress to stderr, what is to be done next to stdout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from image import build as builder
from image import push as pusher
from image import run as runner
from image.engine import Engine
from image.errors import ImageError
from image.subject import choose

app = typer.Typer(
    help="Build, run and push an image with docker or podman (MARVEC_CONTAINER_ENGINE says which).",
    no_args_is_help=True,
)

# A build sees the checkout and nothing else.
STORE = builder.ROOT / "model_store"
DEMO = "minilm"
SERVER_TAG = "marvec-server:latest"


@app.command("build")
def build(
    name: Annotated[str | None, typer.Argument(help="The archive.  \\[default: the only one in the store]")] = None,
    tag: Annotated[str | None, typer.Option(help="The image's name.  \\[default: NAME:VERSION]")] = None,
    base_image: Annotated[
        str | None,
        typer.Option(
            help="Build on this image, such as pytorch/torchserve:0.12.0-gpu.  \\[default: docker/base.Dockerfile's]"
        ),
    ] = None,
    torch_index: Annotated[
        str | None,
        typer.Option(envvar="MARVEC_TORCH_INDEX", help="Package index with CPU builds of torch, for the default base."),
    ] = None,
    fresh_base: Annotated[
        bool, typer.Option("--fresh-base", help="Make the default base anew, with Debian's and Java's latest repairs.")
    ] = False,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Put no model in: it is fetched from AIP_STORAGE_URI at the start.")
    ] = False,
) -> None:
    """Build an image that serves an archive of the checkout's model_store/, or the demo model where there is none.

    Example: marvec image build minilm
    """
    builder.require_checkout()
    engine = Engine.find()
    if name is not None and no_model:
        raise ImageError(f"{name} and --no-model: expected one of the two")
    if not (name or no_model or any(STORE.glob("*.mar"))):
        _pack_demo()
    subject = None if no_model else choose(STORE, name)
    tag = tag or (SERVER_TAG if subject is None else subject.tag)
    built = builder.build(
        engine, subject, tag, base_image=base_image, torch_index=torch_index, fresh_base=fresh_base, tell=_teller()
    )
    out = Console(highlight=False)
    shared = "" if subject is None else ", of which images of other models share all but the model"
    out.print(Text(f"{built.tag}: {built.size_bytes / 1e6:,.0f} MB{shared}"), soft_wrap=True)
    needed = " -- -e AIP_STORAGE_URI=gs://BUCKET/FOLDER" if subject is None else ""
    out.print(Text(f"\nnext: marvec image run {built.tag}{needed}"), soft_wrap=True)


@app.command("run")
def run(
    image: Annotated[
        str | None, typer.Argument(help="The image.  \\[default: of the only archive in the store]")
    ] = None,
    extra: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="Options of docker run or podman run.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of this machine, on 127.0.0.1.")
    ] = runner.CONTAINER_PORT,
    detach: Annotated[bool, typer.Option("--detach", help="Return when READY, and leave it running.")] = False,
) -> None:
    """Run an image, tell when it is READY, print requests to try; Ctrl-C ends it.

    Example: marvec image run minilm:1.0 --port 7090 -- --memory 2g --cpus 1
    """
    extra = extra or []
    if image is not None and image.startswith("-"):  # `marvec image run -- --memory 2g`
        extra, image = [image, *extra], None
    image = image or choose(STORE, None).tag
    raise typer.Exit(runner.run(Engine.find(), image, port, extra, detach=detach, tell=_teller()))


@app.command("push")
def push(
    image: Annotated[str, typer.Argument(help="The image, as `marvec image build` named it.")],
    destination: Annotated[str, typer.Argument(metavar="HOST/PATH/NAME:TAG", help="Its name in the registry.")],
) -> None:
    """Push an image to a registry.

    Example: marvec image push minilm:1.0 europe-west1-docker.pkg.dev/PROJECT/REPOSITORY/minilm:1.0
    """
    pusher.push(Engine.find(), image, destination)
    Console(highlight=False).print(Text(f"pushed: {destination}"), soft_wrap=True)


def _teller() -> Callable[[str], None]:
    console = Console(stderr=True, highlight=False)
    return lambda line: console.print(Text(line), soft_wrap=True)


def _pack_demo() -> None:
    from archiver.options import PackOptions  # torch and transformers take seconds
    from archiver.pack import pack

    tell = _teller()
    tell(f"{STORE} is empty: packing the demo model {DEMO}")
    fetch = [sys.executable, "-m", "demo", DEMO]  # stands in the checkout and is no installed package
    fetched = subprocess.run(fetch, cwd=builder.ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if fetched.returncode != 0:
        raise ImageError(f"the demo model {DEMO} cannot be fetched, for the reason above: pack a model of your own")
    pack(PackOptions(model=fetched.stdout.strip(), name=DEMO, model_store=STORE), tell)
