"""What is read from TorchServe's output: worker states, give-ups with their reason, and events for the log."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from serving.drain import unsent_bytes
from serving.journal import Journal
from serving.log_relay import LogRelay
from serving.signal_watch import SignalWatch
from serving.worker_states import WorkerStates

WORKER = "W-9000-echo_1.0"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def states(clock: Clock) -> WorkerStates:
    return WorkerStates(clock)


def change(states: WorkerStates, before: str, after: str) -> None:
    states.note(WORKER, f"{WORKER} State change {before} -> {after}")


def load(states: WorkerStates) -> None:
    change(states, "null", "WORKER_STARTED")
    states.note(WORKER, "Flushing req.cmd LOAD repeats 1 to backend at: 1796075221781")
    states.note(WORKER, "Backend response time: 192")
    change(states, "WORKER_STARTED", "WORKER_MODEL_LOADED")


def test_busy_while_a_batch_is_unanswered(states: WorkerStates, clock: Clock) -> None:
    load(states)
    assert states.anyone_busy() is False
    assert states.progress() == {"echo_1.0": {"replied_s": None, "busy_s": None}}
    states.note(WORKER, "Flushing req.cmd PREDICT repeats 1 to backend at: 1796075223834")
    clock.now += 2
    assert states.anyone_busy() is True
    assert states.progress() == {"echo_1.0": {"replied_s": None, "busy_s": 2.0}}
    states.note(WORKER, "Backend response time: 2000")
    clock.now += 1
    assert states.anyone_busy() is False
    assert states.progress() == {"echo_1.0": {"replied_s": 1.0, "busy_s": None}}


def test_a_dead_worker_is_not_busy_and_heals(states: WorkerStates, clock: Clock) -> None:
    load(states)
    states.note(WORKER, "Flushing req.cmd PREDICT repeats 1 to backend at: 1796075223834")
    change(states, "WORKER_MODEL_LOADED", "WORKER_STOPPED")
    states.note(WORKER, "Retry worker: 9000 in 1 seconds.")
    assert states.anyone_busy() is False
    clock.now += 60
    assert states.failure() is None
    load(states)
    assert states.failure() is None


def test_three_failed_loads_before_the_first_good_one(states: WorkerStates, clock: Clock) -> None:
    for _ in range(3):
        assert states.failure() is None
        change(states, "null", "WORKER_STARTED")
        states.note_error(WORKER, "KeyError: 'pooling'")
        states.note_error(WORKER, "ValueError: no pooling")
        states.note_error(WORKER, "RuntimeError: 500 - Unknown exception")
        change(states, "WORKER_STARTED", "WORKER_STOPPED")
        states.note(WORKER, "Retry worker: 9000 in 1 seconds.")
    assert states.failure() is None
    clock.now += 1.1
    assert states.failure() == "model echo_1.0 failed to load 3 times: ValueError: no pooling"


def test_given_up_when_no_retry_follows(states: WorkerStates, clock: Clock) -> None:
    load(states)
    change(states, "WORKER_MODEL_LOADED", "WORKER_STOPPED")
    clock.now += 2.9
    assert states.failure() is None
    clock.now += 0.2
    assert states.failure() == (
        "TorchServe gave up worker W-9000-echo_1.0: its process died without a word (killed, or out of memory?)"
    )


def test_other_threads_are_no_workers(states: WorkerStates) -> None:
    states.note("main", "Flushing req.cmd PREDICT")
    states.note_error("main", "ValueError: x")
    assert states.progress() == {}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def relay(log: Path, states: WorkerStates) -> LogRelay:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    return LogRelay(Journal(descriptor, human=False, debug=False), states)


def model_line(text: str, stream: str = "stdout") -> bytes:
    event = {"severity": "INFO", "time": "t", "logger": "MODEL_LOG", "worker": f"{WORKER}-{stream}", "message": text}
    return json.dumps(event, separators=(",", ":")).encode()


def events(log: Path) -> list[tuple[str, str]]:
    return [(one["severity"], one["message"]) for one in map(json.loads, log.read_text().splitlines())]


def test_a_traceback_becomes_one_error(relay: LogRelay, states: WorkerStates, log: Path, clock: Clock) -> None:
    trace = ["Traceback (most recent call last):", '  File "h.py", line 3, in initialize', "    f()", "ValueError: two"]
    for line in [*trace, "", "During handling of the above exception, another exception occurred:", ""]:
        relay.line(model_line(line))
    relay.line(model_line("marvec is loaded"))
    assert events(log) == [("ERROR", "\n".join(trace)), ("INFO", "marvec is loaded")]
    change(states, "WORKER_STARTED", "WORKER_STOPPED")
    clock.now += 5
    assert states.failure() == f"TorchServe gave up worker {WORKER}: ValueError: two"


def test_severities_of_what_a_worker_prints(relay: LogRelay, log: Path) -> None:
    relay.line(model_line("x.py:5: UserWarning: old", "stderr"))
    relay.line(model_line("marvec WARNING bfloat16 is not to be had"))
    relay.line(model_line("marvec.handler ERROR row 3 is not finite"))
    relay.line(model_line("marvec DEBUG details"))
    relay.line(model_line("OSError: no file"))
    assert events(log) == [
        ("WARNING", "x.py:5: UserWarning: old"),
        ("WARNING", "bfloat16 is not to be had"),
        ("ERROR", "row 3 is not finite"),
        ("ERROR", "OSError: no file"),
    ]


def test_a_line_that_another_writer_broke_is_passed_on_as_it_is(relay: LogRelay, log: Path) -> None:
    broken = '{"severity":"INFO","logger":"MODEL_LOG","worker":"W-1OpenJDK warning: something'
    relay.line(broken.encode())
    relay.line(b'{"severity":"INFO","logger":"MODEL_LOG"}')
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(event["severity"], event["message"]) for event in written] == [
        ("WARNING", broken),
        ("WARNING", '{"severity":"INFO","logger":"MODEL_LOG"}'),
    ]


def test_worker_lines_are_taken_out_and_plain_ones_wrapped(relay: LogRelay, states: WorkerStates, log: Path) -> None:
    relay.line(f"@worker {WORKER}|Flushing req.cmd PREDICT repeats 1 to backend at: 1".encode())
    relay.line(b"Model server started.")
    relay.line(b"Invalid configuration: bad port")
    event = b'{"severity":"WARNING","time":"t","logger":"org.pytorch.serve.ModelServer","message":"Failed to load"}'
    relay.line(event)
    assert states.anyone_busy() is True
    assert events(log) == [("WARNING", "Invalid configuration: bad port"), ("WARNING", "Failed to load")]
    assert list(relay.problems) == ["Invalid configuration: bad port", "Failed to load"]
    stopped = f"@worker {WORKER}|{WORKER} State change WORKER_MODEL_LOADED -> WORKER_STOPPED".encode()
    relay.line(stopped)
    assert events(log)[2:] == [("WARNING", "worker stopped; TorchServe starts it anew")]
    relay.mute()
    relay.line(event)
    relay.line(stopped)
    assert len(events(log)) == 3


def test_the_form_for_people(tmp_path: Path) -> None:
    log = tmp_path / "human"
    journal = Journal(os.open(log, os.O_WRONLY | os.O_CREAT), human=True, debug=False)
    journal.warning("three\nlines\nlong")
    journal.debug("unseen")
    time, text = log.read_text().split(" ", 1)
    assert len(time) == len("12:00:01")
    assert text == "WARNING  three\nlines\nlong\n"


def test_unsent_bytes_of_the_inference_port(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    rows = [
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
        "   0: 00000000:1BA8 00000000:0000 0A 00000000:00000003 00:00000000 00000000 0 0 1",
        "   1: 0100007F:1BA8 0100007F:9C40 01 00001000:00000000 01:00000014 00000000 0 0 2",
        "   2: 0100007F:1BA9 0100007F:9C41 01 00000007:00000000 01:00000014 00000000 0 0 3",
    ]
    table.write_text("\n".join(rows) + "\n")
    assert unsent_bytes(7080, [table, tmp_path / "tcp6"]) == 4096
    assert unsent_bytes(7083, [table]) == 0


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup leaves it
    try:
        with SignalWatch() as watch:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
        assert watch.received == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
