"""Everything that a boot can know, choose and refuse before any process starts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from serving.archives import Archive, find_archives
from serving.errors import SettingsError
from serving.fetch import VARIABLE as STORAGE_VARIABLE
from serving.java import Java, find_java
from serving.ports import Ports
from serving.resources import read_resources
from serving.routes import check_health_route, check_predict_route
from serving.server_config import BaseConfig
from serving.worker_plan import WorkerPlan, java_heap_bytes, plan_workers

LONGEST_TIMEOUT_S = 86400.0


@dataclass(frozen=True)
class Boot:
    """What is to be served, where, and how.

    Attributes:
        base: config.properties.
        store: The model store.
        archives: The models.
        fetched: Whether the store holds copies for this boot alone.
        plan: Workers and threads.
        java_heap_bytes: The heap that Java may grow to.
        ports: The three HTTP ports, free.
        java: What runs TorchServe.
        drain_timeout_s: How long requests in flight may take after SIGTERM.
        start_timeout_s: How long all models may take to be READY.
        print_curl: Whether to print a request to try.
    """

    base: BaseConfig
    store: Path
    archives: list[Archive]
    fetched: bool
    plan: WorkerPlan
    java_heap_bytes: int
    ports: Ports
    java: Java
    drain_timeout_s: float
    start_timeout_s: float
    print_curl: bool

    @classmethod
    def prepare(
        cls, arguments: argparse.Namespace, environment: Mapping[str, str], fetch: Callable[[str, Sequence[str]], Path]
    ) -> Boot:
        """Checks and chooses.

        Args:
            arguments: `models`, `model_store`, `config` and `print_curl`.
            environment: Usually `os.environ`.
            fetch: `Fetch.archives`, called with AIP_STORAGE_URI where that is set, once the rest is in order.

        Returns:
            The boot.

        Raises:
            LaunchError: Something is wrong; the message says what to do.
            Interrupted: A signal came while archives were fetched.
        """
        drain_timeout_s = _seconds(environment, "MARVEC_DRAIN_TIMEOUT_S", 20.0)
        start_timeout_s = _seconds(environment, "MARVEC_START_TIMEOUT_S", 600.0)
        ports = Ports.from_environment(environment)
        base = BaseConfig.read(Path(arguments.config))
        java = find_java(environment)
        ports.check_free()
        store = Path(arguments.model_store) if arguments.model_store else base.folder("model_store")
        check_health_route(environment)
        uri = environment.get(STORAGE_VARIABLE, "")
        if uri:
            store = fetch(uri, arguments.models)
        archives = find_archives(store, arguments.models)
        check_predict_route(environment, archives)
        resources = read_resources(environment)
        return cls(
            base=base,
            store=store,
            archives=archives,
            fetched=uri.startswith("gs://"),
            plan=plan_workers(archives, resources, environment),
            java_heap_bytes=java_heap_bytes(resources),
            ports=ports,
            java=java,
            drain_timeout_s=drain_timeout_s,
            start_timeout_s=start_timeout_s,
            print_curl=bool(arguments.print_curl),
        )

    def models(self) -> str:
        """The models in words.

        Returns:
            "minilm 1.0, e5 1.0".
        """
        return ", ".join(f"{archive.name} {archive.version}" for archive in self.archives)


def _seconds(environment: Mapping[str, str], variable: str, default: float) -> float:
    text = environment.get(variable, "")
    expected = f"{variable}={text!r}: expected a number of seconds from 0 to {LONGEST_TIMEOUT_S:g}"
    try:
        value = float(text) if text else default
    except ValueError as err:
        raise SettingsError(expected) from err
    # Written so that "nan" fails too.
    if not 0 <= value <= LONGEST_TIMEOUT_S:
        raise SettingsError(expected)
    return value
