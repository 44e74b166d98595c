"""Stores reply windows: whom an agent answered in a group lately.

An open window lets a person go on without calling the agent again. There is one entry
for each agent, chat, thread and person, stored in the commit of the answer, so no crash
comes between the two. The router keeps the windows in memory; it is told of each
answer, and deletes the entries of windows that are over.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors.agents.persona import Persona
from actors.journal.answers import Answer
from actors.messages.inbound import Inbound
from actors.messages.keys import SessionKey, chat_partition, parse_key
from actors.protocol import Replied
from actors.rules.groups.reply_windows import (
    KIND,
    PersonInChat,
    ReplyWindows,
    key_of,
    place_of,
)
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry
from runtime.telemetry.logs import EventLog

LOG = EventLog("router")

PAGE = 1000
EMPTY = b"{}"
"""The entry's own time is all that is needed."""


def opens_window(inbound: Inbound) -> bool:
    """Whether an answer to this message opens a window: it is a person's in a group."""
    is_asked_by_agent = bool(inbound.chain.agents or inbound.occasion)
    return not (inbound.is_direct or inbound.is_bot or is_asked_by_agent)


def with_window(answer: Answer, persona: Persona) -> Answer:
    """Add the entry that opens a window to an answer, if it opens one."""
    inbound = answer.inbound
    is_answer = answer.settled == ("replied", "ok") and answer.put_off is None
    length = persona.config.groups.reply_window
    if not (is_answer and length and opens_window(inbound)):
        return answer
    entry = _entry(key_of(persona.name, place_of(inbound)), EMPTY)
    carried = msgspec.structs.replace(
        answer.carried, entries=(*answer.carried.entries, entry)
    )
    return msgspec.structs.replace(answer, carried=carried)


def replied(answer: Answer, agent: str, at: float) -> Replied | None:
    """Give the message to the router about a stored answer that opens a window."""
    for entry in answer.carried.entries:
        if entry.kind == KIND:
            return Replied(answer.inbound, agent, at)
    return None


async def read(store: Store) -> tuple[ReplyWindows, tuple[SessionKey, ...]]:
    """Read the open windows, and the keys of those that are too many to keep.

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
    found.sort(key=lambda each: each[0])  # the newest last
    windows = ReplyWindows()
    dropped: list[SessionKey] = []
    for at, key in found:
        place = PersonInChat(key.connector, key.chat, key.thread, key.sender)
        dropped += windows.answered(key.agent, place, at)
    return windows, tuple(dropped)


def as_deletion(keys: Iterable[SessionKey], now: float) -> Commit:
    """Make the commit that deletes windows.

    A person who is answered at this very moment may have to call the agent once more
    after a restart; until then the router knows the new window.
    """
    return Commit(
        at=now, entries=tuple(_entry(key, None) for key in keys), may_wait=True
    )


def _entry(key: SessionKey, body: bytes | None) -> Entry:
    part = chat_partition(key.connector, key.chat)
    return Entry(kind=KIND, id=key.text, owner=key.agent, part=part, body=body)
