"""Runs what a command awaits, so that Ctrl-C ends it in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Given = TypeVarTuple("Given")
Result = TypeVar("Result")


def run_interruptible(
    work: Callable[[*Given], Awaitable[Result]], *given: *Given
) -> Result:
    """Run something on trio to its end, or until Ctrl-C.

    Why between two steps only: Python's own Ctrl-C raises an exception after any
    line, also inside a library that counts what it holds open. Tried at each of the
    first 200 lines after a question to a model was sent, it ended four times as a
    mistake of the program.

    Raises:
        KeyboardInterrupt: Ctrl-C; alone or in a group.
        Exception: what it raised.
    """
    return trio.run(work, *given, restrict_keyboard_interrupt_to_checkpoints=True)
