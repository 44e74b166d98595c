"""What agents say to each other about working with each other."""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.messages import Inbound, SentFile
from actors.rules.keys import SessionKey
from actors.rules.pairs import Exchange, Pair, PairState


class MayWork(msgspec.Struct, frozen=True):
    """To `collaboration`, asked: may these be? A `Ruling` for each, in order."""

    exchanges: tuple[Exchange, ...]


class KnownPairs(msgspec.Struct, frozen=True):
    """A note of `collaboration` to its next incarnation."""

    states: dict[Pair, PairState]


class Consult(msgspec.Struct, frozen=True, kw_only=True):
    """To a consultant, asked: answer a colleague; nobody else reads it.

    Asked with the same message again it gives the same answer, if that is known.
    """

    inbound: Inbound
    """The question: who asks it, for whom, by when. Its id is the consultation's."""

    source: str
    """Who asks."""

    session: str
    """The consultation that it goes on with, or begins."""

    is_new: bool
    """Whether it may begin it."""

    attempt: int = 1
    """Which start of the asker's turn it is."""


class CancelConsult(msgspec.Struct, frozen=True):
    """To a consultant: nobody waits for this answer any more."""

    inbound_id: str


Outcome = Literal[
    "ok",
    "late",
    "failed",
    "cancelled",
    "busy",
    "unknown_session",
    "session_full",
]


class Consultancy(msgspec.Struct, frozen=True):
    """What became of one question."""

    outcome: Outcome
    text: str = ""
    """The answer, or why there is none."""

    is_done: bool = False
    """Whether whoever answered has nothing more to say (F265)."""

    files: tuple[SentFile, ...] = ()
    """What goes out with the answer of whoever asked."""


def book_key(inbound: Inbound, agent: str, source: str) -> SessionKey:
    """Name the book of two agents for one person in one chat.

    Args:
        inbound: says which person, and which chat.
        agent: who is asked.
        source: who asks.
    """
    address = inbound.address
    return SessionKey(
        agent=agent,
        connector=address.connector,
        chat=address.chat,
        # Why an arrow: no platform calls a thread so.
        thread=f"\N{LEFTWARDS ARROW}{source}/{address.thread}",
        sender=inbound.sender_id,
    )
