"""The signals that ask the process to end, and the terminal that may go away."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

import trio

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Name the signals that ask this process to end.

    Whoever started it with `nohup` wants it to outlive the terminal: where SIGHUP is
    ignored, it stays so.
    """
    return tuple(
        number
        for number in STOP_SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    )


def has_terminal() -> bool:
    """Whether this process has a terminal that would tell it when it goes away."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


async def wait_for_stop_signal(
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    signals: Iterable[signal.Signals] | None = None,
) -> signal.Signals:
    """Wait until the process is asked to end; main thread only.

    Once it has returned, the signals have again the meaning they had before.

    Args:
        task_status: told when the signals are listened to (`Nursery.start`).
        signals: those that ask for it; None: `stop_signals()`.
    """
    asking = stop_signals() if signals is None else tuple(signals)
    with trio.open_signal_receiver(*asking) as received:
        task_status.started()
        number = await anext(received)
    return signal.Signals(number)
