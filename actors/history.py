"""What a session knows of its past: lines for the model, and what was answered.

Pure. Rebuilt from the session's newest snapshot and the events of its journal
stream after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.ledger import Run
from actors.messages import Line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.messages import Inbound

# Chosen: answered messages remembered, to tell one that is handed in once more while
# its answer is being stored; that is a matter of seconds.
REMEMBERED = 64

# Chosen: a wake-up reads at most so many events after its snapshot, some two
# milliseconds' worth; a snapshot is as long as a prompt's history.
SNAPSHOT_EVERY = 50

SCHEMA = 1
"""Version of `Snapshotted`; raised when its shape changes. Snapshots of another
version are passed over."""

NONE_REPORTED: Mapping[str, int] = {}

CHARACTERS_PER_TOKEN = 4
"""Source: what every estimate in this field divides by."""


class Exchanged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `exchanged`: what was asked and what was answered."""

    inbound_id: str
    lines: tuple[Line, ...] = ()
    """What the model will see of it; nothing for commands and refusals."""

    sender_id: str = ""
    sender_name: str = ""
    asked: str = ""
    """The words of the message, where they are not among the lines."""

    said: str = ""
    """The words of the answer, where they are not among the lines."""

    state: str = "replied"
    reason: str = "ok"
    run: Run | None = None
    """The turn behind it; None if no model was asked."""

    resume: str = ""
    """By which the model may go on where this left off (F217)."""


class Deferred(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Event `deferred`: a turn failed and will be begun again."""

    inbound_id: str
    sender_id: str = ""
    reason: str
    text: str
    due_at: float
    """Unix seconds."""

    run: Run | None = None


class Conversation(msgspec.Struct, frozen=True):
    """The counters of one conversation (F104, F105)."""

    message_count: int = 0
    """Lines of people and of agents."""

    tokens: int = 0
    """Estimated from the characters of these lines."""

    started_at: float = 0.0
    """Unix seconds."""

    last_at: float = 0.0
    """Unix seconds."""

    def plus(self, lines: tuple[Line, ...], at: float) -> Conversation:
        """Count further lines."""
        tokens = sum(estimate_tokens(line.text) for line in lines)
        return Conversation(
            self.message_count + len(lines),
            self.tokens + tokens,
            self.started_at or at,
            at,
        )


class Snapshotted(msgspec.Struct, frozen=True):
    """The body of a session's snapshot."""

    lines: tuple[Line, ...]
    answered: tuple[str, ...]
    counted: Conversation
    reported: dict[str, int] = {}
    resume: str = ""


class History:
    """The past of one session, as far as its journal goes.

    Args:
        stream: its journal stream, which is also its key's text.
        max_history: most lines of it that a prompt holds.
    """

    __slots__ = (
        "_answered",
        "_most",
        "_reported",
        "counted",
        "lines",
        "resume",
        "stream",
        "version",
    )

    def __init__(self, stream: str, max_history: int) -> None:
        # Why twice: the prompt's rules cut by whole turns and merge lines.
        self._most = 2 * max_history + 2
        # Why no deque: an empty one is 600 bytes, and there is one for each session.
        self._answered: list[str] = []
        # Never changed, only replaced: most conversations have this one in common.
        self._reported: Mapping[str, int] = NONE_REPORTED
        self.stream = stream
        self.lines: tuple[Line, ...] = ()
        """Newest last; no more than a prompt could ever hold."""

        self.version = 0
        """Number of the journal's last event."""

        self.resume = ""
        """By which the model that answered last may go on; empty: from the lines."""

        self.counted = Conversation()

    def restore(self, sequence: int, body: bytes) -> None:
        """Take up a snapshot; the events after it come next.

        Raises:
            msgspec.DecodeError: it is none of this schema.
        """
        snapshot = msgspec.json.decode(body, type=Snapshotted)
        self.version = sequence
        self.lines = snapshot.lines[-self._most :]
        self.counted = snapshot.counted
        self._reported = snapshot.reported or NONE_REPORTED
        self.resume = snapshot.resume
        self._remember(snapshot.answered)

    def replay(self, sequence: int, kind: str, body: bytes, at: float) -> None:
        """Take up one event as the journal has it.

        Raises:
            msgspec.DecodeError: it cannot be read.
        """
        if kind == "exchanged":
            self.take(sequence, msgspec.json.decode(body, type=Exchanged), at)
        elif kind == "deferred":
            self.take(sequence, msgspec.json.decode(body, type=Deferred), at)
        else:
            self.version = sequence

    def take(self, sequence: int, event: Exchanged | Deferred, at: float) -> None:
        """Take up one event; one that was taken up before changes nothing."""
        if sequence <= self.version:
            return
        self.version = sequence
        is_dead = isinstance(event, Exchanged) and event.state == "dead"
        if isinstance(event, Deferred) or is_dead:
            # Not answered for good: it may be begun again, also by hand. Without a
            # round the run tells of none: of a turn that broke nobody knows more.
            if event.run is not None and event.run.rounds:
                self._report(event.inbound_id, event.run.attempt)
        else:
            self._forget_report(event.inbound_id)
            self._remember((event.inbound_id,))
        if isinstance(event, Exchanged) and event.lines:
            self.lines = (*self.lines, *event.lines)[-self._most :]
            self.counted = self.counted.plus(event.lines, at)
            # What failed, and what another model said, is not in its session (F220).
            self.resume = event.resume

    def resume_at(self, now: float, within: float) -> str:
        """Give `resume`, unless the last answer is too long ago.

        Args:
            now: Unix seconds.
            within: seconds.
        """
        return self.resume if now - self.counted.last_at <= within else ""

    def reported(self, inbound_id: str) -> int:
        """Give the last attempt at a message that the journal tells of; 0: none."""
        return self._reported.get(inbound_id, 0)

    def snapshot_after(self, event: Exchanged | Deferred, at: float) -> bytes | None:
        """Give the snapshot that belongs to the next event, if one is due."""
        if (self.version + 1) % SNAPSHOT_EVERY:
            return None
        then = History(self.stream, 0)
        then._most, then.version, then.lines = self._most, self.version, self.lines
        then.counted, then._reported = self.counted, self._reported
        then.resume = self.resume
        then._remember(tuple(self._answered))
        then.take(self.version + 1, event, at)
        return msgspec.json.encode(
            Snapshotted(
                then.lines,
                tuple(then._answered),
                then.counted,
                dict(then._reported),
                then.resume,
            )
        )

    def _report(self, inbound_id: str, attempt: int) -> None:
        self._forget_report(inbound_id)  # the newest last
        reported = {**self._reported, inbound_id: attempt}
        if len(reported) > REMEMBERED:
            del reported[next(iter(reported))]
        self._reported = reported

    def _forget_report(self, inbound_id: str) -> None:
        if inbound_id in self._reported:
            left = {key: n for key, n in self._reported.items() if key != inbound_id}
            self._reported = left or NONE_REPORTED

    def note_answered(self, inbound_id: str) -> None:
        """Take up that a message was answered without an event."""
        self._remember((inbound_id,))

    def _remember(self, answered: tuple[str, ...]) -> None:
        self._answered.extend(answered)
        del self._answered[:-REMEMBERED]

    def has_answered(self, inbound_id: str) -> bool:
        """Whether this message was answered, as far as that is remembered."""
        return inbound_id in self._answered

    def brought(self, inbound: Inbound) -> tuple[Line, ...]:
        """Lines that a stateless client brought along, if this is the beginning."""
        return () if self.lines else inbound.history


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a text has."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
