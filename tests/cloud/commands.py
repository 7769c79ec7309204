"""`marvec vertex` as a user runs it, against a stand-in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.cloud.conftest import CloudEnvironment
from tests.cloud.standin.stand_in import StandIn

MARVEC = str(Path(sys.executable).with_name("marvec"))
ANSWERED = 120


class Commands:
    """The commands in one folder, with one settings file.

    Args:
        standin: What they speak to.
        environment: The variables of a transport.
        folder: Where vertex.yaml lies.
        image: What is uploaded.
        name: Name of the model, of the endpoint and of what the image serves.
        transport: `grpc` or `rest`.
    """

    def __init__(
        self,
        standin: StandIn,
        environment: CloudEnvironment,
        folder: Path,
        image: str,
        name: str = "stub",
        transport: str = "grpc",
    ) -> None:
        self.standin = standin
        self.folder = folder
        self.environment = environment(standin, transport)
        self._content: dict[str, dict[str, object] | str] = {
            "project": "demo-project",
            "region": "us-central1",
            "api_transport": transport,
            "model": {"name": name, "image": image, "startup_timeout_s": 60},
            "endpoint": {"name": name},
            "deployment": {},
            "batch": {},
        }
        self.change()

    def change(self, **sections: Mapping[str, object]) -> None:
        """Write the settings file anew, with changes: `model={"image": "…"}`."""
        for section, values in sections.items():
            content = self._content[section]
            assert isinstance(content, dict)
            content.update(values)
        (self.folder / "vertex.yaml").write_text(yaml.safe_dump(self._content))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command in a group of its own; its output goes to pipes."""
        return subprocess.Popen(
            [MARVEC, "vertex", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, given: str = "", expect: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, and make sure of its exit status."""
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(given, timeout=ANSWERED)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == expect, f"{arguments}: {process.returncode}\n{out}\n{err}"
        assert "Traceback" not in err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def json(self, *arguments: str) -> dict[str, object]:
        """Run a command with --json, and return what it prints."""
        content: dict[str, object] = json.loads(self.run(*arguments, "--json").stdout)
        return content

    def traffic(self, *arguments: str) -> dict[str, int]:
        """Run a command with --json, and return each deployed version's share of the requests after it."""
        deployed = self.json(*arguments)["deployed"]
        assert isinstance(deployed, list)
        return {one["version"]: one["traffic"] for one in deployed}
