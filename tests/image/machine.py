"""A container engine for the tests, made to work where there is no registry: podman with runc, in storage of its own.

What a machine of ours lacks, apt brings when the tests run as root; else they are skipped with the reason. Builds get
the machine's own way to the package indexes (pip's certificate and folders of wheels), so that the Dockerfiles stay
as they are for everybody. The storage is kept under the user's cache: a base is built once for each content.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PROGRAMS = ("podman", "runc", "mmdebstrap")
# Publishing a port needs these; podman only recommends them.
NETWORK_PACKAGES = ("containernetworking-plugins", "iptables")
DEBIAN = "docker.io/library/debian:bookworm-slim"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "marvec" / "containers"


class Unavailable(Exception):
    """This machine cannot run containers; the message says why."""


@dataclass(frozen=True)
class Machine:
    """podman, ready to build and run.

    Attributes:
        environment: What every command needs: where the configuration and the storage are.
        building: The same for builds, which reach the package indexes as this machine does.
        folder: Holds configuration and storage.
    """

    environment: dict[str, str]
    building: dict[str, str]
    folder: Path

    def podman(
        self, *arguments: str, timeout_s: float = 120, check: bool = True, sent: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run podman; with `check`, a failure raises AssertionError with what it said."""
        command = ["podman", *arguments]
        done = subprocess.run(
            command,
            input=sent,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def has(self, image: str) -> bool:
        """Return whether an image is in the storage."""
        return self.podman("image", "exists", image, check=False).returncode == 0


def prepare() -> Machine:
    """Install what is missing, configure podman, and make Debian's slim image from its packages.

    Raises:
        Unavailable: With the reason.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install()
        machine = _configure(CACHE)
        if not machine.has(DEBIAN):
            _make_debian(machine)
    return machine


def _install() -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise Unavailable(f"not installed: {', '.join(missing)}; install them, or run as root where apt is")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing, *NETWORK_PACKAGES]):
            done = subprocess.run(["apt-get", "-qq", *command], env=quiet, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Unavailable(f"apt-get {command[0]} failed: {done.stderr.strip()[-400:]}")
    if os.geteuid() != 0:
        raise Unavailable("containers with limits need root here")


def _configure(folder: Path) -> Machine:
    """Choose runc, since crun refuses a machine with both kinds of cgroup, and ask for no more files than allowed."""
    limits = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    hard = {name: min(resource.getrlimit(number)[1], 32768) for name, number in limits.items()}
    ulimits = [f"{name}={value}:{value}" for name, value in hard.items() if value > 0]
    for name, volumes in (("run.conf", []), ("build.conf", list(_pip_volumes(folder)))):
        (folder / name).write_text(
            "[containers]\n"
            f"default_ulimits = {json.dumps(ulimits)}\n"
            f"volumes = {json.dumps(volumes)}\n"
            "[engine]\n"
            'runtime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        )
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "overlay"\nrunroot = "{folder}/run"\ngraphroot = "{folder}/storage"\n'
    )
    environment = {
        **os.environ,
        "CONTAINERS_CONF": str(folder / "run.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "MARVEC_CONTAINER_ENGINE": "podman",
    }
    return Machine(environment, {**environment, "CONTAINERS_CONF": str(folder / "build.conf")}, folder)


def _pip_volumes(folder: Path) -> Iterator[str]:
    """What a build's pip needs to reach the indexes as this machine's does: its settings, and the files they name."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    settings: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = value.strip("'\"")
    lines = ["[global]"]
    if "cert" in settings and Path(settings["cert"]).is_file():
        certificate = folder / "certificates.crt"
        shutil.copyfile(settings["cert"], certificate)
        yield f"{certificate}:/etc/pip-certificates.crt:ro"
        lines.append("cert = /etc/pip-certificates.crt")
    wheels = [urlsplit(one).path for one in settings.get("find-links", "").split()]
    found = [one for one in wheels if Path(one).is_dir()]
    if found:
        lines.append(f"find-links = {' '.join(found)}")
        yield from (f"{one}:{one}:ro" for one in found)
    (folder / "pip.conf").write_text("\n".join([*lines, "timeout = 180", ""]))
    yield f"{folder / 'pip.conf'}:/etc/pip.conf:ro"


def _make_debian(machine: Machine) -> None:
    """Debian's slim image is a minimal system without documents; mmdebstrap makes the same from the packages."""
    tar = machine.folder / "debian.tar"
    try:
        leave_out = [f"--dpkgopt=path-exclude={path}/*" for path in ("/usr/share/man", "/usr/share/doc")]
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", *leave_out, "bookworm", str(tar)],
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        )
        machine.podman("import", "--change", 'CMD ["bash"]', str(tar), DEBIAN, timeout_s=300)
    except subprocess.SubprocessError as err:
        raise Unavailable(f"mmdebstrap made no Debian: {getattr(err, 'stderr', '') or err}") from err
    finally:
        tar.unlink(missing_ok=True)
