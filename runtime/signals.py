"""The signals that ask the process to end."""

from __future__ import annotations

import signal

import trio

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def wait_for_stop_signal() -> signal.Signals:
    """Wait until the process is asked to end; main thread only.

    Once it has returned, the signals have again the meaning they had before.
    """
    with trio.open_signal_receiver(*STOP_SIGNALS) as received:
        number = await anext(received)
    return signal.Signals(number)
