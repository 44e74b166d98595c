"""Takes away signs that say of a message that somebody is at it, when nobody is.

A sign is put and taken away as well as it goes: a homeserver that is away at the end of
a turn, a process that is killed, or a room that an agent was thrown out of leave the
first one behind. No row is kept of signs, so the homeserver is asked for those that
stand there, and the database for what became of their messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from connectors.chat.errors import PlatformError
from connectors.chat.lenient_json import Json, table, tables, text
from connectors.chat.matrix.api import MatrixCall, path_of
from connectors.chat.matrix.senders import redact
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.transport import Ingress
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.shared import MatrixShared

LOG = EventLog("matrix")

# Chosen: more than an agent answers in one room while a homeserver is away.
MOST_SIGNS = 50
"""Newest signs of each room that are looked at."""

LOOK_EVERY = 60.0
"""Least seconds between two looks; each asks for all rooms of the account."""

TIMEOUT = 120.0


def filter_of(user: str) -> str:
    """Ask for the signs that one account put, in all of its rooms."""
    nothing: Json = {"types": []}
    timeline = {"types": ["m.reaction"], "senders": [user], "limit": MOST_SIGNS}
    rooms = {
        "account_data": nothing,
        "ephemeral": nothing,
        "state": nothing,
        "timeline": timeline,
    }
    found: Json = {"presence": nothing, "account_data": nothing, "room": rooms}
    return msgspec.json.encode(found).decode()


class StaleSigns:
    """Looks after the signs of one account."""

    def __init__(self, account: MatrixAccount, shared: MatrixShared) -> None:
        self._account = account
        self._shared = shared
        self._wanted = trio.Event()

    def want(self) -> None:
        """Have all signs looked at soon: some may have been left behind."""
        self._wanted.set()

    async def run(self, ingress: Ingress) -> None:
        """Look whenever that is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            sign = self._shared.received_sign()
            if sign:
                try:
                    await self._look(sign, ingress)
                except (PlatformError, StoreError) as error:
                    LOG.info("signs not looked at", why=str(error))
            await trio.sleep(LOOK_EVERY)

    async def _look(self, sign: str, ingress: Ingress) -> None:
        # Why any number: Synapse keeps its answer to the same question for a while.
        any_number = int(self._shared.clock.wall() * 1000) % 1000
        call = MatrixCall(
            method="GET",
            path=path_of("sync"),
            query={"filter": filter_of(self._account.user), "timeout": str(any_number)},
            timeout=TIMEOUT,
        )
        for room_id, event_id, message in standing(await self._account.ask(call), sign):
            earlier = await ingress.earlier(self._shared.connector, message)
            # What is not known any more has ended long ago.
            if earlier is None or earlier.outcome:
                await redact(self._account, room_id, event_id)
                LOG.info("stale sign taken away", room=room_id, message=message)


def standing(answer: Json, sign: str) -> Iterator[tuple[str, str, str]]:
    """Find a sign in what `/sync` said: its room, its id, and its message."""
    rooms = table(table(answer.get("rooms")).get("join"))
    for room_id, said in rooms.items():
        for event in tables(table(table(said).get("timeline")).get("events")):
            related = table(table(event.get("content")).get("m.relates_to"))
            event_id, message = (
                text(event.get("event_id")),
                text(related.get("event_id")),
            )
            if related.get("key") == sign and event_id and message:
                yield room_id, event_id, message
