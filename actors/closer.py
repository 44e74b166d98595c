"""Ends conversations whose time is over, though nobody writes in them any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.condensing import EndIfOver
from actors.records import CONVERSATION, ConversationRecord
from actors.rules.expiry import cutoff
from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog
from runtime.messages import Keyed

if TYPE_CHECKING:
    from actors.services import Services
    from runtime.rows import StoredRecord

LOG = EventLog("closer")

# Source: F125's upstream looks every minute.
LOOK_EVERY = 60.0

# Chosen: a thousand an hour. Each is two calls to a model, and people who write now
# come first.
WOKEN_AT_ONCE = 16

# Chosen: rows read at one look; most of them are of conversations that have ended.
PAGE = 500

# Chosen: seconds. What slept for longer when the program starts ends with its next
# message: a year's conversations need not be summed up because of a restart.
LOOK_BACK = 7 * 86_400.0


class LookForOver(msgspec.Struct, frozen=True):
    """A note to itself: see which conversations have had their time."""


class Closer(Actor):
    """Wakes conversations whose time is over, so that they end.

    Takes: nothing.
    Sends: `EndIfOver` to sessions, a few at a time; each looks for itself.
    Keeps: up to when it has looked; what it reads is bounded, however many
        conversations there are.
    Fails: never by a disk that fails.
    Ends: with the system.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._seen: tuple[float, int] = (services.clock.wall() - LOOK_BACK, 0)

    def on_start(self) -> None:
        """Begin to look."""
        self.every(LOOK_EVERY, LookForOver())

    def on_receive(self, message: object) -> object:
        """Look once."""
        if isinstance(message, LookForOver):
            return self._look()
        return super().on_receive(message)

    async def _look(self) -> None:
        services = self._services
        if not services.sessions.close_sleeping:
            return
        before = cutoff(services.clock.wall(), services.sessions.rule, services.zone)
        if before is None:
            return
        try:
            rows = await services.store.records_since(CONVERSATION, *self._seen, PAGE)
        except StoreError as error:
            LOG.warning("conversations not looked through", why=str(error))
            return
        woken = 0
        for row in rows:
            if row.at > before or woken == WOKEN_AT_ONCE:
                return
            self._seen = (row.at, row.number)
            woken += self._wake(row)

    def _wake(self, row: StoredRecord) -> bool:
        """Have a conversation look whether its time is over; whether it may be."""
        try:
            body = msgspec.json.decode(row.body, type=ConversationRecord)
        except ValueError:
            LOG.warning("conversation cannot be read", conversation=row.id)
            return False
        sessions = names.sessions(body.agent)
        if body.status == "closed" or self.find(sessions) is None:
            return False
        return self.tell(sessions, Keyed(row.id, EndIfOver()))
