"""The warden: kills an actor that hangs, when an operator asks for it.

The actor ends in the middle of what it does, and its supervisor restarts it as after
any failure. Only conversations, agents and connectors may be killed: they go on from
what is stored. A supervisor gives up when its children fail too often, so `KillLimit`
allows fewer kills than any supervisor's restart limit. The kill is on record before it
is done.
"""

from __future__ import annotations

from collections import deque

import msgspec

from actors import names
from actors.errors import EndedByHandError
from actors.journal.records import Deed, as_commit
from actors.protocol import RouteUnanswered
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

AGENTS = "agents"
CONNECTORS = "connectors"

PERIOD = 60.0
"""Seconds in which kills are counted."""

# Chosen: conversations allow three restarts in 30 seconds, branches twelve in 60.
MOST_OF_ONE = 2
"""Most kills of the same actor in one period."""

MOST = 6
"""Most kills of all actors together in one period."""

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
    """Say why an actor may not be killed; empty: it may.

    Args:
        root: name of the root supervisor.
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

    Conversations are named after chats, so any name may follow.
    """
    first, _, conversation = part.partition("/")
    return part == "agent" or (first == "sessions" and bool(conversation))


def is_of_connector(part: str) -> bool:
    """Whether this part of a connector's branch may be killed by itself."""
    if part in {"connector", "listener"}:
        return True
    first, _, account = part.partition("/")
    return first == "listeners" and bool(account)


class KillLimit:
    """The kills of the last period, and whether one more is allowed.

    It never holds more than `MOST`.
    """

    def __init__(self) -> None:
        self._past: deque[tuple[float, str]] = deque()

    def refusal(self, name: str, now: float) -> str:
        """Say why an actor may not be killed again now; empty: it may.

        Args:
            now: seconds on the caller's monotonic clock; must not go backwards.
        """
        while self._past and self._past[0][0] <= now - PERIOD:
            self._past.popleft()
        if sum(each == name for _, each in self._past) >= MOST_OF_ONE:
            return OFTEN
        return MANY if len(self._past) >= MOST else ""

    def count(self, name: str, now: float) -> None:
        """Count a kill."""
        self._past.append((now, name))


LOG = EventLog("warden")

DOWN = "it is down now, and is restarted without that; look again in a while"
"""Why an actor that has failed and waits for its restart is not killed."""

# Chosen: a killed actor returns the message in hand to nobody; by then its supervisor's
# first restart and the kernel's grace period are over.
TAKE_UP_AFTER = 6.0
"""Seconds from a kill until the messages that the actor left are routed again."""


class KillActor(msgspec.Struct, frozen=True):
    """Asked of `warden`: kill this actor. The answer is `Killed`."""

    name: str
    """Its full name."""

    by: str
    """The operator, for the audit."""


class Killed(msgspec.Struct, frozen=True):
    """Whether an actor was killed."""

    is_done: bool
    text: str
    """One sentence for people."""


class RouteUnansweredDue(msgspec.Struct, frozen=True):
    """A note to itself: the killed actor is back, and may have left messages."""


class Warden(Actor):
    """Kills actors that the operator names.

    Takes: `KillActor` (asked). Sends: `RouteUnanswered` to the router, when the killed
    actor is back. Keeps: the kills of the last minute. Fails: never by a disk that
    fails: then no actor is killed. Ends: with the system.
    """

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._kills = KillLimit()

    def on_receive(self, message: object) -> object:
        """Kill an actor, or have the messages routed that it left."""
        match message:
            case KillActor():
                return self._kill(message)
            case RouteUnansweredDue() if self.find(names.ROUTER) is not None:
                self.tell(names.ROUTER, RouteUnanswered())
            case RouteUnansweredDue():
                pass  # it reads the store when it starts
            case _:
                return super().on_receive(message)
        return None

    async def _kill(self, order: KillActor) -> Killed:
        name, now = order.name, self._services.clock.monotonic()
        why = refusal(name, names.ROOT) or self._kills.refusal(name, now)
        found = self.find(name)
        if not why and found is None:
            why = "there is no such actor now; it may have ended by itself"
        elif not why and found is not None and found.is_down():
            why = DOWN
        if why:
            LOG.info("kill refused", actor=name, by=order.by, why=why)
            return Killed(is_done=False, text=why)
        try:
            deed = Deed("kill", "killed", name, order.by)
            await self._services.store.commit(as_commit(deed, self._services))
        except StoreError as error:
            LOG.warning("not killed: no record of it", actor=name, why=str(error))
            return Killed(
                is_done=False, text=f"not killed: it cannot be put on record: {error}"
            )
        # Looked up again: it may have ended during the commit.
        ref = self.find(name)
        if ref is None:
            return Killed(is_done=False, text="it has ended by itself meanwhile")
        if not ref.crash(EndedByHandError(f"killed by {order.by}")):
            return Killed(is_done=False, text=DOWN)
        kind = ref.actor_class.__name__
        self._kills.count(name, now)
        self._services.metrics.killed.add(1, kind)
        LOG.warning("killed by hand", actor=name, kind=kind, by=order.by)
        self.after(TAKE_UP_AFTER, RouteUnansweredDue())
        text = f"{name} is killed; its supervisor restarts it"
        return Killed(is_done=True, text=text)
