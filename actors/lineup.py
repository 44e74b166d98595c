"""Where a message gets its place: behind others, with others, or in a running turn.

The shell of `rules/queueing.py` for what is heard. A message that was taken in before
is looked up first: which others shared its turn stands in the journal of its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names, together
from actors.held import Held
from actors.lifespan import Lifespan
from actors.meanwhile import AskMeanwhile
from actors.protocol import StopCaused
from actors.rules import message_state, queueing
from runtime.errors import StoreUnavailableError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from actors.messages import Inbound
    from actors.together import Composition

LOG = EventLog("session")

# Chosen: seconds until the disk is asked again what a turn answered.
READ_AGAIN = 1.0


class LookAgain(msgspec.Struct, frozen=True):
    """A note to itself: the disk may say by now what a turn answered."""


LookedUp = queueing.GatherOver | AskMeanwhile | LookAgain
"""What a session hears about its line."""


class LineUp(Lifespan):
    """A conversation that takes its messages by a busy policy."""

    _looking: tuple[str, ...] = ()
    """Ids of what has no place yet: the first waits for the disk, the others behind."""

    def _line_up(self, held: Held) -> Awaitable[None] | None:
        """Give a message its place."""
        if self._looking:
            self._looking = (*self._looking, held.inbound.id)
            return None
        heard = self._as_heard(held)
        if heard.is_owed:
            return self._line_up_again(held, heard)
        is_interrupting = self._queue.buffering.manner.interrupts and heard.may_join
        was_idle = self._queue.is_idle
        effects = self._queue.on(heard)
        ends = any(isinstance(each, queueing.CancelCurrent) for each in effects)
        if is_interrupting and self._persona.colleagues and (was_idle or ends):
            # What was handed on for this person is part of what they interrupt; where
            # they may not, because others wait, they do not interrupt that either.
            inbound, agent = held.inbound, self._persona.name
            self.tell(names.ROUTER, StopCaused(inbound, agent, is_scoped=True))
        self._effects(effects)
        return None

    async def _line_up_again(self, held: Held, heard: queueing.Heard) -> None:
        """Give a message its place, and to those that shared its turn theirs."""
        inbound, store = held.inbound, self._services.store
        stream = f"{self._history.stream}/{inbound.id}"
        try:
            found = await together.read_back(store, stream, inbound)
        except StoreUnavailableError as error:
            LOG.warning("steps not read yet", why=str(error))
            self._looking = (inbound.id,)
            self.after(READ_AGAIN, LookAgain())
            return
        found = self._still_free(found)
        others = (*found.also, *found.injected)
        for each in others:
            self._hold(each, held)
        if others:
            self._held[inbound.id] = msgspec.structs.replace(
                held,
                also=found.also,
                style=found.style,
                short=found.short,
                injected=found.injected,
            )
        if found.has_steps:
            # What is new would stand in no step of it.
            held = msgspec.structs.replace(self._held[inbound.id], is_recorded=True)
            self._held[inbound.id] = held
        again = msgspec.structs.replace(
            heard,
            is_begun=found.has_steps,
            also=tuple(each.id for each in others),
            style=found.style,
            short=found.short,
        )
        self._effects(self._queue.on(again))

    async def _look_again(self) -> None:
        """Give those their places that waited for the disk, in their order."""
        looking, self._looking = self._looking, ()
        for inbound_id in looking:
            held = self._held.get(inbound_id)
            if held is not None and (lining := self._line_up(held)) is not None:
                await lining

    def _stop_looking(self, ids: frozenset[str]) -> bool:
        """Let go of what was stopped before it had a place; give whether any was."""
        gone = tuple(each for each in self._looking if each in ids)
        # The timer goes on for whoever is left.
        self._looking = tuple(each for each in self._looking if each not in ids)
        for each in gone:
            self._cancelled(self._held[each])
        return bool(gone)

    def _still_free(self, found: Composition) -> Composition:
        """Leave out what has a turn of its own by now."""
        running = self._queue.members
        has_answered = self._history.has_answered

        def free(each: Inbound) -> bool:
            return each.id not in running and not has_answered(each.id)

        return msgspec.structs.replace(
            found,
            also=tuple(filter(free, found.also)),
            injected=tuple(filter(free, found.injected)),
        )

    def _hold(self, inbound: Inbound, first: Held) -> None:
        """Keep a message that shares a turn, whether it was heard already or not."""
        if inbound.id not in self._held:
            account = self._services.account(inbound.address.connector)
            past = message_state.Past(attempts=first.state.past.attempts, was_read=True)
            state = message_state.MessageState(account.retries, past)
            self._held[inbound.id] = Held(inbound, state)

    def _on_line(self, message: LookedUp) -> Awaitable[None] | None:
        """Begin what was gathered, or give a turn what came meanwhile."""
        if isinstance(message, LookAgain):
            return self._look_again()
        if isinstance(message, AskMeanwhile):
            self._tell_meanwhile(message)
        else:
            self._effects(self._queue.on(message))
        return None

    def _tell_meanwhile(self, asked: AskMeanwhile) -> None:
        """Put what came meanwhile into the running turn."""
        reply, current = self.defer_reply(), self._attempt
        if reply is None:
            return
        if current is None or current.id != asked.turn_id or current.is_over:
            reply.offer(())
            return
        effects = self._queue.on(queueing.RoundBegins(self._queue.generation))
        self._effects(effects)
        new = tuple(
            self._held[inbound_id].inbound
            for effect in effects
            if isinstance(effect, queueing.Inject)
            for inbound_id in effect.ids
        )
        reply.offer(current.inject(new))
