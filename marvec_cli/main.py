"""The `marvec` command. A MarvecError becomes one red line and exit status 1, without a traceback."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from archiver.command import pack
from image.command import app as image
from marvec.errors import ConfigurationError, MarvecError
from vertex.last_line import tell


class _App(typer.Typer):
    def __call__(self, *args: object, **options: object) -> object:
        """Run a command; what Marvec raises on purpose is told, anything else is a defect and shows its trace."""
        try:
            return super().__call__(*args, **options)
        except MarvecError as err:
            sys.exit(tell(err))


app = _App(
    help="Turn an embedding model or a text classifier into a TorchServe archive, and serve it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command("pack")(pack)
app.add_typer(image, name="image")


# Everything after the command's name is for the command line of vertex/, `--help` and `--` too.
_HANDED_ON = {"ignore_unknown_options": True, "help_option_names": [], "allow_interspersed_args": False}


@app.command("vertex", context_settings=_HANDED_ON)
def vertex(arguments: Annotated[list[str] | None, typer.Argument(metavar="COMMAND [ARG]...")] = None) -> None:
    """Upload a model to Vertex AI, deploy it, ask it, and take it down again.

    Example: marvec vertex deploy --dry-run
    """
    try:
        from vertex.command import app as commands  # Google's clients take two seconds to import
    except ModuleNotFoundError as err:
        raise ConfigurationError(f"{err.name} is missing: pip install 'marvec[vertex]'") from err
    commands(arguments or [], prog_name="marvec vertex")


@app.command("serve")
def serve(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Archives to serve.  \\[default: all in the store]")
    ] = None,
    model_store: Annotated[Path, typer.Option(help="Folder that holds NAME.mar.")] = Path("model_store"),
    config: Annotated[Path | None, typer.Option(help="Another config.properties.")] = None,
) -> None:
    """Serve archives on port 7080 (AIP_HTTP_PORT) until Ctrl-C.

    Example: marvec serve minilm
    """
    from serving.launch import main  # what starts and watches Java; other commands do without

    chosen = [] if config is None else ["--config", str(config)]
    raise typer.Exit(main([*(names or []), "--model-store", str(model_store), "--print-curl", *chosen]))
