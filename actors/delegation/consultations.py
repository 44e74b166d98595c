"""What two agents have said to each other behind the scenes; pure.

One book is for one agent that is asked, one that asks it, one chat and one person: what
stands in it reaches nobody else, since there is no way to name another book. Its
consultations are known by ids, and bounded in number, in length and in age.
"""

from __future__ import annotations

import msgspec

from actors.messages.inbound import SentFile, TranscriptLine
from actors.messages.usage import Run


class Consulted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `consulted`: a colleague asked something, and what became of it."""

    inbound_id: str
    """Of the question: the same when it is asked again."""

    session: str
    """Which consultation it belongs to."""

    sender_id: str = ""
    """The person it goes back to, on whose account it stands."""

    source: str = ""
    """Who asked."""

    asked: str
    said: str = ""
    state: str = "replied"
    """`replied`, `cancelled` or `dead`."""

    reason: str = "ok"
    is_done: bool = False
    """Whether there is nothing more to be said."""

    run: Run | None = None
    files: tuple[SentFile, ...] = ()
    """Files that it sent, for the asking agent to pass on."""


class ConsultationLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a book of consultations holds."""

    max_sessions: int
    max_exchanges: int
    max_age: float
    """Seconds."""


class Consultation(msgspec.Struct, frozen=True):
    """One consultation, from the question to its result."""

    events: tuple[Consulted, ...] = ()
    last_at: float = 0.0
    """Unix seconds of its last answer."""

    def lines(self, answerer: str) -> tuple[TranscriptLine, ...]:
        """Give it as the one who is asked sees it."""
        return tuple(
            line
            for each in self.events
            for line in (
                TranscriptLine("user", each.asked, name=each.source),
                TranscriptLine("assistant", each.said, name=answerer),
            )
        )


class ConsultationBook:
    """The consultations of two agents, for one person in one chat."""

    def __init__(self, terms: ConsultationLimits) -> None:
        self._terms = terms
        self.consultations: dict[str, Consultation] = {}
        """By id; the one longest ago first."""

    def copy(self) -> ConsultationBook:
        """Give another one that says the same."""
        other = ConsultationBook(self._terms)
        other.consultations.update(self.consultations)
        return other

    def take(self, event: Consulted, at: float) -> None:
        """Take up what happened at `at` (Unix seconds); only answers are kept."""
        if event.state != "replied":
            return
        known = self.consultations.pop(event.session, Consultation())
        events = (*known.events, event)[-self._terms.max_exchanges :]
        self.consultations[event.session] = Consultation(events, at)
        while len(self.consultations) > self._terms.max_sessions:
            del self.consultations[next(iter(self.consultations))]

    def answer(self, inbound_id: str) -> Consulted | None:
        """Give what was answered to a question before, if it is still known."""
        for known in self.consultations.values():
            for event in known.events:
                if event.inbound_id == inbound_id:
                    return event
        return None

    def find(self, session: str, now: float) -> Consultation | None:
        """Give a consultation that may be gone on with at `now` (Unix seconds)."""
        known = self.consultations.get(session)
        if known is None or now - known.last_at > self._terms.max_age:
            return None
        return known

    def is_full(self, known: Consultation) -> bool:
        """Whether nothing more may be asked in it."""
        return len(known.events) >= self._terms.max_exchanges
