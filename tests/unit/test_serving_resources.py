"""Cores and memory from cgroup files of both versions, and the plan that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from serving.archives import Archive
from serving.errors import SettingsError
from serving.resources import Resources, cpu_quota, memory_limit_bytes, read_resources, usable_cores
from serving.worker_plan import java_heap_bytes, plan_workers

GIB = 1 << 30


def cgroup(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def archive(weight_bytes: int = 0, pinned: int | None = None, name: str = "m") -> Archive:
    return Archive(name, "1.0", Path("m.mar"), weight_bytes, pinned)


def test_version_2_takes_the_smallest_limit_on_the_way(tmp_path: Path) -> None:
    files = {
        "cpu.max": "max 100000",
        "a/cpu.max": "150000 100000",
        "a/b/cpu.max": "400000 100000",
        "a/memory.max": "max",
        "a/b/memory.max": "1073741824",
    }
    root = cgroup(tmp_path, files)
    assert cpu_quota(root, "0::/a/b\n") == 1.5
    assert memory_limit_bytes(root, "0::/a/b\n") == GIB
    assert cpu_quota(root, "0::/elsewhere\n") is None


def test_version_1_in_a_container_whose_path_is_the_hosts(tmp_path: Path) -> None:
    files = {
        "cpu,cpuacct/cpu.cfs_quota_us": "200000",
        "cpu,cpuacct/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": "2147483648",
    }
    root = cgroup(tmp_path, files)
    membership = "4:memory:/docker/0123\n2:cpu,cpuacct:/docker/0123\n0::/\n"
    assert cpu_quota(root, membership) == 2.0
    assert memory_limit_bytes(root, membership) == 2 * GIB


def test_no_limits(tmp_path: Path) -> None:
    files = {
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
        "memory/memory.limit_in_bytes": "9223372036854771712",
    }
    root = cgroup(tmp_path, files)
    membership = "4:memory:/\n2:cpu:/\n"
    assert cpu_quota(root, membership) is None
    assert memory_limit_bytes(root, membership) is None


@pytest.mark.parametrize(
    ("affinity", "quota", "cores"), [(16, None, 16), (16, 4.0, 4), (2, 8.0, 2), (16, 0.5, 1), (16, 2.9, 2)]
)
def test_usable_cores(affinity: int, quota: float | None, cores: int) -> None:
    assert usable_cores(affinity, quota) == cores


def test_this_machine_has_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    resources = read_resources({})
    assert resources.cores >= 1
    assert resources.memory_bytes is None or resources.memory_bytes > 100_000_000
    assert resources.gpus == 0


@pytest.mark.parametrize(
    ("cores", "workers", "threads"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (7, 1, 7), (8, 2, 4), (15, 3, 5), (64, 16, 4)]
)
def test_a_worker_for_every_four_cores(cores: int, workers: int, threads: int) -> None:
    plan = plan_workers([archive()], Resources(cores, None, 0), {})
    assert (plan.workers, plan.threads, plan.total_workers) == (workers, threads, workers)


def test_memory_takes_workers_away() -> None:
    plan = plan_workers([archive(900_000_000)], Resources(16, 8 * GIB, 0), {})
    assert (plan.workers, plan.threads, plan.fits) == (3, 5, True)
    assert plan.reason == (
        "3 workers x 5 threads (16 cores for 1 model; 4 workers would not fit; about 6.6 GB of 8.6 GB memory)"
    )
    plan = plan_workers([archive(2_200_000_000)], Resources(16, 2 * GIB, 0), {})
    assert (plan.workers, plan.threads, plan.fits) == (1, 16, False)
    assert "about 4.8 GB which is TOO MUCH for 2.1 GB memory" in plan.reason


def test_large_weights_are_held_once() -> None:
    plan = plan_workers([archive(2_200_000_000)], Resources(16, 60 * GIB, 0), {})
    assert (plan.workers, plan.threads) == (1, 16)
    assert plan_workers([archive(2_200_000_000)], Resources(16, 60 * GIB, 2), {}).workers == 2


def test_models_share_the_cores_and_an_archive_may_pin() -> None:
    models = [archive(name="a"), archive(name="b", pinned=3)]
    plan = plan_workers(models, Resources(16, None, 0), {})
    assert (plan.workers, plan.total_workers, plan.threads) == (2, 5, 3)
    assert plan.reason == "5 workers x 3 threads (16 cores for 2 models; b pins 3)"
    many = plan_workers([archive(name=f"m{number}") for number in range(4)], Resources(2, None, 0), {})
    assert (many.workers, many.total_workers, many.threads) == (1, 4, 1)


def test_one_worker_a_gpu() -> None:
    plan = plan_workers([archive()], Resources(16, GIB, 2), {})
    assert (plan.workers, plan.threads) == (2, 8)


def test_the_operators_threads_win() -> None:
    assert plan_workers([archive()], Resources(16, None, 0), {"OMP_NUM_THREADS": "2,1"}).threads == 2
    for wrong in ("0", "all", "-1"):
        with pytest.raises(SettingsError) as caught:
            plan_workers([archive()], Resources(16, None, 0), {"OMP_NUM_THREADS": wrong})
        assert str(caught.value) == f"OMP_NUM_THREADS={wrong!r}: expected a number of threads, at least 1"


@pytest.mark.parametrize(
    ("memory", "heap"),
    [(None, GIB // 2), (GIB, GIB // 2), (8 * GIB, 2 * GIB), (16 * GIB, 4 * GIB), (256 * GIB, 4 * GIB)],
)
def test_java_may_grow_to_a_quarter_of_the_memory(memory: int | None, heap: int) -> None:
    assert java_heap_bytes(Resources(cores=2, memory_bytes=memory, gpus=0)) == heap
