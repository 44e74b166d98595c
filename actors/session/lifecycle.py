"""How long a conversation lasts, and how much of it is kept word for word.

A compaction puts a summary in the place of the older lines of a conversation that grows
too long. A flush looks for facts to remember in its newest lines. A reset ends the
conversation. A condenser makes the model calls of all three (each is a `Rewriting`);
the session stores each result as one event, together with the facts.

At most one of the three is under way in a session. Turns go on meanwhile, but no turn
begins before a reset is stored.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from actors import names
from actors.config.sessions import CompactionConfig
from actors.journal import answers
from actors.journal.answers import Aside, ChapterEntry, PendingMessage
from actors.journal.history import (
    Chapter,
    Compacted,
    Flushed,
    History,
    Reset,
    ResetReason,
)
from actors.messages.expiry import Expired, expired
from actors.messages.inbound import Inbound, TranscriptLine
from actors.messages.keys import parse_key
from actors.protocol import (
    CancelCondense,
    Condense,
    Condensed,
    DropConversation,
    EndIfExpired,
    Outcome,
    PromptShortened,
    ShortenPrompt,
)
from actors.rules.prompt import compaction
from actors.rules.prompt.compaction import MOST_SUMMARIES, Trigger, kept_from
from actors.rules.text import durations as spans
from actors.services import Services
from actors.session.attempt import Attempt
from actors.session.outbox import AnswerConcluded, EntryConcluded
from runtime.actor.actor import Actor
from runtime.actor.reply import Reply
from runtime.actor.timers import Timer
from runtime.telemetry.logs import EventLog


class RewritingOverdue(msgspec.Struct, frozen=True):
    """Timer of a session: the condenser should have reported by now."""

    id: str


class Rewriting(msgspec.Struct):
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

    waiting: list[Reply] = msgspec.field(default_factory=list["Reply"])
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


def begin_rewriting(
    history: History, rewriting_id: str, inbound: Inbound | None, now: float
) -> Rewriting:
    """Begin a rewriting of the conversation as it is now.

    Args:
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


LOG = EventLog("session")

# Chosen: a condenser ends by itself when its time is over. If it has not reported by
# then, it broke, or it got no permit.
GRACE = 10.0
"""Seconds that a condenser may take beyond its time."""

LOOK_AGAIN = 1.0
"""Seconds until the session checks again whether a conversation can end."""

RETRY_AFTER = 300.0
"""Seconds until a compaction that failed is tried again, unless it is urgent."""

SUMMED_UP = "[Summary of what was said before these lines: {text}]"

NEW_DAY = "🌅 This is a new conversation: a new day has begun since your last words."
LONG_AGO = "⏱ This is a new conversation: nothing was said here for {time} or longer."

NEVER = -math.inf


PastMessage = (
    Condensed | RewritingOverdue | ShortenPrompt | EndIfExpired | DropConversation
)
"""Messages about compactions, flushes and resets."""


class BeginWaiting(msgspec.Struct, frozen=True):
    """Begin the message that waited for the end of the last conversation."""


Step = answers.Answer | answers.ChapterEntry | BeginWaiting
"""What the session does next: store this, or begin what waits."""


class Lifecycle:
    """The compactions, flushes and resets of one conversation.

    Each method gets the session as an argument. A lifecycle that kept it would make a
    reference cycle of every session, which only the collector frees.
    """

    __slots__ = (
        "_agent",
        "_expiry",
        "_history",
        "_no_compaction_before",
        "_no_end_before",
        "_no_flush_below",
        "_services",
        "must_end",
        "under_way",
    )

    def __init__(self, history: History, agent: str, services: Services) -> None:
        self._history = history
        self._agent = agent
        self._services = services
        self._expiry: Timer | None = None
        self._no_compaction_before = NEVER  # monotonic seconds
        self._no_end_before = NEVER  # monotonic seconds
        self._no_flush_below = 0  # lines
        self.under_way: Rewriting | None = None
        """The compaction, flush or reset that is not finished yet."""

        self.must_end = False
        """Whether the conversation is forgotten as soon as nothing runs here."""

    @property
    def is_resetting(self) -> bool:
        """Whether the conversation is about to end; no turn may begin before."""
        return self.under_way is not None and self.under_way.what == "reset"

    def on(
        self,
        message: PastMessage,
        session: Actor,
        current: Attempt | None,
        *,
        is_busy: bool,
    ) -> Step | None:
        """Shorten the conversation, end it, or take a condenser's result.

        Args:
            current: the attempt that runs.
            is_busy: whether anything runs or waits in the session.
        """
        match message:
            case ShortenPrompt():
                reply = session.defer_reply()
                if reply is None:
                    return None
                return self._shorten(message, reply, current, session)
            case Condensed():
                return self._condensed(message)
            case RewritingOverdue(id=lost):
                return self._lost(lost, session)
            case EndIfExpired():
                why = None if is_busy else self.expired()
                return None if why is None else self.end(why, session)
            case DropConversation():
                return self._end_now(session, is_busy=is_busy)

    # --- compaction --------------------------------------------------------------

    def _shorten(
        self,
        wanted: ShortenPrompt,
        reply: Reply,
        current: Attempt | None,
        session: Actor,
    ) -> Step | None:
        """Begin a compaction for a turn whose request is too long.

        Args:
            reply: answered with `PromptShortened` when the compaction is stored.
            current: the attempt that runs.
        """
        work = self.under_way
        if work is not None and work.what == "compaction":
            work.must = work.must or wanted.must
            work.waiting.append(reply)
            return None
        now = self._services.clock.monotonic()
        is_ours = current is not None and current.id == wanted.turn_id
        may_begin = wanted.must or now >= self._no_compaction_before
        if current is None or not (is_ours and may_begin and self._history.lines):
            # Why before `call_off`: a stopped turn may ask while a reset is under way.
            reply.offer(self._shortened("kept"))
            return None
        self.call_off(session)
        settings = self._services.compaction
        work = self._new(current.inbound)
        work.trigger, work.must = wanted.trigger, wanted.must
        work.turn_id = wanted.turn_id
        work.kept_from = kept_from(work.lines, settings.keep_lines)
        work.waiting.append(reply)
        old = (*self._oldest_summary(), *work.lines[: work.kept_from])
        return self._order(work, old, session, within=settings.timeout)

    def _oldest_summary(self) -> tuple[TranscriptLine, ...]:
        """Give the summary that the next one pushes out, so that the next holds it."""
        summaries = self._history.summaries
        if len(summaries) < MOST_SUMMARIES:
            return ()
        return (TranscriptLine("user", SUMMED_UP.format(text=summaries[0].text)),)

    def call_off_compaction(self, turn_id: str, session: Actor) -> None:
        """Drop a compaction that uses a turn's permit if that turn has ended."""
        if self.under_way is not None and self.under_way.turn_id == turn_id:
            self.call_off(session)

    def _shortened(self, outcome: Outcome) -> PromptShortened:
        history = self._history
        summaries = tuple(each.text for each in history.summaries)
        return PromptShortened(outcome, history.lines, history.earlier, summaries)

    # --- flush -------------------------------------------------------------------

    def flush_if_due(self, inbound: Inbound, session: Actor) -> Step | None:
        """Begin a flush of the newest lines, if there are enough; nobody waits for it.

        Args:
            inbound: the message that was answered last.
        """
        if self._services.remember is None or self.under_way is not None:
            return None
        settings, unflushed = self._services.compaction, self._history.unflushed
        least = max(settings.flush_after, self._no_flush_below)
        if not 0 < least <= unflushed:
            return None
        lines = self._history.lines
        work = self._new(inbound)
        work.what = "flush"
        newest = lines[max(0, len(lines) - unflushed) :]
        return self._order(work, newest, session, within=settings.timeout)

    # --- reset -------------------------------------------------------------------

    def expired(self) -> Expired | None:
        """Say why the conversation is over by now; None: it goes on."""
        services, counted = self._services, self._history.counted
        if counted.is_closed or services.sessions.expiry == "none":
            return None
        if services.clock.monotonic() < self._no_end_before:
            return None
        now, rule = services.sure_clock.wall(), services.sessions.rule
        return expired(counted.last_at, now, rule, services.zone)

    def end(
        self,
        reason: ResetReason,
        session: Actor,
        inbound: Inbound | None = None,
        *,
        by: PendingMessage | None = None,
        flushes: bool = True,
    ) -> Step | None:
        """End the conversation; if there is a memory, its facts are stored first.

        Args:
            inbound: the message that causes it, if one does.
            by: the command that asks for it, which is answered with the reset; None:
                the message is answered later.
            flushes: whether facts may be stored first.
        """
        self.call_off(session)
        sessions, counted = self._services.sessions, self._history.counted
        work = self._new(inbound)
        work.what, work.reason = "reset", reason
        if by is not None:
            work.command, work.told = by.inbound, by.told
            work.sender_id = by.inbound.sender_id
        is_new = counted.is_closed or not counted.message_count
        has_memory = self._services.remember is not None
        flushes = flushes and sessions.flush_before_reset
        if by is not None:
            flushes = flushes and by.flushes
        if has_memory and flushes and not is_new:
            within = sessions.flush_timeout
            return self._order(work, work.lines, session, within=within)
        self.under_way = work
        return self._condensed(Condensed(id=work.id))

    def _end_now(self, session: Actor, *, is_busy: bool) -> Step | None:
        """Forget the conversation, now or when nothing runs in the session."""
        counted = self._history.counted
        self.must_end = is_busy
        if is_busy:
            session.after(LOOK_AGAIN, DropConversation())
        elif counted.message_count and not counted.is_closed:
            return self.end("command", session, flushes=False)
        return None

    def notice_of_reset(self, inbound: Inbound) -> Aside | None:
        """Give the notice that a conversation has expired; None: nobody needs it."""
        sessions, ended = self._services.sessions, self._history.ended
        account = self._services.accounts[inbound.address.connector]
        sees = account.abilities.shows_asides and not inbound.chain.agents
        if ended is None or not (sees and sessions.tell_reset):
            return None
        long = spans.lasting(sessions.rule.idle_after)
        text = LONG_AGO.format(time=long) if ended == "idle" else NEW_DAY
        return answers.aside(inbound, "reset", text)

    def watch_the_time(self, session: Actor) -> None:
        """Set the timer of the expiry, if the session is still awake by then."""
        sessions = self._services.sessions
        if sessions.expiry not in {"idle", "both"}:
            return
        idle = sessions.rule.idle_after
        if idle <= sessions.idle_after:
            if self._expiry is not None:
                self._expiry.cancel()
            self._expiry = session.after(idle, EndIfExpired())

    # --- what comes of it ----------------------------------------------------------

    def _new(self, inbound: Inbound | None) -> Rewriting:
        services = self._services
        now = services.clock.monotonic()
        return begin_rewriting(self._history, services.ids.new(), inbound, now)

    def _order(
        self,
        work: Rewriting,
        lines: tuple[TranscriptLine, ...],
        session: Actor,
        *,
        within: float,
    ) -> Step | None:
        """Send an order to a condenser."""
        self.under_way = work
        order = Condense(
            id=work.id,
            session=session.actor_ref,
            conversation=self._history.stream,
            sender_id=work.sender_id,
            correlation_id=work.correlation_id or work.id,
            is_group=self._history.counted.is_group,
            lines=lines,
            newer=len(work.lines) - work.kept_from if work.what == "compaction" else 0,
            version=self._history.version,
            wants_facts=True,
            wants_summary=work.what != "flush",
            within=within,
            has_permit=work.what == "compaction",
        )
        work.timer = session.after(within + GRACE, RewritingOverdue(work.id))
        if session.tell(names.agent(self._agent), order):
            return None
        return self._condensed(Condensed(id=work.id, failure="lost"))

    def _pending(self, rewriting_id: str) -> Rewriting | None:
        """Give what is under way, if it has this id and no result yet."""
        work = self.under_way
        is_pending = work is not None and work.id == rewriting_id and not work.is_stored
        return work if is_pending else None

    def _lost(self, rewriting_id: str, session: Actor) -> Step | None:
        """Go on without a condenser that should have reported by now."""
        if self._pending(rewriting_id) is None:
            return None
        session.tell(names.agent(self._agent), CancelCondense(rewriting_id))
        return self._condensed(Condensed(id=rewriting_id, failure="lost"))

    def _condensed(self, done: Condensed) -> Step | None:
        """Take a condenser's result; give what is to be stored."""
        work = self._pending(done.id)
        if work is None:
            return None  # called off meanwhile
        if work.timer is not None:
            work.timer.cancel()
        if done.failure:
            LOG.warning("not summed up", what=work.what, reason=done.failure)
        work.is_stored = True
        if work.command is not None:
            reset = work.reset(done)
            told = answers.notice(work.command, work.told, ("replied", "command"))
            return msgspec.structs.replace(told, ends=reset, remembered=done.remembered)
        entry = work.entry(done, self._services.compaction)
        return self._finish(work, "failed") if entry is None else entry

    def entered(self, entered: EntryConcluded) -> Step | None:
        """Go on after the event is stored, or never can be."""
        work = self.under_way
        if work is None or entered.entry.chapter.id != work.id:
            return None  # an earlier incarnation's
        match entered.event:
            case Compacted(outcome=outcome):
                return self._finish(work, outcome)
            case None | Flushed(messages=0):
                return self._finish(work, "failed")
            case Flushed() | Reset():
                return self._finish(work, "ok")
            case _:
                raise AssertionError("unreachable: no other event is entered")

    def concluded(self, concluded: AnswerConcluded) -> bool:
        """Go on after an answer is stored; give whether it was to a reset's command."""
        work = self.under_way
        if work is None or not work.is_by(concluded.answer.inbound):
            return False
        is_stored = concluded.is_own and concluded.answer.ends is not None
        self._finish(work, "ok" if is_stored else "failed")
        return True

    def _finish(self, work: Rewriting, outcome: Outcome) -> Step | None:
        """Count how it ended, and answer the turns that wait for it."""
        self.under_way = None
        services, now = self._services, self._services.clock.monotonic()
        causes = {"compaction": work.trigger, "reset": work.reason, "flush": "lines"}
        cause = causes[work.what]
        seconds = now - work.began_at
        services.metrics.rewritings.observe(seconds, work.what, cause, outcome)
        LOG.info(
            "past rewritten",
            agent=self._agent,
            what=work.what,
            cause=cause,
            outcome=outcome,
            seconds=round(seconds, 4),
        )
        if work.what == "compaction" and outcome in {"kept", "failed"}:
            self._no_compaction_before = now + RETRY_AFTER
        if work.what == "reset" and outcome != "ok":
            # The reset can never be stored. The old conversation goes on for a while;
            # otherwise no turn would ever begin.
            self._no_end_before = now + RETRY_AFTER
        if work.what == "flush":
            again = self._history.unflushed + services.compaction.flush_after
            self._no_flush_below = 0 if outcome == "ok" else again
        for reply in work.waiting:
            reply.offer(self._shortened(outcome))
        return BeginWaiting() if work.what == "reset" and work.command is None else None

    def call_off_by(self, inbound: Inbound, session: Actor) -> None:
        """Drop the reset that this command asked for: somebody stopped it."""
        if self.under_way is not None and self.under_way.is_by(inbound):
            self.call_off(session)

    def call_off(self, session: Actor) -> None:
        """Drop what is under way, unless it is on its way to the disk."""
        work = self.under_way
        if work is None or work.is_stored:
            return
        self.under_way = None
        if work.timer is not None:
            work.timer.cancel()
        session.tell(names.agent(self._agent), CancelCondense(work.id))
        for reply in work.waiting:
            reply.offer(self._shortened("kept"))
