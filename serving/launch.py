"""Boots TorchServe, stays with it, and ends it: `python -m serving.launch [NAME[=FILE.mar] ...]`.

Exit status: 0 after Ctrl-C (that is how a person ends `make serve`), 143 after SIGTERM and 129 after SIGHUP (128 + the
signal, as shells and supervisors expect), 1 for every failure, with the reason as the last CRITICAL line of the log.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

if not __package__:  # Run as a script, as an image does: let `serving` be found, and its files shadow no module.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from serving.archives import Archive, find_archives
from serving.drain import drain
from serving.errors import LaunchError, ModelLoadError, SettingsError
from serving.java import find_java
from serving.java_process import JavaProcess
from serving.journal import Journal
from serving.log_relay import LogRelay
from serving.management import ManagementError, model_status
from serving.ports import Ports
from serving.resources import read_resources
from serving.run_folder import run_folder
from serving.server_config import BaseConfig, java_command, java_environment, run_time_config
from serving.state_socket import DRAINING, READY, STARTING, STOPPING, ServerState, tell_state
from serving.worker_plan import plan_workers
from serving.worker_states import WorkerStates

DEFAULT_CONFIG = Path(__file__).resolve().parent.parent / "config.properties"
TICK_S = 0.1
JAVA_GRACE_S = 1.5
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(argv: Sequence[str]) -> int:
    """Serves until a signal or a failure ends it.

    Args:
        argv: The command line without the program's name.

    Returns:
        The exit status that the module's title lists.
    """
    arguments = _parse(argv)
    environment = dict(os.environ)
    debug = environment.get("MARVEC_LOG_LEVEL", "").lower() == "debug"
    journal = Journal(1, human=os.isatty(1), debug=debug)
    try:
        server = Server(arguments, environment, journal, debug=debug)
        return server.run()
    except LaunchError as err:
        journal.critical(str(err))
        return 1


class Server:
    """One boot, from the checks to the end.

    Args:
        arguments: The parsed command line.
        environment: Usually `os.environ`.
        journal: The log.
        debug: Let TorchServe say everything.
    """

    def __init__(
        self, arguments: argparse.Namespace, environment: Mapping[str, str], journal: Journal, *, debug: bool
    ) -> None:
        """Checks everything that can be checked before Java starts.

        Raises:
            LaunchError: Something is wrong; the message says what to do.
        """
        self._started = time.monotonic()
        self._journal = journal
        self._debug = debug
        self._environment = environment
        self._print_curl: bool = arguments.print_curl
        self._drain_timeout_s = _seconds(environment, "MARVEC_DRAIN_TIMEOUT_S", 20.0)
        self._start_timeout_s = _seconds(environment, "MARVEC_START_TIMEOUT_S", 600.0)
        self._ports = Ports.from_environment(environment)
        self._base = BaseConfig.read(Path(arguments.config))
        self._store = Path(arguments.model_store) if arguments.model_store else self._base.folder("model_store")
        self._archives = find_archives(self._store, arguments.models)
        self._plan = plan_workers(self._archives, read_resources(environment), environment)
        self._java = find_java(environment)
        self._ports.check_free()
        self._states = WorkerStates()
        self._relay = LogRelay(journal, self._states)
        self._phase = STARTING
        self._signals: list[int] = []
        self._process: JavaProcess | None = None

    def run(self) -> int:
        """Starts Java, waits for READY, then for a signal or a failure; leaves no process and no file behind.

        Returns:
            The exit status.

        Raises:
            LaunchError: A model does not load, a worker gave up, or Java died.
        """
        with run_folder() as folder, _handled(self._on_signal):
            config = folder / "config.properties"
            config.write_text(run_time_config(self._base, self._store, self._archives, self._plan), encoding="utf-8")
            command = java_command(self._java, self._base, config, folder, debug=self._debug)
            self._journal.info(f"serving {self._model_list()} with {self._plan.reason}")
            self._journal.debug(shlex.join(command))
            environment = java_environment(self._environment, self._ports, self._plan, folder)
            process = JavaProcess(command, environment, folder)
            self._process = process
            try:
                self._relay.start(process.output)
                with tell_state(self._ports.inference, self._state):
                    return self._serve(process)
            finally:
                self._phase = STOPPING
                self._relay.mute()
                process.stop(JAVA_GRACE_S)
                self._relay.finish(2.0)

    def _serve(self, process: JavaProcess) -> int:
        waiting = list(self._archives)
        deadline = self._started + self._start_timeout_s
        while not self._signals:
            self._check(process)
            if waiting:
                waiting = [archive for archive in waiting if not self._is_ready(archive)]
                if not waiting:
                    self._phase = READY
                    self._announce()
                elif time.monotonic() > deadline:
                    names = ", ".join(archive.name for archive in waiting)
                    raise ModelLoadError(
                        f"not READY after {self._start_timeout_s:g} s (MARVEC_START_TIMEOUT_S): {names}"
                    )
            time.sleep(TICK_S)
        return self._end(process, was_ready=not waiting)

    def _check(self, process: JavaProcess) -> None:
        status = process.poll()
        if status is not None:
            self._relay.finish(2.0)
            last = f": {self._relay.problems[-1]}" if self._relay.problems else ""
            raise LaunchError(f"TorchServe's Java ended with status {status}{last}")
        failure = self._states.failure()
        if failure:
            raise ModelLoadError(failure)

    def _is_ready(self, archive: Archive) -> bool:
        try:
            status = model_status(self._ports.management, archive.name, archive.version, 2.0)
        except ManagementError as err:
            if err.status == 404:
                # TorchServe answers only after it has tried every archive, so this one is not coming.
                about = [problem for problem in self._relay.problems if archive.path.name in problem]
                raise ModelLoadError(f"TorchServe refused {archive.path}: {(about or ['see the log'])[-1]}") from err
            return False
        return status.ready_workers > 0

    def _announce(self) -> None:
        elapsed = time.monotonic() - self._started
        self._journal.info(f"READY after {elapsed:.1f} s: {self._model_list()} on port {self._ports.inference}")
        if self._print_curl:
            for archive in self._archives:
                url = f"http://127.0.0.1:{self._ports.inference}/predictions/{archive.name}"
                body = '{"instances": ["hello world"]}'
                self._journal.info(f"curl -s {url} -H 'Content-Type: application/json' -d '{body}'")

    def _end(self, process: JavaProcess, *, was_ready: bool) -> int:
        name = signal.Signals(self._signals[0]).name
        if was_ready:
            self._journal.info(
                f"{name}: no longer ready; answering what is in flight, at most {self._drain_timeout_s:g} s"
            )
            drained = drain(
                self._archives,
                self._ports,
                self._states,
                self._drain_timeout_s,
                give_up=lambda: len(self._signals) > 1 or process.poll() is not None,
            )
            if drained:
                self._journal.info("everything in flight is answered")
            else:
                self._journal.warning("ending with requests in flight")
        else:
            self._journal.info(f"{name} before READY: ending")
        return 0 if self._signals[0] == signal.SIGINT else 128 + self._signals[0]

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        # At once, not at the next tick: the probe must turn before the drain begins.
        self._phase = DRAINING
        if len(self._signals) > 1 and self._process is not None:
            self._process.kill()

    def _state(self) -> ServerState:
        return ServerState(
            phase=self._phase,
            management_port=self._ports.management,
            models=[(archive.name, archive.version) for archive in self._archives],
            progress=self._states.progress(),
        )

    def _model_list(self) -> str:
        return ", ".join(f"{archive.name} {archive.version}" for archive in self._archives)


@contextlib.contextmanager
def _handled(handler: signal._HANDLER) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _seconds(environment: Mapping[str, str], variable: str, default: float) -> float:
    text = environment.get(variable, "")
    try:
        value = float(text) if text else default
    except ValueError as err:
        raise SettingsError(f"{variable}={text!r}: expected a number of seconds, 0 to 86400") from err
    if not 0 <= value <= 86400:
        raise SettingsError(f"{variable}={text!r}: expected a number of seconds, 0 to 86400")
    return value


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="serving.launch", description="Serve archives with TorchServe.")
    parser.add_argument(
        "models",
        nargs="*",
        metavar="NAME[=FILE.mar]",
        help="what to serve: NAME.mar of the model store, or FILE.mar under another name; all of it when none is named",
    )
    parser.add_argument("--model-store", metavar="DIR", help="default: model_store in config.properties")
    parser.add_argument("--config", metavar="FILE", default=str(DEFAULT_CONFIG), help="default: %(default)s")
    parser.add_argument("--print-curl", action="store_true", help="print a request to try when READY")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
