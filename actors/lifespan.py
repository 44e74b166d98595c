"""How long a conversation lasts, and how much of it is kept word for word.

The middle of a session, between what it hears and the turns it takes: here its past is
put into other words when it grows too long (a compaction), gone through for facts (a
flush), and ended (a reset). The calls to models are made by a condenser; what comes of
them is stored here, each as one event with all that belongs to it. One of these at a
time; turns go on meanwhile, but before a reset is stored nothing new is begun.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from actors import answers, names, rewriting
from actors.chapters import Compacted, Flushed, Reset
from actors.condensing import (
    CancelCondense,
    Condense,
    Condensed,
    EndIfOver,
    EndNow,
    Outcome,
    Shorten,
    Shortened,
)
from actors.rewriting import Rewriting, RewritingLost
from actors.rules import spans
from actors.rules.compaction import kept_from
from actors.rules.expiry import expired
from actors.turn_taker import TurnTaker
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.chapters import ResetReason
    from actors.held import Held
    from actors.ledger import Run
    from actors.messages import Inbound, Line
    from actors.outgoing import Concluded, Entered
    from actors.rules.expiry import Expired
    from runtime.timers import Timer

LOG = EventLog("session")

# Chosen: a condenser ends by itself when its time is over; then something broke, or
# there was no room for it to begin.
GRACE = 10.0

LOOK_AGAIN = 1.0
"""Seconds until it is looked again whether a conversation can end that is to."""

NEW_DAY = "🌅 This is a new conversation: a new day has begun since your last words."
LONG_AGO = "⏱ This is a new conversation: nothing was said here for {time} or longer."


Change = Condensed | RewritingLost | Shorten | EndIfOver | EndNow


class Lifespan(TurnTaker):
    """A conversation that is shortened when it grows too long, and ends in its time."""

    # Why here: most conversations never have one, and there are very many.
    _rewriting: Rewriting | None = None
    _expiry: Timer | None = None
    _no_compaction_before = -math.inf
    _no_flush_below = 0
    _no_end_before = -math.inf
    _must_end = False
    """Whether it is to be forgotten as soon as nothing runs here."""

    def _changes(self, message: Change) -> None:
        """Go on with what becomes of the past."""
        match message:
            case Shorten():
                self._shorten(message)
            case Condensed():
                self._condensed(message)
            case RewritingLost(id=lost):
                if self._is_under_way(lost):
                    self.tell(names.agent(self._persona.name), CancelCondense(lost))
                    self._condensed(Condensed(id=lost, failure="lost"))
            case EndIfOver():
                why = self._expired()
                if why is not None and not self._is_busy():
                    self._end(why)
            case EndNow():
                self._end_now()

    def _is_busy(self) -> bool:
        is_idle = self._queue.is_idle and self._rewriting is None
        return bool(self._held) or not is_idle

    # --- compaction --------------------------------------------------------------

    def _shorten(self, wanted: Shorten) -> None:
        """Make room for a turn that has too much to ask."""
        reply = self.defer_reply()
        if reply is None:
            return
        work = self._rewriting
        if work is not None and work.what == "compaction":
            work.must = work.must or wanted.must
            work.waiting.append(reply)
            return
        current, now = self._attempt, self._services.clock.monotonic()
        is_ours = current is not None and current.id == wanted.turn_id
        may_begin = wanted.must or now >= self._no_compaction_before
        if current is None or not (is_ours and may_begin and self._history.lines):
            # Why first: one that was stopped may ask when a reset is under way.
            reply.offer(self._shortened("kept"))
            return
        self._call_off()
        settings = self._services.compaction
        work = self._new(current.inbound)
        work.trigger, work.must = wanted.trigger, wanted.must
        work.kept_from = kept_from(work.lines, settings.keep_lines)
        work.waiting.append(reply)
        old = work.lines[: work.kept_from]
        self._order(work, old, within=settings.timeout)

    def _shortened(self, outcome: Outcome) -> Shortened:
        history = self._history
        summaries = tuple(each.text for each in history.summaries)
        return Shortened(outcome, history.lines, history.earlier, summaries)

    # --- what comes of it ----------------------------------------------------------

    def _new(self, inbound: Inbound | None) -> Rewriting:
        services = self._services
        now = services.clock.monotonic()
        return rewriting.begin(self._history, services.ids.new(), inbound, now)

    def _order(
        self, work: Rewriting, lines: tuple[Line, ...], *, within: float
    ) -> None:
        """Have a condenser go through some lines."""
        self._rewriting = work
        order = Condense(
            id=work.id,
            session=self.actor_ref,
            conversation=self._history.stream,
            sender_id=work.sender_id,
            correlation_id=work.correlation_id or work.id,
            is_group=self._history.counted.is_group,
            lines=lines,
            newer=len(work.lines) - len(lines) if work.what == "compaction" else 0,
            version=self._history.version,
            wants_facts=True,
            wants_summary=work.what != "flush",
            within=within,
            has_permit=work.what == "compaction",
        )
        work.timer = self.after(within + GRACE, RewritingLost(work.id))
        if not self.tell(names.agent(self._persona.name), order):
            self._condensed(Condensed(id=work.id, failure="lost"))

    def _is_under_way(self, rewriting_id: str) -> bool:
        work = self._rewriting
        return work is not None and work.id == rewriting_id and not work.is_stored

    def _condensed(self, done: Condensed) -> None:
        """Store what came of it."""
        work = self._rewriting
        if work is None or not self._is_under_way(done.id):
            return  # called off meanwhile
        if work.timer is not None:
            work.timer.cancel()
        if done.failure:
            LOG.warning("not summed up", what=work.what, reason=done.failure)
        work.is_stored = True
        if work.command is not None:
            reset = work.reset(done)
            told = answers.notice(work.command, work.told, ("replied", "command"))
            self._put(
                msgspec.structs.replace(told, ends=reset, remembered=done.remembered)
            )
        elif (entry := work.entry(done, self._services.compaction)) is not None:
            self._put(entry)
        else:
            self._finish(work, "failed")

    def _entered(self, entered: Entered) -> None:
        """Go on after what was stored."""
        work = self._rewriting
        if work is None or entered.entry.chapter.id != work.id:
            return  # an earlier incarnation's
        match entered.event:
            case Compacted(outcome=outcome):
                self._finish(work, outcome)
            case None | Flushed(messages=0):
                self._finish(work, "failed")
            case Flushed() | Reset():
                self._finish(work, "ok")
            case _:
                raise AssertionError("unreachable: no other event is entered")

    def _finish(self, work: Rewriting, outcome: Outcome) -> None:
        """Count how it ended, and let those go on who wait."""
        self._rewriting = None
        services, now = self._services, self._services.clock.monotonic()
        causes = {"compaction": work.trigger, "reset": work.reason, "flush": "lines"}
        cause = causes[work.what]
        seconds = now - work.began_at
        services.metrics.rewriting(work.what, cause, outcome, seconds)
        LOG.info(
            "past rewritten",
            agent=self._persona.name,
            what=work.what,
            cause=cause,
            outcome=outcome,
            seconds=round(seconds, 4),
        )
        if work.what == "compaction" and outcome in {"kept", "failed"}:
            self._no_compaction_before = now + services.compaction.retry_after
        if work.what == "reset" and outcome != "ok":
            # It can never be stored: the old conversation goes on, or nothing would.
            self._no_end_before = now + services.compaction.retry_after
        if work.what == "flush":
            again = self._history.unflushed + services.compaction.flush_after
            self._no_flush_below = 0 if outcome == "ok" else again
        for reply in work.waiting:
            reply.offer(self._shortened(outcome))
        if work.what == "reset" and work.command is None:
            self._go_on()

    def _call_off(self) -> None:
        """Let go of what is under way, unless it is on its way to the disk."""
        work = self._rewriting
        if work is None or work.is_stored:
            return
        self._rewriting = None
        if work.timer is not None:
            work.timer.cancel()
        self.tell(names.agent(self._persona.name), CancelCondense(work.id))
        for reply in work.waiting:
            reply.offer(self._shortened("kept"))

    # --- flush ---------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Whether enough was said to go through it for facts (F165)."""
        after = self._services.compaction.flush_after
        unflushed = self._history.unflushed
        has_memory = self._services.remember is not None
        return has_memory and 0 < max(after, self._no_flush_below) <= unflushed

    def _flush(self, inbound: Inbound) -> None:
        """Go through what was said since the last time; nobody waits for it."""
        lines = self._history.lines
        newest = lines[max(0, len(lines) - self._history.unflushed) :]
        work = self._new(inbound)
        work.what = "flush"
        self._order(work, newest, within=self._services.compaction.timeout)

    # --- the end of a conversation ----------------------------------------------------

    def _end_by(self, inbound: Inbound, told: str, *, flushes: bool) -> None:
        """End the conversation when it is this message's turn.

        Args:
            inbound: the command; it is held.
            told: what to answer when it is done.
            flushes: whether the conversation is gone through before.
        """
        held = msgspec.structs.replace(
            self._held[inbound.id], told=told, flushes=flushes
        )
        self._held[inbound.id] = held
        self._effects(self._queue.on(self._as_heard(held)))

    def _begin(self, held: Held, generation: int) -> None:
        """Begin a turn, after what has to come before it."""
        work = self._rewriting
        if work is not None and work.what == "reset":
            return  # begun when that is stored
        why = self._expired()
        if held.told:
            self._end("command", held.inbound, by=held)
        elif why is not None:
            self._end(why, held.inbound)
        else:
            self._tell_of_reset(held.inbound)
            super()._begin(held, generation)

    def _expired(self) -> Expired | None:
        services, counted = self._services, self._history.counted
        if counted.is_closed or services.sessions.expiry == "none":
            return None
        if services.clock.monotonic() < self._no_end_before:
            return None
        now, rule = services.clock.wall(), services.sessions.rule
        return expired(counted.last_at, now, rule, services.zone)

    def _end(
        self,
        reason: ResetReason,
        inbound: Inbound | None = None,
        *,
        by: Held | None = None,
        flushes: bool = True,
    ) -> None:
        """End the conversation; it is gone through before, if there is a memory.

        Args:
            reason: why.
            inbound: the message that brings it about, if one does.
            by: the command that asks for it; else the message is answered later.
            flushes: whether it may be gone through before.
        """
        self._call_off()
        sessions, counted = self._services.sessions, self._history.counted
        work = self._new(inbound)
        work.what, work.reason = "reset", reason
        if by is not None:
            work.command, work.told = by.inbound, by.told
        is_new = counted.is_closed or not counted.message_count
        has_memory = self._services.remember is not None
        flushes = flushes and sessions.flush_before_reset
        if by is not None:
            flushes = flushes and by.flushes
        if has_memory and flushes and not is_new:
            self._order(work, work.lines, within=sessions.flush_timeout)
        else:
            self._rewriting = work
            self._condensed(Condensed(id=work.id))

    def _end_now(self) -> None:
        """Forget the conversation, now or when nothing runs here."""
        counted = self._history.counted
        self._must_end = self._is_busy()
        if self._must_end:
            self.after(LOOK_AGAIN, EndNow())
        elif counted.message_count and not counted.is_closed:
            self._end("command", flushes=False)

    def _go_on(self) -> None:
        """Begin what waited for the end of the last conversation."""
        current = self._queue.current
        if current in self._held and self._may_begin(current):
            self._begin(self._held[current], self._queue.generation)

    def _tell_of_reset(self, inbound: Inbound) -> None:
        """Tell people that a conversation has ended without their doing."""
        sessions, ended = self._services.sessions, self._history.ended
        account = self._services.account(inbound.address.connector)
        sees = account.abilities.shows_asides and not inbound.chain.agents
        if ended is None or not (sees and sessions.tell_reset):
            return
        long = spans.lasting(sessions.rule.idle_after)
        text = LONG_AGO.format(time=long) if ended == "idle" else NEW_DAY
        self._put(answers.aside(inbound, "reset", text))

    # --- what happens around it -------------------------------------------------------

    def _conclude(self, concluded: Concluded) -> None:
        """Go on after an answer; see what is to be done about the past."""
        work = self._rewriting
        is_end = work is not None and work.is_by(concluded.answer.inbound)
        if work is not None and is_end:
            is_stored = concluded.is_own and concluded.answer.ends is not None
            self._finish(work, "ok" if is_stored else "failed")
        super()._conclude(concluded)
        if is_end:
            self._go_on()  # should its message have been given up meanwhile
        if self._rewriting is None and self._is_due():
            self._flush(concluded.answer.inbound)
        self._watch_the_time()

    def _watch_the_time(self) -> None:
        """Look again when nobody has written for long, should it be awake by then."""
        sessions = self._services.sessions
        idle = sessions.rule.idle_after
        if sessions.expiry in {"idle", "both"} and idle <= sessions.idle_after:
            if self._expiry is not None:
                self._expiry.cancel()
            self._expiry = self.after(idle, EndIfOver())

    def _forget_attempt(self) -> None:
        """Let go of a turn, and of what only that turn waits for, by its permit."""
        work = self._rewriting
        if self._attempt is not None and work is not None and work.what == "compaction":
            self._call_off()
        super()._forget_attempt()

    def _cancelled(self, held: Held, run: Run | None = None) -> None:
        """Keep that a message was stopped; a command is none of the conversation."""
        work, inbound = self._rewriting, held.inbound
        if work is not None and work.is_by(inbound):
            self._call_off()
        if held.told:
            stopped = answers.notice(inbound, "(stopped)", ("cancelled", "stopped"))
            self._put(stopped)
        else:
            super()._cancelled(held, run)
