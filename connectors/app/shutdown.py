"""The orderly end: takes nothing more in, and finishes what is under way."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import msgspec
import trio

from actors import names
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound
from actors.protocol import StopAccepting
from actors.services import Duties
from runtime.actor.ref import UNANSWERED
from runtime.clock import Clock
from runtime.errors import KernelError, StoreError
from runtime.store.port import Store
from runtime.store.rows import Commit, StoredDelivery, StoredMessage
from runtime.system import ActorSystem
from runtime.telemetry.logs import EventLog

LOG = EventLog("drain")

# Chosen: short beside any answer, long beside the look into the store.
LOOK_EVERY = 0.05

# Chosen: far above what a full mailbox takes; who fails meanwhile is started again.
CLOSED_WITHIN = 5.0
"""Seconds that the doors have to close, all together."""

PAGE = 1000


class Drain:
    """Brings a running company to rest.

    Args:
        connectors: names of the connectors that are to rest.
        is_the_end: whether all rests: then appointments do, too.
        duties: what of the company's work is done here; None: all is.
        has_moved: whether the connectors go on at another node, so that what they took
            in is answered anywhere.
    """

    def __init__(  # noqa: PLR0913  what it asks, and of what
        self,
        system: ActorSystem,
        store: Store,
        clock: Clock,
        connectors: Collection[str],
        *,
        is_the_end: bool = True,
        duties: Duties | None = None,
        has_moved: bool = False,
    ) -> None:
        self._system = system
        self._store = store
        self._clock = clock
        self._connectors = connectors
        self._is_the_end = is_the_end
        self._duties = Duties() if duties is None else duties
        self._has_moved = has_moved
        self._can_read: dict[tuple[str, int], bool] = {}
        """By kind and number of a row."""

    async def run(self, within: float) -> bool:
        """Close the doors, then wait until all is answered and said.

        Args:
            within: most seconds; what is left then is for the next start.

        Returns:
            Whether nothing was left.
        """
        left = -1
        with trio.move_on_after(within):
            await self._close_doors()
            # The store is changed by everybody, other programs included.
            while left := await self.under_way():  # noqa: ASYNC110
                await trio.sleep(LOOK_EVERY)
        if left:
            LOG.warning("not all was answered", left=left, within=within)
        return not left

    async def _close_doors(self) -> None:
        """Take nothing more in; what was taken in before is stored by then."""
        doors = [*map(names.connector, self._connectors)]
        if self._is_the_end:
            doors += [names.SCHEDULER, names.WEBHOOKS]
        found = [door for door in map(self._system.find, doors) if door is not None]
        for door in found:
            door.tell(StopAccepting())
        # Why asked: a door hands on what came before the question, and then answers.
        with trio.move_on_after(CLOSED_WITHIN):
            for door in found:
                with suppress(KernelError, *UNANSWERED):
                    await door.ask(StopAccepting(), timeout=CLOSED_WITHIN)
        with suppress(StoreError):  # then nothing more is being stored either
            await self._store.commit(Commit(at=self._clock.wall()))

    async def under_way(self) -> int:
        """Count what is under way, at least; a disk that fails counts as one.

        It may be called while the doors are open, too.
        """
        try:
            return await self._unanswered() + await self._unsaid()
        except StoreError as error:
            LOG.warning("cannot tell what is under way", why=str(error))
            return 1

    async def _unanswered(self) -> int:
        """Count messages that somebody works on, page by page until there are some."""
        if self._has_moved:
            return 0
        now, after = self._clock.wall(), 0
        is_put_off: dict[str, bool] = {}
        while True:
            rows = await self._store.unsettled(after, PAGE)
            mine = [row for row in rows if self._is_to_be_answered(row)]
            found = [row for row in mine if is_under_way(row, now, is_put_off)]
            if found or len(rows) < PAGE:
                return len(found)
            after = rows[-1].number

    async def _unsaid(self) -> int:
        """Count deliveries that are still to be said, in the same way."""
        after = 0
        while True:
            rows = await self._store.undelivered(after=after, limit=PAGE)
            found = [row for row in rows if self._is_to_be_said(row)]
            if found or len(rows) < PAGE:
                return len(found)
            after = rows[-1].number

    def _is_to_be_answered(self, row: StoredMessage) -> bool:
        duties = self._duties
        if not duties.has(row.connector, row.part):
            return False
        if duties.is_away(row.connector):
            # What another node still takes in for this one waits for its successor.
            return row.state == "running" and self._can_read_it(row, Inbound)
        return row.connector in self._connectors and self._can_read_it(row, Inbound)

    def _is_to_be_said(self, row: StoredDelivery) -> bool:
        if row.connector not in self._connectors:
            return False
        is_mine = self._duties.sends(row.connector, row.part)
        return is_mine and self._can_read_it(row, Delivery)

    def _can_read_it(
        self, row: StoredMessage | StoredDelivery, kind: type[Inbound | Delivery]
    ) -> bool:
        """Whether somebody here can do something about a row.

        One that cannot be read is left as it is, and said so in the log, by those
        whose it would be; so nobody is to wait for it.
        """
        # Bounded: with the doors closed, only what those inside hand on is added; with
        # them open, by what a play has lines.
        key = (kind.__name__, row.number)
        known = self._can_read.get(key)
        if known is None:
            known = self._can_read[key] = can_read(row.body, kind)
        return known


def is_under_way(row: StoredMessage, now: float, is_put_off: dict[str, bool]) -> bool:
    """Whether a message is worked on, or will be as soon as others are done.

    Args:
        row: the message; its chat's earlier ones must have been asked about before.
        now: Unix seconds.
        is_put_off: by stream, whether its first open message waits for a later try;
            written here. What came behind that one waits as long.
    """
    waits = is_put_off.setdefault(row.stream, row.due_at > now)
    return row.state == "running" or not (waits or row.due_at > now)


def can_read(body: bytes, kind: type[Inbound | Delivery]) -> bool:
    """Whether a stored body is what it should be."""
    try:
        msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
