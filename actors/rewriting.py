"""One compaction, flush or reset under way: what it is about, and what it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.answers import Entry
from actors.chapters import Compacted, Flushed, Reset
from actors.rules import compaction
from actors.rules.keys import parse_key

if TYPE_CHECKING:
    from actors.chapters import Chapter, ResetReason
    from actors.condensing import Condensed
    from actors.history import History
    from actors.messages import Inbound, Line
    from actors.rules.compaction import Trigger
    from actors.session_config import CompactionConfig
    from runtime.reply import Reply
    from runtime.timers import Timer


class RewritingLost(msgspec.Struct, frozen=True):
    """A note to the session: this should have been done by now."""

    id: str


@dataclass(slots=True)
class Rewriting:
    """What a session keeps while it waits for a condenser, and then for the disk."""

    id: str
    """Of its event."""

    sender_id: str
    """On whose account it stands."""

    correlation_id: str
    """Of the message that brought it about; empty: none did."""

    began_at: float
    """Seconds on the clock that never goes back."""

    lines: tuple[Line, ...]
    """What the conversation had when it began."""

    messages: int
    """How many lines had been said by then."""

    resets: int
    what: Literal["compaction", "flush", "reset"] = "compaction"
    trigger: Trigger = "tokens"
    must: bool = False
    """Whether less is needed at any price."""

    kept_from: int = 0
    """Where among the lines those begin that stay word for word."""

    reason: ResetReason = "command"
    command: Inbound | None = None
    """What asked for a reset, and is answered when it is stored."""

    told: str = ""
    """The answer."""

    is_stored: bool = False
    """Whether it is on its way to the disk; it cannot be called off then."""

    waiting: list[Reply] = field(default_factory=list["Reply"])
    timer: Timer | None = None

    def is_by(self, inbound: Inbound) -> bool:
        """Whether this command asked for it."""
        return self.command is not None and self.command.id == inbound.id

    def entry(self, done: Condensed, settings: CompactionConfig) -> Entry | None:
        """Say what is to be stored; None: nothing has come of it, nor was spent."""
        chapter = self._chapter(done, settings)
        is_kept = isinstance(chapter, Compacted) and chapter.outcome == "kept"
        is_failed = isinstance(chapter, Flushed) and not chapter.messages
        if (is_kept or is_failed) and done.run is None and not done.remembered:
            return None
        return Entry(
            chapter=chapter,
            messages=self.messages,
            resets=self.resets,
            remembered=done.remembered,
        )

    def _chapter(self, done: Condensed, settings: CompactionConfig) -> Chapter:
        match self.what:
            case "compaction":
                return self._compacted(done, settings)
            case "flush":
                return Flushed(
                    id=self.id,
                    messages=0 if done.failure else self.messages,
                    sender_id=self.sender_id,
                    run=done.run,
                )
            case "reset":
                return self.reset(done)

    def reset(self, done: Condensed) -> Reset:
        """Give the event of a conversation that has ended."""
        return Reset(
            id=self.id,
            reason=self.reason,
            summary=done.summary,
            messages=self.messages,
            sender_id=self.sender_id,
            run=done.run,
        )

    def _compacted(self, done: Condensed, settings: CompactionConfig) -> Compacted:
        lines, before = self.lines, compaction.tokens_of(self.lines)
        kept = lines[self.kept_from :]
        told = Compacted(
            id=self.id,
            trigger=self.trigger,
            outcome="kept",
            messages_before=len(lines),
            tokens_before=before,
            sender_id=self.sender_id,
            run=done.run,
        )
        if done.summary and compaction.has_shrunk(before, done.summary, kept):
            return msgspec.structs.replace(
                told,
                outcome="summarised",
                summary=done.summary,
                messages_after=len(kept),
                tokens_after=compaction.tokens_with(done.summary, kept),
            )
        cut = compaction.truncated(lines, settings.cut_lines, settings.cut_chars)
        after = compaction.tokens_of(cut)
        # Without a summary nothing is given up that the model may still take.
        if after >= before or not (done.summary or self.must):
            return told
        return msgspec.structs.replace(
            told,
            outcome="truncated",
            messages_after=len(cut),
            tokens_after=after,
            cut_to=settings.cut_chars,
        )


def begin(
    history: History, rewriting_id: str, inbound: Inbound | None, now: float
) -> Rewriting:
    """Begin one, with the conversation as it is.

    Args:
        history: the conversation.
        rewriting_id: a new one, for its event.
        inbound: the message that brings it about, if one does; on its sender's
            account it stands.
        now: seconds on the clock that never goes back.
    """
    own = parse_key(history.stream).sender
    return Rewriting(
        id=rewriting_id,
        sender_id=own if inbound is None else inbound.sender_id,
        correlation_id="" if inbound is None else inbound.correlation_id,
        began_at=now,
        lines=history.lines,
        messages=history.said,
        resets=history.counted.resets,
    )
