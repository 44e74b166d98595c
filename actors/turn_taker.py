"""Takes one turn after the other, and puts what comes of each on its way to people.

The lower half of a session: what was heard stands in the queue already; here it is
begun, reported, stored and sent. Everything a turn says passes here on its way to
people, and only here: drafts through the sanitiser, the answer through the parser of
markers, both committed before they are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from actors import acknowledgement, answers, reply_windows, trying
from actors.answering import Answering
from actors.attempt import Attempt
from actors.chapters import Reset
from actors.consent import Beside, Consent
from actors.decided import decided
from actors.held import Held, Known
from actors.joint import interrupted, joint
from actors.messages import ALONE
from actors.open_messages import settled_among
from actors.protocol import Failed, Finished
from actors.rules import message_state, queueing

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from actors.ledger import Run
    from actors.messages import Inbound

DROPPED = "⚠️ Too much came in at once, so I let this one go. Please send it again."
NEXT = "Got it, I'll get to this next."

# Chosen: seconds until a turn is begun again without those that somebody settled.
SORTED_OUT_AFTER = 1.0

GAVE_UP = "⚠️ I tried this {count} times and could not finish it. Please ask anew."


class BeginAgain(msgspec.Struct, frozen=True):
    """A note to itself: the wait of a message is over."""

    inbound_id: str


class TurnTaker(Answering):
    """At most one turn at a time, by what the queue says."""

    def _effects(self, effects: list[queueing.Effect]) -> None:
        for effect in effects:
            match effect:
                case queueing.Start(id=inbound_id, also=also):
                    self._acknowledge(inbound_id, *also)
                    self._begin(self._put_together(effect), effect.generation)
                case queueing.CancelCurrent():
                    self._cancel_current(effect)
                case queueing.Refuse(id=inbound_id):
                    self._refuse(self._held[inbound_id].inbound)
                case queueing.DropWaiting():
                    self._drop(effect)
                case queueing.Wait() | queueing.Gather() | queueing.Inject():
                    self._keep(effect)
                case _:
                    assert_never(effect)

    def _acknowledge(self, *ids: str) -> None:
        for held in map(self._held.__getitem__, ids):
            if not held.told:  # a command has no sign
                agent, services = self._persona.name, self._services
                acknowledgement.received(held.inbound, agent, self, services)

    def _keep(self, effect: queueing.Wait | queueing.Gather | queueing.Inject) -> None:
        """Keep a message; its turn comes, and nothing is owed before that."""
        match effect:
            case queueing.Wait(id=inbound_id, is_noted=is_noted):
                self._acknowledge(inbound_id)
                if is_noted:
                    self._tell_next(self._held[inbound_id].inbound)
            case queueing.Gather(number=number, seconds=seconds):
                self.after(seconds, queueing.GatherOver(number))
            case queueing.Inject(ids=ids):
                self._count("steered", len(ids))  # the turn has asked for them

    def _count(self, outcome: str, count: int = 1) -> None:
        self._services.metrics.buffered(self._persona.name, outcome, count)

    def _put_together(self, start: queueing.Start) -> Held:
        """Give a message with those that share its turn."""
        held = self._held[start.id]
        if not start.also or held.is_recorded:
            return held
        self._count("merged", len(start.also))
        self._held[start.id] = held = msgspec.structs.replace(
            held,
            also=tuple(self._held[each].inbound for each in start.also),
            style=start.style,
            short=start.short,
        )
        return held

    def _tell_next(self, inbound: Inbound) -> None:
        if self._services.account(inbound.address.connector).abilities.shows_asides:
            self._put(answers.aside(inbound, "next", NEXT))

    def _cancel_current(self, cancel: queueing.CancelCurrent) -> None:
        self._services.metrics.turn(self._persona.name, "cancelled")
        run = self._abandon_attempt()
        held = self._held[cancel.id]
        if cancel.reason == "stopped":
            self._cancelled(held, run)
        else:
            self._count("interrupted")
            self._put(interrupted(held, self._asked_of(held), run))

    def _drop(self, drop: queueing.DropWaiting) -> None:
        for inbound_id in drop.ids:
            held = self._held[inbound_id]
            if drop.reason == "stopped":
                self._cancelled(held)
            else:
                self._count("overflow")
                self._put_sparingly(dropped(held.inbound))

    # --- one turn ---------------------------------------------------------------

    def _begin(self, held: Held, generation: int) -> None:
        services = self._services
        now = services.clock.wall()
        effect = held.state.on(message_state.Begins(now))
        if isinstance(effect, message_state.WaitUntil):
            self._begin_later(held, effect.due_at)
            return
        self._attempt = current = Attempt(
            services.ids.new(), held, generation, self, self._persona, services
        )
        if isinstance(effect, message_state.BeginAttempt):
            history, inbound = self._history, held.inbound
            known = Known(
                steps=f"{history.stream}/{inbound.id}",
                reported=history.reported(inbound.id),
                answered=history.answered,
                is_steered=self._queue.buffering.manner.injects,
            )
            if inbound.occasion not in ALONE:
                known = msgspec.structs.replace(
                    known,
                    lines=(*history.brought(inbound), *history.lines),
                    earlier=history.earlier,
                    summaries=tuple(each.text for each in history.summaries),
                    resume=history.resume_at(now, services.sessions.resume_within),
                )
            must_be_stored = effect.must_be_stored or bool(held.others)
            report = current.begin(known, claim_first=must_be_stored)
            if report is not None:
                self._reported(current, report)
        elif isinstance(effect, message_state.GiveUp):
            current.is_over = True
            failed = Failed(GAVE_UP.format(count=held.state.attempts), effect.reason)
            self._give_up(held, failed, effect, None)

    def _may_begin(self, inbound_id: str | None) -> bool:
        """Whether it is a message's turn, and that is not under way."""
        queue = self._queue
        is_free = self._attempt is None and not queue.is_ending
        return is_free and inbound_id is not None and queue.current == inbound_id

    def _begin_again(self, inbound_id: str) -> None:
        if self._may_begin(inbound_id):
            self._begin(self._held[inbound_id], self._queue.generation)

    def _begin_later(self, held: Held, due_at: float) -> None:
        wait = max(0.0, due_at - self._services.clock.wall())
        self.after(wait, BeginAgain(held.inbound.id))

    def _on_turn(self, message: trying.Message) -> Awaitable[None] | None:
        current = self._attempt
        if current is None or current.id != message.turn_id:
            return None  # stopped, or given up; its last words are nobody's business
        if (report := current.on(message)) is None:
            return None
        if isinstance(report, trying.Superseded) and current.held.others:
            return self._sort_out(current.held)
        self._reported(current, report)
        return None

    async def _sort_out(self, held: Held) -> None:
        """Begin again without those messages of a turn that somebody has settled."""
        asked = (held.inbound, *held.others)
        gone = await settled_among(self._services.store, asked)
        if held.inbound.id in gone:
            self._superseded(held.inbound)  # the others have turns of their own
            return
        held.state.on(message_state.Returns())
        self._forget_attempt()
        self._leave_out(gone)
        self._held[held.inbound.id] = held = held.without(gone)
        self._queue.on(queueing.Gone(gone))
        self._begin_later(held, self._services.clock.wall() + SORTED_OUT_AFTER)

    def _beside(self, message: Beside) -> None:
        """Tell people something beside the answer that is being written."""
        asking = self._consent = self._consent or Consent(self._persona, self._services)
        for said in asking.receive(message, self._attempt, self):
            self._put(said)

    def _reported(self, current: Attempt, report: trying.Report) -> None:
        if isinstance(report, trying.Superseded):
            self._superseded(current.inbound)
            return
        run = current.run(report)
        current.count(report, run)
        if isinstance(report, Failed):
            self._failed(current, report, run)
        else:
            self._answered(current, report, run)

    def _answered(self, current: Attempt, finished: Finished, run: Run) -> None:
        held = current.held = _as_read(current.held, finished)
        inbound = held.inbound
        asked = self._asked_of(held, finished.heard)
        if inbound.occasion in ALONE:  # the model goes on elsewhere
            finished = msgspec.structs.replace(finished, resume="")
        persona, services = self._persona, self._services
        if inbound.occasion == "autonomous":
            made = (services.ids, services.clock.wall())
            self._put(decided(inbound, finished, persona, made, run))
            return
        answer = answers.reply(held.asked, asked, finished, persona, services, run)
        answer = msgspec.structs.replace(answer, inbound=inbound)
        if finished.carried.ends:
            ends = Reset(
                id=services.ids.new(),
                reason="model",
                messages=self._history.said + len(answer.lines),
                sender_id=inbound.sender_id,
            )
            answer = msgspec.structs.replace(answer, ends=ends)
        self._put(joint(reply_windows.opened(answer, persona), held))

    def _failed(self, current: Attempt, failed: Failed, run: Run) -> None:
        now, held = self._services.clock.wall(), current.held
        effect = held.state.on(trying.as_fails(failed, now))
        if isinstance(effect, message_state.PutOff):
            answer = answers.deferral(held.inbound, failed, effect, now, run)
            self._put(joint(answer, held))
            self._forget_attempt()
            self._begin_later(held, effect.due_at)
        elif isinstance(effect, message_state.GiveUp):
            held = current.held = _as_read(held, failed)
            self._give_up(held, failed, effect, run)

    def _give_up(
        self,
        held: Held,
        failed: Failed,
        given_up: message_state.GiveUp,
        run: Run | None,
    ) -> None:
        settled = (given_up.state, given_up.reason)
        asked = self._asked_of(held)
        answer = answers.failure(held.inbound, asked, failed, settled, run)
        self._put(joint(answer, held))

    def _after_answer(self, first: str, *others: str) -> None:
        """Go on when messages are settled; what their turn missed is next."""
        settled = {first, *others}
        # A dict that was emptied is three times as large as an empty one.
        self._held = {k: each for k, each in self._held.items() if k not in settled}
        if self._queue.current == first:
            self._forget_attempt()
            missed = (self._held.get(each) for each in self._queue.members)
            again = tuple(self._as_heard(each) for each in missed if each is not None)
            generation = self._queue.generation
            ended = queueing.TurnEnded(first, generation, again)
            self._effects(self._queue.on(ended))


def _as_read(held: Held, outcome: Finished | Failed) -> Held:
    """Leave out what was put into a turn and never read: it has a turn of its own."""
    read = tuple(x for x in held.injected if x.id in outcome.joined)
    return msgspec.structs.replace(held, injected=read)


def dropped(inbound: Inbound) -> answers.Answer:
    """Say that a message was let go because too many waited."""
    return answers.notice(inbound, DROPPED, ("dropped", "overflow"), "busy")
