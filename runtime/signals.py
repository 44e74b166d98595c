"""The signals that ask the process to end."""

from __future__ import annotations

import signal

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


async def wait_for_stop_signal(
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> signal.Signals:
    """Wait until the process is asked to end; main thread only.

    Once it has returned, the signals have again the meaning they had before.

    Args:
        task_status: told when the signals are listened to (`Nursery.start`).
    """
    with trio.open_signal_receiver(*stop_signals()) as received:
        task_status.started()
        number = await anext(received)
    return signal.Signals(number)
