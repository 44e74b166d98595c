"""Ends sleeping conversations that have expired."""

from __future__ import annotations

import contextlib
from typing import ClassVar

import msgspec

from actors import names
from actors.journal.records import CONVERSATION, ConversationRecord
from actors.messages.expiry import cutoff
from actors.messages.keys import parse_key
from actors.protocol import EndIfExpired
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.errors import StoreError
from runtime.store.rows import StoredRecord
from runtime.telemetry.logs import EventLog

LOG = EventLog("closer")

# Chosen: nobody minds if a conversation ends a minute late.
LOOK_EVERY = 60.0

# Chosen: about a thousand an hour. Each costs two model calls, and people who write now
# come first.
WOKEN_AT_ONCE = 16
"""Most conversations that are woken in one round."""

# Chosen: most of them are of conversations that have ended.
LOOKED_AT_ONCE = 500
"""Rows read in one round."""

# Chosen: after a restart, a year's conversations need not be summed up.
LOOK_BACK = 7 * 86_400.0
"""Seconds before the start of the program; a conversation that was silent before that
ends with its next message."""


class FindExpired(msgspec.Struct, frozen=True):
    """Timer of the closer: look for conversations that have expired."""


class Closer(Actor):
    """Wakes the sessions of expired conversations, so that they end.

    Takes: nothing but its own timer.
    Sends: `EndIfExpired` to a few sessions in each round; each checks its own expiry.
    Keeps: the position up to which it has read the conversations.
    Fails: on a bug; a disk that cannot be read is tried again in the next round.
    Ends: with the system.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._seen: tuple[float, int] = (services.sure_clock.wall() - LOOK_BACK, 0)

    def on_start(self) -> None:
        """Set the timer."""
        self.every(LOOK_EVERY, FindExpired())

    def on_receive(self, message: object) -> object:
        """Start one round."""
        if isinstance(message, FindExpired):
            return self._find_expired()
        return super().on_receive(message)

    async def _find_expired(self) -> None:
        services = self._services
        if not services.sessions.close_sleeping:
            return
        now = services.sure_clock.wall()
        before = cutoff(now, services.sessions.rule, services.zone)
        if before is None:
            return
        try:
            rows = await services.store.records_since(
                CONVERSATION, *self._seen, LOOKED_AT_ONCE
            )
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
        """Wake a session to check its expiry; give whether it was told."""
        try:
            body = msgspec.json.decode(row.body, type=ConversationRecord)
        except ValueError:
            LOG.warning("conversation cannot be read", conversation=row.id)
            return False
        sessions = names.sessions(body.agent)
        if body.status == "closed" or self.find(sessions) is None:
            return False
        with contextlib.suppress(ValueError):
            key = parse_key(row.id)
            if not self._services.duties.has_chat(key.connector, key.chat):
                return False  # another node works on it
        return self.tell(sessions, Keyed(row.id, EndIfExpired()))
