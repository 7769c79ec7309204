"""The container engine: docker or podman, whichever is there and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from image.errors import ImageError

PROGRAMS = ("docker", "podman")
VARIABLE = "MARVEC_CONTAINER_ENGINE"
_ANSWER_S = 60


@dataclass(frozen=True)
class Engine:
    """A program that works: it told of itself and, docker, of its server.

    Attributes:
        program: Its name or path; the command line of both kinds is the same as far as it is used here.
    """

    program: str

    @classmethod
    def find(cls, environment: Mapping[str, str] = os.environ) -> Engine:
        """Take the first that works: the one that MARVEC_CONTAINER_ENGINE names, else docker, else podman.

        Raises:
            ImageError: When none does; the message says what each of them said.
        """
        named = environment.get(VARIABLE)
        tried = []
        for program in [named] if named else PROGRAMS:
            if shutil.which(program) is None:
                tried.append(f"{program}: not installed")
                continue
            engine = cls(program)
            try:
                engine.ask("info")  # fails where docker's client finds no server
            except ImageError as err:
                tried.append(str(err))
            else:
                return engine
        raise ImageError(f"no container engine works ({'; '.join(tried)}): install docker or podman, or start it")

    def ask(self, *arguments: str) -> str:
        """Run a command and return what it printed.

        Raises:
            ImageError: When it fails; the message ends with the engine's own.
        """
        command = [self.program, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as err:
            raise ImageError(f"{self.program} {arguments[0]}: {err.__class__.__name__}") from err
        if done.returncode != 0:
            # Not the whole command: an option may hold a secret.
            raise ImageError(f"{self.program} {arguments[0]}: {_reason(done.stderr or done.stdout)}")
        return done.stdout.strip()

    def follow(self, *arguments: str) -> None:
        """Run a command that takes its time; what it prints goes to stderr as it comes.

        Raises:
            ImageError: When it fails; why was printed.
        """
        command = [self.program, *arguments]
        try:
            status = subprocess.run(command, stdout=sys.stderr, check=False).returncode
        except OSError as err:
            raise ImageError(f"{self.program} {arguments[0]}: {err.strerror}") from err
        if status != 0:
            raise ImageError(f"{self.program} {arguments[0]} failed with exit status {status}, for the reason above")

    def has_image(self, name: str) -> bool:
        """Return whether an image is here."""
        try:
            self.ask("image", "inspect", name)
        except ImageError:
            return False
        return True


def _reason(text: str) -> str:
    """The line that says why: after warnings, before advice."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "level=warn" not in line]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["it failed without a word"])[0]
