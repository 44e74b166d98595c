"""What a session says, and how its messages are settled: the ground it stands on.

Whatever is said about a message is stored together with what settles it, and sent when
that is durable; only then the next one begins. Which turn is begun when stands in
`turn_taker.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import (
    acknowledgement,
    answers,
    attachments,
    names,
    reply_windows,
    unsaid,
)
from actors.busy_config import buffering_of
from actors.history import History
from actors.hooking import HooksSaid
from actors.joint import joint, said_meanwhile, untold, without
from actors.messages import Line
from actors.open_messages import settled_among
from actors.outgoing import Concluded, Contested, Entered, Outgoing, RetryCommit
from actors.protocol import DrainOutbox
from actors.rules import commands, queueing
from actors.rules.heard import sender_of
from actors.rules.hygiene import clean
from actors.rules.keys import parse_key
from actors.rules.sparing import Sparing
from actors.wording import tell_finished
from runtime.actor import Actor

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from actors.attempt import Attempt
    from actors.consent import Consent
    from actors.held import Held
    from actors.ledger import Run
    from actors.messages import Inbound
    from actors.outgoing import Said, Stored
    from actors.persona import Persona
    from actors.rules.busy_policies import Buffering, Chosen
    from actors.services import Services

BUSY = "I have too much to answer in this chat already. Please try again."

# Chosen: seconds until the disk is asked again who has settled a message.
LOOK_AGAIN = 1.0


class Answering(Actor):
    """The messages of a conversation, and the answers on their way to the disk.

    Args:
        key: names the conversation, and its journal stream.
        persona: who answers.
        services: store, clock, counts, limits.
    """

    def __init__(self, key: str, persona: Persona, services: Services) -> None:
        super().__init__()
        self._persona = persona
        self._services = services
        self._history = History(key, persona.config.max_history)
        max_waiting = services.limits.max_waiting
        self._queue = queueing.SessionQueue(max_waiting, self._buffering_by(""))
        self._held: dict[str, Held] = {}
        self._consent: Consent | None = None  # most conversations ask for nothing
        self._sparing: Sparing | None = None  # and refuse nothing
        self._attempt: Attempt | None = None
        self._outgoing = Outgoing(self._history, services)

    def _buffering_by(self, chosen: Chosen) -> Buffering:
        """Say what is done with messages, should people have chosen this."""
        services = self._services
        key, most = parse_key(self._history.stream), services.limits.max_message_chars
        usual, tables = services.buffering, services.busy_policies
        return buffering_of(usual, tables, key, most, chosen)

    def _renew(self, persona: Persona) -> None:
        """Go by what the agent, and the settings, are from now on."""
        self._persona, self._sparing = persona, None
        self._history.max_history = persona.config.max_history
        buffering = self._buffering_by(self._history.counted.policy)
        self._queue.adopt(self._services.limits.max_waiting, buffering)

    def _refuse(self, inbound: Inbound) -> None:
        self._put_sparingly(answers.notice(inbound, BUSY, ("dropped", "busy"), "busy"))

    def _put_sparingly(self, answer: answers.Answer) -> None:
        """Let a message go, and tell its sender if they were not told lately."""
        inbound, services = answer.inbound, self._services
        account = services.account(inbound.address.connector)
        is_own = not (inbound.chain.agents or inbound.occasion)
        if self._sparing is None:
            self._sparing = Sparing(services.limits.told_again_after)
        now = services.clock.monotonic()
        if is_own and account.abilities.shows_asides:
            whose = (inbound.sender_id, *answer.settled)
            if not self._sparing.may_tell(whose, now):
                services.metrics.left_out(answer.settled[1])
                answer = untold(answer)
        self._put(answer)

    def _say(self, inbound: Inbound, text: str) -> None:
        self._put(answers.notice(inbound, text, ("replied", "command")))

    def _cancelled(self, held: Held, run: Run | None = None) -> None:
        """Keep a cancelled message's words, and that nobody answered them."""
        asked = self._asked_of(held)
        self._put(joint(answers.cancelled(held.inbound, asked, run), held))

    def _as_heard(self, held: Held) -> queueing.Heard:
        """Say what the queue must know of a message."""
        inbound, current = held.inbound, self._attempt
        return queueing.Heard(
            inbound.id,
            # A webhook's sender was told that it will be done; `max_open` bounds them.
            is_owed=held.state.past.was_read or inbound.occasion == "webhook",
            whose=(inbound.sender_id, inbound.interruption_scope),
            may_join=self._may_join(held),
            is_media=bool(inbound.attachments),
            is_late=current is not None and current.is_over,
            size=len(inbound.text),
            now=self._services.clock.monotonic(),
        )

    def _may_join(self, held: Held) -> bool:
        """Whether a message is a person's plain words, for which no request waits."""
        inbound, config = held.inbound, self._persona.config
        abilities = self._services.account(inbound.address.connector).abilities
        is_own = not (inbound.chain.agents or inbound.occasion or inbound.history)
        # Why no command: a skill's name has to stand at the beginning.
        is_plain = isinstance(commands.parse_command(inbound.text), commands.Words)
        # What is not to be answered by what it tries takes nobody along.
        injection = config.context.injection
        is_harmless = injection != "refuse" or (
            not clean(inbound.text, injection).is_suspicious
        )
        may = abilities.shows_asides and is_own and is_plain and is_harmless
        return may and not held.told

    def _superseded(self, inbound: Inbound) -> None:
        """Go on after a message that somebody else has settled."""
        self._history.note_answered(inbound.id)
        acknowledgement.withdrawn(inbound, self._persona.name, self, self._services)
        self.tell(names.connector(inbound.address.connector), DrainOutbox())
        self._after_answer(inbound.id)

    def _leave_out(self, gone: frozenset[str]) -> None:
        """Forget messages that somebody else has settled."""
        agent, services = self._persona.name, self._services
        for inbound_id in gone:
            self._history.note_answered(inbound_id)
            if (held := self._held.get(inbound_id)) is not None:
                acknowledgement.withdrawn(held.inbound, agent, self, services)
        self._held = {x: held for x, held in self._held.items() if x not in gone}

    # --- what is said ------------------------------------------------------------

    def _put(self, answer: Said) -> None:
        if isinstance(answer, answers.Aside) and not unsaid.is_heard_of(answer):
            return
        if isinstance(answer, answers.Answer):
            answer = unsaid.quietly(answer, self._persona.name, self._services.ids)
        self._outgoing.put(answer, self)

    def _on_commit(
        self, message: Stored | RetryCommit | HooksSaid
    ) -> Awaitable[None] | None:
        """Go on after a commit, or try it again."""
        if isinstance(message, HooksSaid):
            self._outgoing.worded(message, self)
            return None
        if isinstance(message, RetryCommit):
            self._outgoing.store_next(self)
            return None
        concluded = self._outgoing.take(message, self)
        match concluded:
            case None:
                return None
            case Contested(answer=answer):
                return self._contest(answer)
            case Entered():
                self._entered(concluded)
            case Concluded():
                self._conclude(concluded)
        self._outgoing.store_next(self)
        return None

    async def _contest(self, answer: answers.Answer) -> None:
        """Store an answer without those messages that somebody has settled."""
        asked = (answer.inbound, *(each.inbound for each in answer.also))
        gone = await settled_among(self._services.store, asked)
        if not gone:
            self.after(LOOK_AGAIN, RetryCommit())  # the disk does not say
            return
        self._leave_out(gone - {answer.inbound.id})
        if answer.inbound.id in gone:
            self._conclude(self._outgoing.give_way(answer))
        else:
            self._outgoing.put_instead(without(answer, gone))
        self._outgoing.store_next(self)

    def _entered(self, entered: Entered) -> None:
        """Go on after something in the journal that answers nobody."""

    def _conclude(self, concluded: Concluded) -> None:
        """Count what is stored, and was sent; go on with what waited for it."""
        answer = concluded.answer
        inbound = answer.inbound
        connector = inbound.address.connector
        ids = (inbound.id, *(each.inbound.id for each in answer.also))
        if concluded.is_own and answer.put_off is None:
            for _ in ids:
                self._services.metrics.message(connector, answer.settled[0])
            now = self._services.clock.wall()
            replied = reply_windows.told(answer, self._persona.name, now)
            if replied is not None:
                self.tell(names.ROUTER, replied)
            if chosen := answer.carried.policy:
                self._queue.buffer_by(self._buffering_by(chosen))
            tell_finished(self, answer, self._persona.name, self._services)
        elif concluded.was_waited_for and not concluded.is_own:
            self.tell(names.connector(connector), DrainOutbox())
            ids = ids[:1]  # of the others it is seen one by one
        if concluded.was_waited_for and answer.put_off is None:
            self._acknowledge_end(answer)
            self._after_answer(*ids)

    def _acknowledge_end(self, answer: answers.Answer) -> None:
        """Have people see at each message of a turn how it ended."""
        held = self._held.get(answer.inbound.id)
        begun = 0 if held is None else held.state.attempts
        agent, services = self._persona.name, self._services
        for each in (answer.inbound, *(x.inbound for x in answer.also)):
            if answer.settled == ("cancelled", "interrupted"):
                acknowledgement.withdrawn(each, agent, self, services)
                continue
            own = msgspec.structs.replace(answer, inbound=each)
            acknowledgement.concluded(own, begun, agent, self, services)

    def _after_answer(self, first: str, *others: str) -> None:
        """Go on when messages are settled."""

    def _forget_attempt(self) -> None:
        current, self._attempt = self._attempt, None
        if current is not None:
            if current.inbound.id in self._held:
                self._held[current.inbound.id] = current.held
            if self._consent is not None:
                self._consent.forget(current.id)
            current.leave()

    def _abandon_attempt(self) -> Run | None:
        """Forget an attempt before it has ended; give what it took until now."""
        run = None if self._attempt is None else self._attempt.cancel()
        self._forget_attempt()
        return run

    def _asked_of(self, held: Held, heard: str | None = None) -> tuple[Line, ...]:
        """Give what was asked as lines of the history."""
        inbound = held.inbound
        text = attachments.unread(held.asked) if heard is None else heard
        everybody = self._persona.everybody
        asked = Line("user", text, name=sender_of(inbound, everybody))
        brought = self._history.brought(inbound)
        return (*brought, asked, *said_meanwhile(held.injected, everybody))
