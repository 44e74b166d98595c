"""Messages between agents about working together."""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.delegation.pairs import Pair, PairExchange, PairState
from actors.messages.inbound import Inbound, SentFile
from actors.messages.keys import SessionKey


class MayWork(msgspec.Struct, frozen=True):
    """To `collaboration`, asked: may these exchanges be? One `PairRuling` each."""

    exchanges: tuple[PairExchange, ...]


class KnownPairs(msgspec.Struct, frozen=True):
    """What a restarted `collaboration` takes over: the counts of all pairs."""

    states: dict[Pair, PairState]


class Consult(msgspec.Struct, frozen=True, kw_only=True):
    """To a consultant, asked: answer a colleague; people do not see it.

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


class ConsultationResult(msgspec.Struct, frozen=True):
    """The result of one question."""

    outcome: Outcome
    text: str = ""
    """The answer, or why there is none."""

    is_done: bool = False
    """Whether the answering agent has nothing more to say."""

    files: tuple[SentFile, ...] = ()
    """Files to send with the asking agent's answer."""


def book_key(inbound: Inbound, agent: str, source: str) -> SessionKey:
    """Name the book of two agents for one person in one chat."""
    address = inbound.address
    return SessionKey(
        agent=agent,
        connector=address.connector,
        chat=address.chat,
        # Why an arrow: no platform calls a thread so.
        thread=f"\N{LEFTWARDS ARROW}{source}/{address.thread}",
        sender=inbound.sender_id,
    )
