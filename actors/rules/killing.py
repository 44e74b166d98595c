"""Which actors an operator may kill by hand, and how often; pure.

A kill is for what hangs: the actor ends at once, in the middle of what it does, and its
supervisor starts it again as after any failure. Conversations, agents and connectors go
on from what is stored; for others that is not so, or nobody would gain by it.

A supervisor gives up when what it watches ends too often, and takes its siblings along.
So an operator kills less often than any supervisor allows: by hand alone, no
restart limit is ever reached.
"""

from __future__ import annotations

from collections import deque

AGENTS = "agents"
CONNECTORS = "connectors"

PERIOD = 60.0
"""Seconds in which kills are counted."""

# Chosen: conversations allow three restarts in 30 seconds, branches twelve in 60.
MOST_OF_ONE = 2
"""Kills of the same actor in one period."""

MOST = 6
"""Kills of all actors together in one period."""

STORE = "the store is not killed: what is being written would not be stored"
ROOT = "the root is not killed: that ends the program; stop it with SIGTERM"
SHARED = (
    "only conversations, agents and connectors are killed by hand: this one serves"
    " them all"
)
INNER = (
    "only conversations, agents and connectors are killed by hand: what works for one"
    " ends with it"
)
OFTEN = f"killed {MOST_OF_ONE} times within {PERIOD:g} s; see the log why it hangs"
MANY = f"{MOST} actors were killed within {PERIOD:g} s; wait for their restarts"


def refusal(name: str, root: str) -> str:
    """Say why an actor may not be killed; nothing: it may.

    Args:
        name: the actor's full name.
        root: the name of the supervisor above all others.
    """
    if name == root:
        return ROOT
    branch, _, rest = name.removeprefix(f"{root}/").partition("/")
    if branch == "store":
        return STORE
    if branch not in {AGENTS, CONNECTORS} or not rest:
        return SHARED
    _owner, slash, part = rest.partition("/")
    of_it = is_of_agent if branch == AGENTS else is_of_connector
    return "" if not slash or of_it(part) else INNER


def is_of_agent(part: str) -> bool:
    """Whether this part of an agent's branch may be killed by itself.

    Conversations are named by what people's platforms call chats, so anything may
    follow.
    """
    first, _, conversation = part.partition("/")
    return part == "agent" or (first == "sessions" and bool(conversation))


def is_of_connector(part: str) -> bool:
    """Whether this part of a connector's branch may be killed by itself."""
    if part in {"connector", "listener"}:
        return True
    first, _, account = part.partition("/")
    return first == "listeners" and bool(account)


class Kills:
    """The kills of the last period, and whether one more is allowed.

    Never holds more than `MOST`: beyond, nothing is added.
    """

    def __init__(self) -> None:
        self._past: deque[tuple[float, str]] = deque()

    def refusal(self, name: str, now: float) -> str:
        """Say why this one may not be killed again now; nothing: it may.

        Args:
            name: the actor's full name.
            now: seconds on the caller's monotonic clock; must not go backwards.
        """
        while self._past and self._past[0][0] <= now - PERIOD:
            self._past.popleft()
        if sum(each == name for _, each in self._past) >= MOST_OF_ONE:
            return OFTEN
        return MANY if len(self._past) >= MOST else ""

    def count(self, name: str, now: float) -> None:
        """Count one that was killed."""
        self._past.append((now, name))
