"""Signals as a list to look at, from the first moment of a boot: PID 1 without handlers would ignore them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class SignalWatch:
    """Collects signals while a `with` block runs.

    Attributes:
        received: What came, oldest first.
        react: Called at once for each signal, from the handler, with the number of signals so far.
    """

    def __init__(self) -> None:
        self.received: list[signal.Signals] = []
        self.react: Callable[[int], None] | None = None
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> SignalWatch:
        # What is ignored stays ignored: that is how `nohup` asks to outlive its terminal.
        wanted = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._on_signal) for number in wanted}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def exit_status(self) -> int:
        """The exit status after the first signal.

        Returns:
            0 for SIGINT, since Ctrl-C is how a person ends a server; 128 + the signal for the others, which is what
            shells and supervisors expect.
        """
        first = self.received[0]
        return 0 if first == signal.SIGINT else 128 + first

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.received.append(signal.Signals(number))
        if self.react is not None:
            self.react(len(self.received))
