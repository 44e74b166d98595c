"""The signals that ask the process to end."""

from __future__ import annotations

import signal

import trio

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def wait_for_stop_signal() -> signal.Signals:
    """Wait until the process is asked to end; main thread only.

    Once it has returned, a second signal ends the process at once, for an orderly
    end that takes too long: what is durable is so already.
    """
    with trio.open_signal_receiver(*STOP_SIGNALS) as received:
        async for number in received:
            break
        else:
            raise AssertionError("unreachable: the receiver never ends by itself")
    for each in STOP_SIGNALS:
        # Why: Python's own Ctrl-C raises an exception somewhere inside the kernel,
        # which would only make the end longer.
        signal.signal(each, signal.SIG_DFL)
    return signal.Signals(number)
