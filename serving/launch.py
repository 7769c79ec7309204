"""Boots TorchServe, stays with it, and ends it: `python -m serving.launch [NAME[=FILE.mar] ...]`.

Exit status: 0 after Ctrl-C (that is how a person ends `make serve`), 143 after SIGTERM and 129 after SIGHUP, 1 for
every failure, with the reason as the log's last line, a CRITICAL one.
"""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

if not __package__:  # Run as a script, as an image does: let `serving` be found, and its files shadow no module.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    # PID 1 loses a signal that it has no handler for, but not one that is blocked until there is one.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

from serving.archives import Archive
from serving.boot import Boot
from serving.drain import drain
from serving.errors import Interrupted, LaunchError, ModelLoadError, SettingsError
from serving.fetch import Fetch
from serving.java_process import JavaProcess
from serving.journal import Journal
from serving.log_relay import LogRelay
from serving.management import ManagementError, model_status
from serving.run_folder import run_folder
from serving.server_config import java_command, java_environment, run_time_config
from serving.signal_watch import SignalWatch
from serving.state_socket import DRAINING, READY, STARTING, STOPPING, ServerState, tell_state
from serving.unpack import Copied, require_whole, unpack
from serving.worker_states import WorkerStates

DEFAULT_CONFIG = Path(__file__).resolve().parent.parent / "config.properties"
TICK_S = 0.2
# What a worker said at its end may come after the news of it: they take two roads through Java.
LAST_WORDS_S = 0.5
# Nothing is in flight any more; by itself Java would linger for seconds.
JAVA_GRACE_S = 0.5


def main(argv: Sequence[str]) -> int:
    """Serves until a signal or a failure ends it.

    Args:
        argv: The command line without the program's name.

    Returns:
        The exit status, as listed at the top of the module.
    """
    arguments = _parse(argv)
    environment = dict(os.environ)
    debug = environment.get("MARVEC_LOG_LEVEL", "").lower() == "debug"
    journal = Journal(1, human=os.isatty(1), debug=debug)
    with SignalWatch() as watch:
        try:
            with run_folder() as folder:
                fetch = Fetch(folder / "fetched", journal.info, lambda: bool(watch.received))
                boot = Boot.prepare(arguments, environment, fetch.archives)
                return Server(boot, folder, watch, journal, debug=debug).run(environment)
        except Interrupted:
            journal.info(f"{watch.received[0].name} before anything was started: ending")
            return watch.exit_status()
        except LaunchError as err:
            journal.critical(str(err))
        except OSError as err:
            # A full disk, no process to be had: nothing that a trace would explain better than the system's own words.
            journal.critical(f"the system refused: {err}")
        return 1


class Server:
    """One TorchServe, from its start to its end.

    Args:
        boot: What to serve.
        folder: The run folder.
        watch: The signals.
        journal: The log.
        debug: Let TorchServe say everything.
    """

    def __init__(self, boot: Boot, folder: Path, watch: SignalWatch, journal: Journal, *, debug: bool) -> None:
        self._started = time.monotonic()
        self._boot = boot
        self._folder = folder
        self._watch = watch
        self._journal = journal
        self._debug = debug
        self._states = WorkerStates()
        self._relay = LogRelay(journal, self._states)
        self._phase = STARTING
        self._unchecked: list[Copied] = []

    def run(self, environment: Mapping[str, str]) -> int:
        """Starts Java, waits for READY, then for a signal or a failure; leaves no process and no file behind.

        Args:
            environment: Usually `os.environ`.

        Returns:
            The exit status.

        Raises:
            LaunchError: A model does not load, a worker gave up, or Java died.
            Interrupted: A signal came before Java was started.
        """
        boot = self._boot
        models = [(archive.name, self._unpack(archive)) for archive in boot.archives]
        if self._interrupted():
            raise Interrupted
        if boot.fetched:
            shutil.rmtree(boot.store)  # its content is unpacked now, and room may be scarce
        config = self._folder / "config.properties"
        config.write_text(run_time_config(boot.base, boot.store, models, boot.plan), encoding="utf-8")
        command = java_command(boot.java, boot.base, config, self._folder, boot.java_heap_bytes, debug=self._debug)
        severity = "INFO" if boot.plan.fits else "WARNING"
        self._journal.event(severity, f"serving {boot.models()} with {boot.plan.reason}")
        self._journal.debug(shlex.join(command))
        process = JavaProcess(command, java_environment(environment, boot.ports, boot.plan, self._folder), self._folder)
        self._watch.react = lambda count: self._on_signal(count, process)
        try:
            self._relay.start(process.output)
            with tell_state(boot.ports.inference, self._state), ThreadPoolExecutor(1) as other:
                return self._serve(process, other.submit(require_whole, self._unchecked, self._interrupted))
        finally:
            self._phase = STOPPING
            self._relay.mute()
            process.stop(JAVA_GRACE_S)
            self._relay.finish(2.0)

    def _unpack(self, archive: Archive) -> Path:
        if archive.path.is_dir():
            return archive.path.absolute()
        started = time.monotonic()
        target = self._folder / f"{archive.name}-{archive.version}"
        try:
            self._unchecked += unpack(archive.path, target, self._interrupted)
        except OSError as err:
            if err.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise SettingsError(
                f"no room to unpack {archive.path} below {self._folder.parent}: set TMPDIR to a larger place"
            ) from err
        self._journal.info(f"unpacked {archive.path.name} in {time.monotonic() - started:.1f} s")
        return target

    def _interrupted(self) -> bool:
        return bool(self._watch.received)

    def _serve(self, process: JavaProcess, checksums: Future[None]) -> int:
        waiting = list(self._boot.archives)
        deadline = self._started + self._boot.start_timeout_s
        while not self._watch.received:
            self._check(process)
            if checksums.done():
                checksums.result()
            if waiting:
                waiting = [archive for archive in waiting if not self._is_ready(archive)]
                if time.monotonic() > deadline:
                    names = ", ".join(archive.name for archive in waiting)
                    raise ModelLoadError(
                        f"not READY after {self._boot.start_timeout_s:g} s (MARVEC_START_TIMEOUT_S): {names}"
                    )
                if not waiting and not self._watch.received:
                    checksums.result()
                    self._phase = READY
                    self._announce()
            time.sleep(TICK_S)
        # A signal that came between the check and the assignment above must not leave the probe at "ready".
        self._phase = DRAINING
        return self._end(process, was_ready=not waiting)

    def _check(self, process: JavaProcess) -> None:
        status = process.poll()
        if status is not None:
            self._relay.finish(2.0)
            last = f": {self._relay.problems[-1]}" if self._relay.problems else ""
            raise LaunchError(f"TorchServe's Java ended with status {status}{last}")
        failure = self._states.failure()
        if failure:
            time.sleep(LAST_WORDS_S)
            raise ModelLoadError(self._states.failure() or failure)

    def _is_ready(self, archive: Archive) -> bool:
        try:
            status = model_status(self._boot.ports.management, archive.name, archive.version, 2.0)
        except ManagementError as err:
            if err.status == 404:
                # TorchServe answers only after it has tried every archive, so this one is not coming.
                about = [problem for problem in self._relay.problems if f"{archive.name}-{archive.version}" in problem]
                raise ModelLoadError(f"TorchServe refused {archive.path}: {(about or ['see the log'])[-1]}") from err
            return False
        return status.ready_workers > 0

    def _announce(self) -> None:
        elapsed_s, port = time.monotonic() - self._started, self._boot.ports.inference
        self._journal.info(f"READY after {elapsed_s:.1f} s: {self._boot.models()} on port {port}")
        if self._boot.print_curl:
            body = '{"instances": ["hello world"]}'
            for archive in self._boot.archives:
                url = f"http://127.0.0.1:{port}/predictions/{archive.name}"
                self._journal.info(f"curl -s {url} -H 'Content-Type: application/json' -d '{body}'")

    def _end(self, process: JavaProcess, *, was_ready: bool) -> int:
        name, limit_s = self._watch.received[0].name, self._boot.drain_timeout_s
        if not was_ready:
            self._journal.info(f"{name} before READY: ending")
            return self._watch.exit_status()
        self._journal.info(f"{name}: no longer ready; answering what is in flight, at most {limit_s:g} s")
        drained = drain(
            self._boot.archives,
            self._boot.ports,
            self._states,
            limit_s,
            give_up=lambda: len(self._watch.received) > 1 or process.poll() is not None,
        )
        if drained:
            self._journal.info("everything in flight is answered")
        else:
            self._journal.warning("ending with requests in flight")
        return self._watch.exit_status()

    def _on_signal(self, count: int, process: JavaProcess) -> None:
        # At once, not at the next tick: the probe must turn before the drain begins.
        self._phase = DRAINING
        if count > 1:
            process.kill()

    def _state(self) -> ServerState:
        return ServerState(
            phase=self._phase,
            management_port=self._boot.ports.management,
            models=[(archive.name, archive.version) for archive in self._boot.archives],
            progress=self._states.progress(),
        )


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
