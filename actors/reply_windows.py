"""Whom an agent answered in a group, over restarts: written with the answer itself.

One entry for each agent, chat, thread and person. Why an entry in the answer's own
commit, and not a file written now and then (F069): there is no timer, no second writer,
nothing to lose between the answer and the writing, and no more to read at the start
than what is open. The router keeps them in memory, is told of each answer, and takes
away again what is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.protocol import Replied
from actors.rules.keys import chat_partition, parse_key
from actors.rules.windows import KIND, Place, Windows, key_of, place_of
from runtime.entries import Entry
from runtime.logs import EventLog
from runtime.rows import Commit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.answers import Answer
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.keys import SessionKey
    from runtime.store import Store

LOG = EventLog("router")

PAGE = 1000
EMPTY = b"{}"
"""All there is to know is when: the entry's own time."""


def is_opened_by(inbound: Inbound) -> bool:
    """Whether an answer to this keeps a conversation open: a person's in a group."""
    is_asked_by_agent = bool(inbound.chain.agents or inbound.occasion)
    return not (inbound.is_direct or inbound.is_bot or is_asked_by_agent)


def opened(answer: Answer, persona: Persona) -> Answer:
    """Have an answer in a group keep it open for whoever asked (F068)."""
    inbound = answer.inbound
    is_answer = answer.settled == ("replied", "ok") and answer.put_off is None
    length = persona.config.groups.reply_window
    if not (is_answer and length and is_opened_by(inbound)):
        return answer
    entry = _entry(key_of(persona.name, place_of(inbound)), EMPTY)
    carried = msgspec.structs.replace(
        answer.carried, entries=(*answer.carried.entries, entry)
    )
    return msgspec.structs.replace(answer, carried=carried)


def told(answer: Answer, agent: str, at: float) -> Replied | None:
    """Say what the router must know of an answer that is stored."""
    if any(entry.kind == KIND for entry in answer.carried.entries):
        return Replied(answer.inbound, agent, at)
    return None


async def read(store: Store) -> tuple[Windows, tuple[SessionKey, ...]]:
    """Read what is open, and which of it is too much to be kept.

    Raises:
        StoreError: the disk fails.
    """
    found: list[tuple[float, SessionKey]] = []
    after = ""
    while True:
        rows = await store.entries(KIND, after=after, limit=PAGE)
        for row in rows:
            after = row.id
            try:
                found.append((row.at, parse_key(row.id)))
            except ValueError as error:
                LOG.fault("reply window cannot be read", error, entry=row.id)
        if len(rows) < PAGE:
            break
    found.sort(key=lambda each: each[0])  # who was answered last is last
    windows = Windows()
    dropped: list[SessionKey] = []
    for at, key in found:
        place = Place(key.connector, key.chat, key.thread, key.sender)
        dropped += windows.answered(key.agent, place, at)
    return windows, tuple(dropped)


def as_forgotten(keys: Iterable[SessionKey], now: float) -> Commit:
    """Write down that windows are over.

    Whoever is answered at this very moment may have to call the agent once more after a
    restart; until then the window is known.
    """
    return Commit(
        at=now, entries=tuple(_entry(key, None) for key in keys), may_wait=True
    )


def _entry(key: SessionKey, body: bytes | None) -> Entry:
    part = chat_partition(key.connector, key.chat)
    return Entry(kind=KIND, id=key.text, owner=key.agent, part=part, body=body)
