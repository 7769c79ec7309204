"""What this process may use: cores and memory of the cgroup (v1 or v2) and the affinity mask, and GPUs.

`os.cpu_count()` tells the machine's cores, not the container's: 16 workers on a quota of one core would be the result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")
PROC_CGROUP = Path("/proc/self/cgroup")
# cgroup v1 writes "no limit" as a huge page-rounded number.
UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True)
class Resources:
    """What the workers may share.

    Attributes:
        cores: Whole cores, at least one.
        memory_bytes: The memory limit, or the machine's memory where there is no limit; None where neither is known.
        gpus: GPUs that TorchServe will hand out.
    """

    cores: int
    memory_bytes: int | None
    gpus: int


def read_resources(environment: Mapping[str, str]) -> Resources:
    """Measures this process's own share.

    Args:
        environment: Usually `os.environ`.

    Returns:
        Cores, memory and GPUs.
    """
    membership = PROC_CGROUP.read_text() if PROC_CGROUP.is_file() else ""
    memory = memory_limit_bytes(CGROUP_ROOT, membership)
    return Resources(
        cores=usable_cores(_affinity(), cpu_quota(CGROUP_ROOT, membership)),
        memory_bytes=_smaller(memory, _machine_memory_bytes()),
        gpus=_gpus(environment),
    )


def usable_cores(affinity: int, quota: float | None) -> int:
    """Whole cores under both limits: a part of a core is left to Java, and there is always one.

    Args:
        affinity: Cores that this process may run on.
        quota: Cores' worth of time that the cgroup grants, None for no limit.

    Returns:
        At least 1.
    """
    return max(1, affinity if quota is None else min(affinity, int(quota)))


def cpu_quota(root: Path, membership: str) -> float | None:
    """The smallest CPU quota on the way from the cgroup root to this process's group.

    Args:
        root: Where the cgroup file systems are mounted.
        membership: The text of /proc/self/cgroup.

    Returns:
        Cores' worth of time, None for no limit.
    """
    quota: float | None = None
    for folder in _folders(root, membership, "cpu"):
        if (folder / "cpu.max").is_file():
            amount, _, period = (folder / "cpu.max").read_text().strip().partition(" ")
        elif (folder / "cpu.cfs_quota_us").is_file():
            amount = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        else:
            continue
        if amount.isdigit() and period.isdigit() and int(amount) and int(period):
            here = int(amount) / int(period)
            quota = here if quota is None else min(quota, here)
    return quota


def memory_limit_bytes(root: Path, membership: str) -> int | None:
    """The smallest memory limit on the way from the cgroup root to this process's group.

    Args:
        root: Where the cgroup file systems are mounted.
        membership: The text of /proc/self/cgroup.

    Returns:
        Bytes, None for no limit.
    """
    limit: int | None = None
    for folder in _folders(root, membership, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            if (folder / name).is_file():
                text = (folder / name).read_text().strip()
                if text.isdigit() and int(text) < UNLIMITED_BYTES:
                    limit = _smaller(limit, int(text))
    return limit


def _folders(root: Path, membership: str, controller: str) -> Iterator[Path]:
    """Every folder that may hold a limit of this process.

    In a container the own group is usually mounted as the root; without a cgroup namespace /proc names the host's
    path, which may or may not exist under the mount. So: the mounts' roots, and each existing step of the path.
    """
    for line in membership.splitlines() or ["0::/"]:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        mounts = [root / controllers, root / controller] if controllers else [root, root / "unified"]
        for mount in mounts:
            here = mount
            if here.is_dir():
                yield here
            for step in Path(path).parts[1:]:
                here = here / step
                if here.is_dir():
                    yield here


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _machine_memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _smaller(one: int | None, other: int | None) -> int | None:
    known = [value for value in (one, other) if value is not None]
    return min(known) if known else None


def _gpus(environment: Mapping[str, str]) -> int:
    """Counts as TorchServe does: what nvidia-smi lists, narrowed by CUDA_VISIBLE_DEVICES."""
    if shutil.which("nvidia-smi") is None:
        return 0
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return 0
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return len(listed)
    return min(len(listed), len([one for one in visible.split(",") if one.strip()]))
