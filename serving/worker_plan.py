"""Workers times threads: pure arithmetic over cores, memory and weights, with the reason in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serving.archives import Archive
from serving.errors import SettingsError
from serving.resources import Resources

CORES_PER_WORKER = 4
# Each worker lays the weights out anew for its processor. Matrices this large keep many threads busy: one worker then.
LARGE_WEIGHT_BYTES = 1_000_000_000
# Measured as resident memory: the weights as they are in the file, and laid out; Python, torch and the engine beside.
WEIGHT_COPIES = 2
WORKER_BYTES = 400_000_000
MEMORY_SHARE = 0.8
THREADS_VARIABLE = "OMP_NUM_THREADS"
# Java holds each waiting request, and a batch of them up to three times while it is handed over.
JAVA_MEMORY_SHARE = 0.25
LEAST_JAVA_BYTES = 512 << 20
MOST_JAVA_BYTES = 4096 << 20


@dataclass(frozen=True)
class WorkerPlan:
    """How many workers each model gets, and how many threads each worker.

    Attributes:
        workers: Workers of a model that pins no count of its own.
        threads: Threads of each worker, for its OMP_NUM_THREADS.
        total_workers: Workers of all models together.
        fits: Whether the memory is likely to suffice.
        reason: One line for the log.
    """

    workers: int
    threads: int
    total_workers: int
    fits: bool
    reason: str


def plan_workers(archives: Sequence[Archive], resources: Resources, environment: Mapping[str, str]) -> WorkerPlan:
    """Chooses workers and threads.

    One worker per four cores of a model's share, since one forward pass keeps about four threads busy and more
    workers cost memory; on GPUs one worker each. One only where a model has a gigabyte of weights, and fewer when
    weights and runtime would fill more than 80 % of memory.

    Args:
        archives: The models that share the machine.
        resources: What there is to share.
        environment: Its OMP_NUM_THREADS, the operator's own choice, wins.

    Returns:
        The plan.

    Raises:
        SettingsError: OMP_NUM_THREADS is no positive number.
    """
    cores_each = max(1, resources.cores // len(archives))
    workers = resources.gpus or max(1, cores_each // CORES_PER_WORKER)
    large = any(archive.weight_bytes >= LARGE_WEIGHT_BYTES for archive in archives)
    if large and not resources.gpus:
        workers = 1
    fits = True
    reasons = [f"{resources.cores} cores for {len(archives)} model{'s' if len(archives) > 1 else ''}"]
    if resources.gpus:
        reasons.append(f"{resources.gpus} GPUs, one worker each")
    elif resources.memory_bytes is not None:
        room = MEMORY_SHARE * resources.memory_bytes
        by_cores = workers
        while workers > 1 and _needed_bytes(archives, workers) > room:
            workers -= 1
        if workers < by_cores:
            reasons.append(f"{by_cores} workers would not fit")
        needed = _needed_bytes(archives, workers)
        fits = needed <= room
        share = f"{resources.memory_bytes / 1e9:.1f} GB memory"
        reasons.append(f"about {needed / 1e9:.1f} GB {'of' if fits else 'which is TOO MUCH for'} {share}")
    total = sum(archive.pinned_workers or workers for archive in archives)
    pinned = [f"{one.name} pins {one.pinned_workers}" for one in archives if one.pinned_workers]
    threads = max(1, resources.cores // total)
    own = environment.get(THREADS_VARIABLE, "")
    if own:
        # OpenMP's own form "4,2" (one number a nesting level) is legal; the first counts.
        first = own.split(",")[0].strip()
        if not (len(first) <= 6 and first.isascii() and first.isdigit() and int(first) > 0):
            raise SettingsError(f"{THREADS_VARIABLE}={own[:40]!r}: expected a number of threads, at least 1")
        threads = int(first)
        reasons.append(f"{THREADS_VARIABLE} is set")
    return WorkerPlan(
        workers=workers,
        threads=threads,
        total_workers=total,
        fits=fits,
        reason=f"{total} worker{'s' if total > 1 else ''} x {threads} threads ({'; '.join(reasons + pinned)})",
    )


def java_heap_bytes(resources: Resources) -> int:
    """The heap that Java may grow to; it takes no more than its work needs.

    Args:
        resources: What there is to share.

    Returns:
        A quarter of the memory, within bounds: 4 GiB hold a full queue of the largest requests.
    """
    share = int(JAVA_MEMORY_SHARE * (resources.memory_bytes or 0))
    return min(MOST_JAVA_BYTES, max(LEAST_JAVA_BYTES, share))


def _needed_bytes(archives: Sequence[Archive], workers: int) -> int:
    return sum(
        (WEIGHT_COPIES * archive.weight_bytes + WORKER_BYTES) * (archive.pinned_workers or workers)
        for archive in archives
    )
