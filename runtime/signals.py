"""The signals that ask the process to end."""

from __future__ import annotations

import signal

import trio

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def wait_for_stop_signal() -> signal.Signals:
    """Wait until the process is asked to end; main thread only.

    Once it has returned, the signals have their usual meaning again: a second
    Ctrl-C interrupts an orderly end that takes too long.
    """
    with trio.open_signal_receiver(*STOP_SIGNALS) as received:
        async for number in received:
            return signal.Signals(number)
    raise AssertionError("unreachable: the receiver never ends by itself")
