"""Timers of one actor: a message to itself, once or again and again.

They come in the system lane, belong to the incarnation that made them unless
they were asked to survive a restart, and end with their actor.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from runtime.envelope import Notice
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.kernel import Kernel
    from runtime.timers import Timer


class Owner(Protocol):
    """The part of a cell that timers need."""

    kernel: Kernel
    generation: int
    timers: set[Timer] | None

    def post_system(self, message: object) -> None:
        """Take a message in."""
        ...


def after(
    owner: Owner, delay: float, message: object, *, survives_restart: bool
) -> Timer:
    """Tell the owner `message` once, after `delay` seconds.

    Raises:
        MisuseError: `delay` is negative or not a number.
    """
    if not delay >= 0:
        raise MisuseError(f"a timer needs 0 seconds or more, not {delay}")
    notice = Notice(message, None if survives_restart else owner.generation)
    return _arm(
        owner, delay, partial(owner.post_system, notice), survives=survives_restart
    )


def every(
    owner: Owner, period: float, message: object, *, survives_restart: bool
) -> Callable[[], bool]:
    """Tell the owner `message` every `period` seconds until the result is called.

    Raises:
        MisuseError: `period` is not above 0.
    """
    if not period > 0:
        raise MisuseError(f"a timer needs a period above 0 seconds, not {period}")
    notice = Notice(message, None if survives_restart else owner.generation)

    timer: Timer

    def fire() -> None:
        nonlocal timer
        timer = _arm(owner, period, fire, survives=survives_restart)
        if not notice.is_waiting:
            notice.is_waiting = True
            owner.post_system(notice)

    timer = _arm(owner, period, fire, survives=survives_restart)

    def cancel() -> bool:
        return timer.cancel()

    return cancel


def _arm(
    owner: Owner, delay: float, fire: Callable[[], None], *, survives: bool
) -> Timer:
    timer = owner.kernel.timers.call_in(delay, fire)
    timer.survives = survives
    if owner.timers is None:
        owner.timers = set()
    owner.timers.add(timer)
    timer.keeper = owner
    return timer
