"""What supervisors do, as a table: children, what happens to them, what follows.

A step is a line such as `crash a & tell a x`; what is joined by `&` happens in one
instant. In a log, a number is the second at which something happened, if not at 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import msgspec

from runtime.supervision.restarts import Backoff, RestartKind, Strategy
from runtime.supervision.supervisor import SupervisorConfig

STEADY = Backoff(jitter=0.0)


class Kid(msgspec.Struct, frozen=True):
    """A child: how each of its incarnations starts, and how it ends."""

    name: str
    start: str = "ok"
    """One word per incarnation, the last for all further ones: ok, fail, decline;
    slow (1 s), late-fail, late-decline, hang, deaf (to its cancellation)."""

    stop: str = "ok"
    """The end's hook: ok, fail, slow, late-fail, hang, deaf."""

    restart: RestartKind = "permanent"
    shutdown: float | None = 5.0
    start_timeout: float | None = 30.0
    deadline: float | None = None
    kids: tuple[Kid, ...] | None = None
    """Given, it is a supervisor of these."""

    config: SupervisorConfig = SupervisorConfig(backoff=STEADY)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One row: children, steps, and the log that must come of it."""

    id: str
    kids: tuple[Kid, ...]
    log: str
    steps: tuple[str, ...] = ()
    strategy: Strategy = "one_for_one"
    intensity: int = 3
    backoff: Backoff = STEADY
    extra: tuple[Kid, ...] = ()
    """Children that a step may start later."""

    alive: str | None = None
    """Who is alive at the end; None: not looked at."""

    ends: str | None = None
    """Why the supervisor itself has ended; None: it runs."""


def kid(name: str, start: str = "ok", stop: str = "ok") -> Kid:
    """Make a permanent child."""
    return Kid(name, start, stop)


A, B, C = kid("a"), kid("b"), kid("c")
ALL_UP = "a up, b up, c up"

STARTS = (
    Case(id="children start in order", kids=(A, B, C), log=ALL_UP, alive="a b c"),
    Case(
        id="the next child waits for a slow start",
        kids=(kid("a", "slow"), B),
        log="a up 1, b up 1",
    ),
    Case(
        id="a start without a limit may take as long as it likes",
        kids=(Kid("a", "slow", start_timeout=None),),
        log="a up 1",
    ),
    Case(
        id="a failed start stops the earlier ones in reverse",
        kids=(A, B, kid("c", "fail")),
        log="a up, b up, b down, a down, . StartError",
        ends="StartError",
    ),
    Case(
        id="so does one that fails later",
        kids=(A, B, kid("c", "late-fail")),
        log="a up, b up, b down 1, a down 1, . StartError 1",
        ends="StartError",
    ),
    Case(
        id="one that declines is passed over",
        kids=(A, kid("b", "decline"), C),
        log="a up, c up",
        alive="a c",
    ),
    Case(
        id="one may decline late",
        kids=(A, kid("b", "late-decline"), C),
        log="a up, c up 1",
        alive="a c",
    ),
    Case(
        id="a start that takes too long has failed",
        kids=(A, Kid("b", "hang", start_timeout=2)),
        log="a up, a down 2, . StartError 2",
        ends="StartError",
    ),
    Case(
        id="a start that ignores its cancellation is left behind",
        kids=(A, Kid("b", "deaf", start_timeout=2)),
        log="a up, a down 7, . StartError 7",
        ends="StartError",
    ),
    Case(
        id="a name can be given once",
        kids=(A, A),
        log="a up, a down, . StartError",
        ends="StartError",
    ),
    Case(
        id="a start that takes too long takes its grandchildren along",
        kids=(Kid("in", kids=(A, kid("b", "hang")), start_timeout=2),),
        log="in/a up, . StartError 2",
        ends="StartError",
    ),
    Case(
        id="a grandchild that fails to start fails its parent's start",
        kids=(A, Kid("in", kids=(B, kid("c", "late-fail")))),
        log="a up, in/b up, in/b down 1, a down 1, . StartError 1",
        ends="StartError",
    ),
)

STOPS = (
    Case(
        id="children stop in reverse",
        kids=(A, B, C),
        steps=("end",),
        log=f"{ALL_UP}, c down, b down, a down, end True",
        alive="",
        ends="shutdown",
    ),
    Case(
        id="grandchildren stop before the next child",
        kids=(A, Kid("in", kids=(B, C))),
        steps=("end",),
        log="a up, in/b up, in/c up, in/c down, in/b down, a down, end True",
        ends="shutdown",
    ),
    Case(
        id="a slow stop is waited for",
        kids=(A, kid("b", stop="slow")),
        steps=("end",),
        log="a up, b up, b down 1, a down 1, end True 1",
        ends="shutdown",
    ),
    Case(
        id="a stop that takes longer than its time is cut short",
        kids=(A, Kid("b", stop="hang", shutdown=2)),
        steps=("end",),
        log="a up, b up, a down 2, end True 2",
        ends="shutdown",
    ),
    Case(
        id="a stop that ignores that is left behind",
        kids=(A, Kid("b", stop="deaf", shutdown=2)),
        steps=("end",),
        log="a up, b up, a down 7, end True 7",
        ends="shutdown",
    ),
    Case(
        id="a child without shutdown time is killed at once",
        kids=(A, Kid("b", shutdown=0)),
        steps=("end",),
        log="a up, b up, a down, end True",
        ends="shutdown",
    ),
    Case(
        id="a child without a limit is waited for",
        kids=(A, Kid("b", stop="slow", shutdown=None)),
        steps=("busy b & end",),
        log="a up, b up, b done 1, b down 2, a down 2, end True 2",
        ends="shutdown",
    ),
    Case(
        id="a busy child finishes its message first",
        kids=(A,),
        steps=("busy a & tell a x & end",),
        log="a up, a done 1, a down 1, end True 1",
        ends="shutdown",
    ),
    Case(
        id="a handler that does not end is cut short",
        kids=(A, B),
        steps=("hang b & end",),
        log="a up, b up, a down 5, end True 5",
        ends="shutdown",
    ),
    Case(
        id="a stop that fails does not keep the others up",
        kids=(A, kid("b", stop="fail"), kid("c", stop="late-fail")),
        steps=("end",),
        log=f"{ALL_UP}, a down 1, end True 1",
        alive="",
        ends="shutdown",
    ),
    Case(
        id="children are stopped that wait for their restart",
        kids=(A,),
        steps=("crash a", "crash a", "end", "wait 9"),
        log="a up, a failed, a up, a failed, end True",
        alive="",
        ends="shutdown",
    ),
    Case(
        id="a killed supervisor kills its children",
        kids=(A, B),
        steps=("hang a & kill .",),
        log="a up, b up",
        alive="",
        ends="killed",
    ),
    Case(
        id="and theirs",
        kids=(A, Kid("in", kids=(B, Kid("on", kids=(C,))))),
        steps=("kill .",),
        log="a up, in/b up, in/on/c up",
        alive="",
        ends="killed",
    ),
    Case(
        id="killed while it stops its children, it waits no longer",
        kids=(A, Kid("b", stop="hang", shutdown=None)),
        steps=("shutdown .", "wait 50", "kill ."),
        log="a up, b up",
        alive="",
        ends="killed",
    ),
    Case(
        id="children deaf to being killed are left behind together",
        kids=(kid("a", stop="deaf"), kid("b", stop="deaf")),
        steps=("deaf a & deaf b", "kill .", "wait 4", "look", "wait 1.5"),
        log="a up, b up, 2 alive 4",
        alive="",
        ends="killed",
    ),
    Case(
        id="a supervisor that runs out of its own time takes all along",
        kids=(A, Kid("in", kids=(B, Kid("c", stop="hang", shutdown=60)), shutdown=2)),
        steps=("end",),
        log="a up, in/b up, in/c up, a down 2, end True 2",
        alive="",
        ends="shutdown",
    ),
)

AGAIN: dict[Strategy, str] = {
    "one_for_one": "b up",
    "rest_for_one": "c down, b up, c up",
    "one_for_all": "c down, a down, a up, b up, c up",
}


def _ends() -> Iterator[Case]:
    """Every kind of child, ending in every way, under every strategy."""
    kinds: tuple[RestartKind, ...] = ("permanent", "transient", "temporary")
    last_words = {"exit": "b down", "shutdown": "b down", "crash": "b failed"}
    for strategy, kind, end in product(AGAIN, kinds, (*last_words, "kill")):
        # `shutdown` ends it for good, whatever its kind.
        wanted = {
            "permanent": {"exit", "crash", "kill"},
            "transient": {"crash", "kill"},
        }
        again = end in wanted.get(kind, ())
        words = (ALL_UP, last_words.get(end), AGAIN[strategy] if again else None)
        yield Case(
            id=f"{strategy} {kind} {end}",
            kids=(A, Kid("b", restart=kind), C),
            strategy=strategy,
            steps=(f"{end} b", "wait 9", "tell b x" if again else "wait 1"),
            log=", ".join(word for word in words if word)
            + (", b got x 9" if again else ""),
            alive="a b c" if again else "a c",
        )


ENDS = tuple(_ends())
