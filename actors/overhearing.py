"""Finds out what was said in a group since an agent last answered there.

Read from the rows of the chat when the agent answers, and kept nowhere else: after a
restart it is the same, and a chat in which nobody asks an agent costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.deliveries import Delivery
from actors.messages import ALONE, Inbound
from actors.rules.overheard import Ear, Exchange, Told, last_turn, overheard
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.rules.overheard import Word
    from actors.services import Services
    from runtime.rows import Answered, StoredDelivery
    from runtime.store import Store

LOG = EventLog("turn")

PAGE = 50
"""Messages read at once."""

# Chosen: a thousand rows of one chat, some 20 ms of reading. Further back nobody looks.
MOST_PAGES = 20


async def overhear(
    start: StartTurn, persona: Persona, services: Services
) -> tuple[Word, ...]:
    """Give what was said since the agent last answered in this chat, oldest first.

    Nothing in direct chats, for what is due by the clock, and if the disk fails: the
    question is answered without it then.
    """
    inbound, most = start.inbound, persona.config.groups.pending_messages
    if inbound.is_direct or inbound.occasion in ALONE or not most:
        return ()
    try:
        return await _overhear(start, persona, most, services.store)
    except StoreError as error:
        LOG.warning(
            "answered without what was said in the chat",
            correlation_id=inbound.correlation_id,
            why=str(error),
        )
        return ()


async def _overhear(
    start: StartTurn, persona: Persona, most: int, store: Store
) -> tuple[Word, ...]:
    address = start.inbound.address
    found = await store.answered(address.connector, start.inbound.platform_id)
    if found is None:
        return ()  # not a stored message
    row = found.message
    place = start.inbound.copy_of or row.number
    ear = Ear(
        agent=persona.name,
        thread=address.thread,
        answered=frozenset(start.answered),
        place=place,
        at=row.at,
        agents=persona.everybody,
    )
    stream = f"{address.connector}/{address.chat}"
    exchanges = await recent(store, stream, row.number, ear, most)
    said = overheard(exchanges, ear, most)
    if not start.inbound.chain.turns:
        return said
    # The answer that calls it was said in the chat, and is the very question.
    question = (start.inbound.sender_name, start.inbound.text)
    return tuple(word for word in said if (word.name, word.text) != question)


async def recent(
    store: Store, stream: str, before: int, ear: Ear, most: int
) -> list[Exchange]:
    """Read a chat back to where the agent last answered, or far enough.

    Raises:
        StoreError: the disk fails.
    """
    exchanges: list[Exchange] = []
    for _ in range(MOST_PAGES):
        rows = await store.exchanges(stream, before, PAGE)
        exchanges += (each for row in rows if (each := read(row)) is not None)
        is_reached = last_turn(exchanges, ear)[0] > 0 or len(rows) < PAGE
        if is_reached or len(overheard(exchanges, ear, most)) == most:
            break
        before = rows[-1].message.number
    return exchanges


def read(row: Answered) -> Exchange | None:
    """Read a message and its deliveries; None if that cannot be done."""
    message = row.message
    try:
        inbound = msgspec.json.decode(message.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        LOG.fault("message cannot be read", error, message=message.id)
        return None
    told = (read_told(each) for each in row.deliveries if each.state != "dead")
    return Exchange(
        inbound=inbound,
        number=message.number,
        at=message.at,
        told=tuple(each for each in told if each is not None),
    )


def read_told(row: StoredDelivery) -> Told | None:
    """Read a delivery; None if that cannot be done."""
    try:
        return Told(msgspec.json.decode(row.body, type=Delivery), row.at)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        LOG.fault("delivery cannot be read", error, delivery=row.id)
        return None
