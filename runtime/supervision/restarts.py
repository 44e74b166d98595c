"""How often a child may be restarted, when, and who else is restarted with it.

Pure: no clock, no dice, no actor. `supervisor.py` asks and carries out, this
module answers.

The terms and the decisions are Erlang/OTP's (stdlib, `supervisor`): with
*intensity* N and *period* P, the supervisor stops itself when its children need
more than N restarts within P seconds. Back-off is ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import Literal, assert_never

import msgspec

from runtime.errors import why_no_time

RestartKind = Literal["permanent", "transient", "temporary"]
"""Restarted always / only after an abnormal end / never."""

Strategy = Literal["one_for_one", "rest_for_one", "one_for_all"]
"""Restarted together: the child alone / with those started later / all."""


class RestartWindow:
    """The restarts of the last `period` seconds, and whether one more is allowed.

    Args:
        intensity: restarts allowed inside one period; 0 means never restart.
        period: length of the window in seconds; must be above 0.

    Raises:
        ValueError: `intensity` is negative or `period` is not above 0.
    """

    def __init__(self, intensity: int, period: float) -> None:
        if intensity < 0:
            raise ValueError(f"intensity must be 0 or more, not {intensity}")
        if (wrong := why_no_time(period)) or period <= 0:
            text = wrong or f"not {period}"
            raise ValueError(f"period must be above 0 seconds, {text}")
        self._intensity = intensity
        self._period = period
        # Invariant: never longer than intensity + 1. One more than allowed is
        # enough to know that it was one too many.
        self._past: deque[float] = deque(maxlen=intensity + 1)

    def allow(self, now: float) -> bool:
        """Count a restart at `now` and tell whether it may go ahead.

        Args:
            now: seconds on the caller's monotonic clock; must not go backwards.

        Returns:
            False when this restart is one too many. A restart exactly `period`
            seconds old still counts, as in OTP.
        """
        self._past.append(now)
        while self._past[0] < now - self._period:
            self._past.popleft()
        return len(self._past) <= self._intensity


class Failures(msgspec.Struct, frozen=True):
    """What a `Backoff` remembers of one child between its failures."""

    delay: float | None = None
    """The last delay in seconds, before jitter; None before the first failure."""

    up_at: float = 0.0
    """When the last restart was due, in seconds on the caller's clock."""


class Backoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a failed child waits before it is started again.

    The first restart waits `first`; each further one in a row `factor` times as long
    as the one before, but never less than `then` and never more than `maximum`.

    Raises:
        ValueError: a number is outside the range its field names.
    """

    first: float = 0.0
    """Seconds before the first restart; 0 restarts at once."""

    then: float = 0.1
    """Fewest seconds before the second and later restarts; must not be below 0."""

    factor: float = 2.0
    """Growth from one restart to the next; must not be below 1."""

    maximum: float = 60.0
    """Most seconds before any restart; must not be below 0."""

    jitter: float = 0.2
    """Share of a delay, from 0 to 1, that chance may take away: children that
    failed together should not all come back in the same instant."""

    calm_after: float = 60.0
    """Seconds a child must have been up since its last restart for the row to
    begin anew. Counted from when that restart was due, so that a long delay does
    not pass for calm."""

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense, also when decoded from settings."""
        seconds = (self.first, self.then, self.maximum, self.calm_after)
        if not all(not why_no_time(each, 0) and each < inf for each in seconds):
            raise ValueError("first, then, maximum and calm_after must be 0 or more")
        if not 1 <= self.factor < inf:
            raise ValueError(f"factor must be 1 or more, not {self.factor}")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"jitter must be from 0 to 1, not {self.jitter}")

    def delay(
        self, failures: Failures, now: float, random01: float
    ) -> tuple[float, Failures]:
        """Tell how long to wait after a failure at `now`, and what to remember.

        Args:
            failures: what this function returned last time for this child;
                `Failures()` for its first failure.
            now: seconds on the caller's clock.
            random01: a random number from 0 to 1.

        Returns:
            Seconds to wait, between (1 - `jitter`) times the planned delay and the
            planned delay; and the argument for the child's next failure.
        """
        if failures.delay is None or now - failures.up_at >= self.calm_after:
            planned = self.first
        else:
            planned = max(self.then, failures.delay * self.factor)
        planned = min(planned, self.maximum)
        seconds = planned * (1.0 - self.jitter * random01)
        return seconds, Failures(delay=planned, up_at=now + seconds)


class Normal(msgspec.Struct, frozen=True):
    """The child ended by itself, having done its work."""


class Shutdown(msgspec.Struct, frozen=True):
    """The child was asked to stop, and did."""


class Failed(msgspec.Struct, frozen=True):
    """The child raised, or could not be started again."""

    text: str
    """The exception in words."""


class Killed(msgspec.Struct, frozen=True):
    """The child was cancelled from outside without being asked."""


Ending = Normal | Shutdown | Failed | Killed


class ChildPolicy(msgspec.Struct, frozen=True):
    """A child as far as the decision depends on it."""

    name: str
    restart: RestartKind = "permanent"
    is_running: bool = True
    """False for a transient child that has ended, or one that declined to start."""


class Leave(msgspec.Struct, frozen=True):
    """Do nothing: a transient child ended as it should, or it is not ours.

    A transient child's spec stays: it may be started by hand, and a restart of
    the whole group starts it too (OTP).
    """

    child: str


class Forget(msgspec.Struct, frozen=True):
    """Take a temporary child off the list; siblings are not touched."""

    child: str


class Restart(msgspec.Struct, frozen=True):
    """Stop some siblings, forget some, then start again.

    If a start fails, the supervisor asks again with that child as `Failed`.
    """

    stop: tuple[str, ...]
    """Running siblings to stop, the one started last first."""

    forget: tuple[str, ...]
    """Temporary siblings: stopped, taken off the list, not started again."""

    start: tuple[str, ...]
    """Children to start, in order of start; the one that ended is among them."""


class Escalate(msgspec.Struct, frozen=True):
    """One restart too many: stop all children, then fail, telling one's supervisor."""

    stop: tuple[str, ...]
    """Running children to stop, the one started last first."""

    text: str
    """What happened, for the supervisor's own error."""


Plan = Leave | Forget | Restart | Escalate


def wants_restart(kind: RestartKind, ending: Ending) -> bool:
    """Tell whether a child of this kind is to be started again after this end."""
    match kind:
        case "permanent":
            return True
        case "transient":
            return isinstance(ending, Failed | Killed)
        case "temporary":
            return False
        case _:
            assert_never(kind)


class RestartRequest(msgspec.Struct, frozen=True):
    """The end of a child, about which a supervisor must decide."""

    strategy: Strategy
    children: tuple[ChildPolicy, ...]
    """All children in order of start, with different names."""

    child: str
    """Name of the one that ended."""

    ending: Ending


def decide(ended: RestartRequest, window: RestartWindow, now: float) -> Plan:
    """Decide as OTP does what a supervisor does about the end of a child.

    Args:
        window: the supervisor's restarts so far; it is asked, and counts, only if
            this end calls for a restart.
        now: seconds on the clock of `window`.
    """
    child = next((each for each in ended.children if each.name == ended.child), None)
    if child is None:
        return Leave(ended.child)
    if child.restart == "temporary":
        return Forget(child.name)
    if not wants_restart(child.restart, ended.ending):
        return Leave(child.name)
    if not window.allow(now):
        return Escalate(
            stop=_running(ended.children, but=child.name),
            text=f"child {child.name!r} {_in_words(ended.ending)} and needed one"
            " restart more than intensity and period allow",
        )
    group = _group(ended.strategy, ended.children, child)
    return Restart(
        stop=_running(group, but=child.name),
        forget=tuple(each.name for each in group if each.restart == "temporary"),
        start=tuple(each.name for each in group if each.restart != "temporary"),
    )


def _group(
    strategy: Strategy, children: tuple[ChildPolicy, ...], child: ChildPolicy
) -> tuple[ChildPolicy, ...]:
    match strategy:
        case "one_for_one":
            return (child,)
        case "rest_for_one":
            return children[children.index(child) :]
        case "one_for_all":
            return children
        case _:
            assert_never(strategy)


def _running(children: Iterable[ChildPolicy], *, but: str) -> tuple[str, ...]:
    names = [each.name for each in children if each.is_running and each.name != but]
    return tuple(reversed(names))


def _in_words(ending: Ending) -> str:
    match ending:
        case Normal():
            return "ended by itself"
        case Shutdown():
            return "was stopped"
        case Failed(text=text):
            return f"failed ({text})"
        case Killed():
            return "was killed"
        case _:
            assert_never(ending)
