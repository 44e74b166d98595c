"""One compaction, flush or reset of a conversation, and the event that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from actors.config.sessions import CompactionConfig
from actors.journal.answers import ChapterEntry
from actors.journal.history import (
    Chapter,
    Compacted,
    Flushed,
    History,
    Reset,
    ResetReason,
)
from actors.messages.inbound import Inbound, TranscriptLine
from actors.messages.keys import parse_key
from actors.protocol import Condensed
from actors.rules.prompt import compaction
from actors.rules.prompt.compaction import Trigger
from runtime.actor.reply import Reply
from runtime.actor.timers import Timer


class RewritingOverdue(msgspec.Struct, frozen=True):
    """Timer of a session: the condenser should have reported by now."""

    id: str


@dataclass(slots=True)
class Rewriting:
    """What a session keeps while it waits for a condenser, and then for the disk."""

    id: str
    """The id of its event."""

    sender_id: str
    """Who pays for it; empty: no person does."""

    correlation_id: str
    """Of the message that caused it; empty: none did."""

    began_at: float
    """Seconds on the monotonic clock."""

    lines: tuple[TranscriptLine, ...]
    """The lines of the conversation when it began."""

    messages: int
    """How many lines the conversation had by then, those not kept included."""

    resets: int
    """How many conversations had ended by then."""
    what: Literal["compaction", "flush", "reset"] = "compaction"
    turn_id: str = ""
    """The turn that waits for a compaction, which runs by its permit."""

    trigger: Trigger = "tokens"
    must: bool = False
    """Whether lines are cut if there is no summary: the model takes no more."""

    kept_from: int = 0
    """Index of the first line that stays word for word."""

    reason: ResetReason = "command"
    command: Inbound | None = None
    """The command that asked for a reset; it is answered when the reset is stored."""

    told: str = ""
    """The answer to that command."""

    is_stored: bool = False
    """Whether it is being stored; then it cannot be called off."""

    waiting: list[Reply] = field(default_factory=list["Reply"])
    timer: Timer | None = None

    def is_by(self, inbound: Inbound) -> bool:
        """Whether this command asked for the reset."""
        return self.command is not None and self.command.id == inbound.id

    def entry(self, done: Condensed, settings: CompactionConfig) -> ChapterEntry | None:
        """Give the entry to store; None: nothing came of it, and it cost nothing."""
        chapter = self._chapter(done, settings)
        is_kept = isinstance(chapter, Compacted) and chapter.outcome == "kept"
        is_failed = isinstance(chapter, Flushed) and not chapter.messages
        if (is_kept or is_failed) and done.run is None and not done.remembered:
            return None
        return ChapterEntry(
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
        """Give the event that ends the conversation."""
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
        # Where lines are too many, and not too long, a summary may be longer than they.
        is_shorter = self.trigger == "lines" or compaction.has_shrunk(
            before, done.summary, kept
        )
        if done.summary and is_shorter:
            return msgspec.structs.replace(
                told,
                outcome="summarised",
                summary=done.summary,
                messages_after=len(kept),
                tokens_after=compaction.tokens_with(done.summary, kept),
            )
        cut = compaction.truncated(lines, settings.cut_lines, settings.cut_chars)
        after = compaction.tokens_of(cut)
        # Without a summary, lines that the model may still take are kept.
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
    """Begin a rewriting of the conversation as it is now.

    Args:
        history: the conversation.
        rewriting_id: a new id, for its event.
        inbound: the message that causes it, if one does.
        now: seconds on the monotonic clock.
    """
    return Rewriting(
        id=rewriting_id,
        # Why not the message's: of what a group says it is only the last.
        sender_id=parse_key(history.stream).sender,
        correlation_id="" if inbound is None else inbound.correlation_id,
        began_at=now,
        lines=history.lines,
        messages=history.said,
        resets=history.counted.resets,
    )
