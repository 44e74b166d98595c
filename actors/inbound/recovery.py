"""Messages that were accepted and never settled: found in the store, routed again.

The router's own part. It decides when and in which order they are routed; the router
routes them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from itertools import chain
from typing import NamedTuple

import msgspec

from actors import names
from actors.inbound.chat_lines import ChatLines, Place
from actors.inbound.hearing import Audience
from actors.journal import commits
from actors.journal.unsettled import (
    UnroutedMessage,
    place,
    read_among,
    read_keys,
    read_open,
    tell_found,
)
from actors.messages.keys import SessionKey, chat_partition
from actors.protocol import (
    CheckHeard,
    DrainOutbox,
    NotHeard,
    RouteArrived,
    RouteUnanswered,
)
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.errors import StoreUnavailableError
from runtime.store.rows import MessageKey, StoredMessage
from runtime.telemetry.logs import EventLog

LOG = EventLog("router")

SWEEP_EVERY = 60.0
"""Seconds between looks for messages that were stored and never routed: their
connector or session may have been killed before it could tell the router. Sessions are
asked about those that they were handed, so that only what nobody has is read."""

# Chosen: an agent starts its sessions right after itself.
RECOVER_AFTER = 1.0
"""Seconds between a request for unanswered messages and routing them."""

# Chosen: a thousand a second. Waking ten thousand conversations at once keeps the
# process from answering anybody, and from reporting that it is ready, for seconds.
ROUTED_AT_ONCE = 100
"""Recovered messages that are routed in one go."""

ROUTE_EVERY = 0.1
"""Seconds between two goes."""


class RecoveryDue(msgspec.Struct, frozen=True):
    """A note to the router: route unanswered messages; the asker is up by now."""


class SweepDue(msgspec.Struct, frozen=True):
    """A note to the router: look for stored messages that were never routed."""


class HandedOver(NamedTuple):
    """Where a message went that is not settled yet."""

    session: SessionKey
    at: float
    """Unix seconds at which it came."""


class RouteNext(msgspec.Struct, frozen=True):
    """A note to the router: route the next recovered messages."""


RecoveryMessage = (
    RouteUnanswered | RouteArrived | NotHeard | RecoveryDue | SweepDue | RouteNext
)
"""What has the router look for messages that nobody was handed."""


class Recovery:
    """The unsettled messages of the store that are still to be routed.

    The methods give the places that may move now, in this order, each just before it
    is moved. A new message waits behind the old ones of its chat, which then move at
    once, so that nobody waits for other chats.

    Args:
        connectors: names of those that run here; messages of others are left alone, but
            of those that another node has.
    """

    def __init__(
        self,
        router: Actor,
        lines: ChatLines,
        connectors: AbstractSet[str],
        hearing: Audience,
        services: Services,
    ) -> None:
        self._router = router
        self._lines = lines
        self._connectors = connectors
        self._hearing = hearing
        self._store = services.store
        self._duties = services.duties
        self._handed: dict[str, HandedOver] = {}
        """By message; those that are settled are forgotten at the next look."""

        self._is_due = False
        self._is_sweep_due = False
        self._is_routing = False

    async def begin(self) -> Iterator[Place]:
        """Find what an earlier process left unsettled.

        Raises:
            StoreError: the disk fails.
        """
        self._router.every(SWEEP_EVERY, SweepDue())
        found = await self._find()
        tell_found(found, set(filter(self._is_known, found)))
        return self._next()

    async def take(self, message: RecoveryMessage) -> Iterable[Place]:
        """Go on when an actor asks for it, or when a timer fires."""
        match message:
            case RouteNext():
                self._is_routing = False
                return self._next()
            case RecoveryDue():
                return await self._recover()
            case SweepDue():
                self._is_sweep_due = False
                if not self._is_due:  # else a look is due anyway
                    return await self._recover(is_sweep=True)
            case NotHeard(message_id=message_id):
                self._handed.pop(message_id, None)
                self._sweep_soon()
            case RouteArrived() if not self._duties.is_leaving:
                found = await self._take_arrived()
                # Why read when a look is due: new messages wait behind the old ones.
                return () if self._is_due else found
            case RouteUnanswered() if not self._is_due:
                self._recover_later()
                # Why now: new messages must wait behind the old ones of their chat.
                await self._look()
            case _:
                pass
        return ()

    async def _take_arrived(self) -> Iterator[Place]:
        """Route at once what nobody was handed: no actor needs time to start for it."""
        try:
            await self._find_arrived()
        except StoreUnavailableError as error:
            LOG.warning("messages not taken up yet", why=str(error))
            self._sweep_soon()
            return iter(())
        return self._next()

    def arrive(self, message: UnroutedMessage) -> Iterable[Place]:
        """Route a new message, behind the old ones of its chat.

        One of a chat that another node works on is left to it.
        """
        duties, address = self._duties, message.inbound.address
        # Why `parts` first: one process pays nothing for it.
        if duties.parts is not None:
            part = chat_partition(address.connector, address.chat)
            if not duties.begins(address.connector, part):
                return ()
        chat, lines = commits.chat_stream(message.inbound), self._lines
        # A session of the chat may not be up yet; it hears the old ones first.
        is_late = self._is_due and lines.has_left(chat)
        place = lines.add(chat, message, is_late=is_late)
        if place is not None:
            return (place,)
        return () if self._is_due else self._hurry(chat)

    def _recover_later(self) -> None:
        """Give the actor that asked time to start; several requests count as one."""
        self._is_due = True
        self._router.after(RECOVER_AFTER, RecoveryDue())

    def hand_over(self, message: UnroutedMessage, session: SessionKey) -> None:
        """Note that a session was handed a message."""
        at = message.at or message.inbound.received_at
        self._handed[message.inbound.id] = HandedOver(session, at)

    def _sweep_soon(self) -> None:
        """Look again once all sessions have told what they do not know."""
        if not self._is_sweep_due:
            self._is_sweep_due = True
            self._router.after(RECOVER_AFTER, SweepDue())

    async def _recover(self, *, is_sweep: bool = False) -> Iterable[Place]:
        self._is_due = False
        # First: stored answers are sent before anything else in their chat.
        for name in self._connectors:
            self._router.tell(names.connector(name), DrainOutbox())
        late = self._lines.late
        if not await self._look(is_sweep=is_sweep):
            self._recover_later()
            return ()
        return chain(*map(self._hurry, late), self._next())

    async def _look(self, *, is_sweep: bool = False) -> bool:
        """Read what is not settled; False: the disk fails.

        Args:
            is_sweep: sessions still have what they were handed, as far as is known.
        """
        try:
            await (self._find_lost() if is_sweep else self._find())
        except StoreUnavailableError as error:
            LOG.warning("messages not taken up yet", why=str(error))
            return False
        return True

    async def _find(self) -> Counter[str]:
        """Read what is not settled; count it by connector."""
        rows = await read_open(self._store)
        if self._duties.parts is not None:
            rows = [row for row in rows if self._is_mine(row)]
        self._take_in(rows, rows)
        return Counter(row.connector for row in rows)

    async def _find_lost(self) -> None:
        """Read what nobody was handed; ask the sessions about all else."""
        keys = await self._read_keys()
        lost = [key for key in keys if not self._check(key.id)]
        self._take_in(keys, await read_among(self._store, lost))

    async def _find_arrived(self) -> None:
        """Read what nobody was handed; sessions are asked about the rest now and then.

        Why not now: hints may come ten times a second.
        """
        keys = await self._read_keys()
        new = [key for key in keys if key.id not in self._handed]
        self._take_in(keys, await read_among(self._store, new))

    async def _read_keys(self) -> list[MessageKey]:
        keys = await read_keys(self._store)
        if self._duties.parts is None:
            return keys
        return [key for key in keys if self._is_mine(key)]

    def _is_mine(self, found: MessageKey | StoredMessage) -> bool:
        return self._duties.has(found.connector, found.part)

    def _is_known(self, connector: str) -> bool:
        """Whether a connector runs, be it at another node."""
        return connector in self._connectors or self._duties.is_away(connector)

    def _check(self, message_id: str) -> bool:
        """Ask the session that was handed a message; False: there is none to ask."""
        if message_id not in self._handed:
            return False
        session, check = self._handed[message_id].session, CheckHeard(message_id)
        is_there = self._router.tell(
            names.sessions(session.agent), Keyed(session.text, check)
        )
        if not is_there:
            del self._handed[message_id]
        return is_there

    def _take_in(
        self, found: Sequence[MessageKey | StoredMessage], rows: list[StoredMessage]
    ) -> None:
        """Let what was read wait for its turn, and forget what is settled.

        Args:
            found: all that is not settled.
            rows: those of it that are to be routed.
        """
        ids = {each.id for each in found}
        self._handed = {x: at for x, at in self._handed.items() if x in ids}
        times = [row.at for row in rows] + [each.at for each in self._handed.values()]
        self._hearing.sweep(min(times, default=math.inf))
        mine = {each.id for each in found if self._is_known(each.connector)}
        self._hearing.allotted.forget_all_but(mine)
        # Copies for further agents stand where their original stands.
        begins = self._duties.begins
        waiting = sorted(
            (x for x in rows if x.id in mine and begins(x.connector, x.part)), key=place
        )
        self._lines.refill((row.stream, row) for row in waiting)

    def _hurry(self, chat: str) -> Iterator[Place]:
        return self._lines.hurry(chat, ROUTED_AT_ONCE)

    def _next(self) -> Iterator[Place]:
        """Give the next places, and set the timer for the rest."""
        if self._is_routing:
            return
        yield from self._lines.take(ROUTED_AT_ONCE)
        if self._lines.has_left():
            self._is_routing = True
            self._router.after(ROUTE_EVERY, RouteNext())
