"""Options that the commands of Vertex AI share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SettingsFile = Annotated[Path, typer.Option("--settings", metavar="FILE", help="The settings file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the gcloud lines and the requests, and change nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
VERTEX_YAML = Path("vertex.yaml")
