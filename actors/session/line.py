"""The messages of one session that are not settled yet, and their places in its queue.

The queue decides by ids; the line keeps the messages themselves. A message that an
earlier process accepted gets its place after the journal of its turn's steps is read:
the journal says which other messages shared that turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from actors.agents.persona import Persona
from actors.commands.context import ConversationStatus
from actors.config.sessions import buffering_of
from actors.journal.answers import PendingMessage
from actors.journal.history import Conversation, History
from actors.messages import commands, state as message_state
from actors.messages.busy_policies import BusySettings, Chosen
from actors.messages.inbound import Inbound
from actors.messages.keys import parse_key
from actors.messages.progress import Pace
from actors.protocol import Hear
from actors.rules.prompt.untrusted import clean
from actors.services import Services
from actors.session import queue as queueing, shared_turns
from actors.session.shared_turns import Composition
from runtime.errors import StoreUnavailableError
from runtime.telemetry.logs import EventLog

LOG = EventLog("session")


class SessionLine:
    """The unsettled messages of one conversation.

    Args:
        history: the conversation; knows what was answered.
    """

    __slots__ = ("_history", "_services", "_unplaced", "pending", "queue")

    def __init__(self, history: History, services: Services) -> None:
        self._history = history
        self._services = services
        most = services.limits.max_waiting
        self.queue = queueing.SessionQueue(most, self.settings_by(""))
        self._unplaced: tuple[str, ...] = ()
        """Ids of messages without a place: the first waits for the disk or a hook, the
        others wait behind it."""

        self.pending: dict[str, PendingMessage] = {}
        """By id."""

    def __len__(self) -> int:
        """Say how many messages are not settled."""
        return len(self.pending)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self.queue.is_idle and not self.pending

    def settings_by(self, chosen: Chosen) -> BusySettings:
        """Give the busy policy and its settings, if people have chosen this policy."""
        services = self._services
        key, most = parse_key(self._history.stream), services.limits.max_message_chars
        usual, tables = services.buffering, services.busy_policies
        return buffering_of(usual, tables, key, most, chosen)

    def standing(self, pace: Pace) -> ConversationStatus:
        """Give what commands show of the conversation; `pace` of the running turn."""
        queue, counted = self.queue, self._history.counted
        return ConversationStatus(
            self._history.stream,
            Conversation() if counted.is_closed else counted,
            len(queue.waiting),
            is_busy=bool(queue.begun),
            policy=queue.buffering.policy,
            usual=self.settings_by("").policy,
            chosen=counted.policy,
            pace=pace,
        )

    def hear_again(self) -> Iterator[Hear]:
        """Give the unsettled messages for the next incarnation, newest first."""
        for pending in reversed(tuple(self.pending.values())):
            past = pending.state.past
            if pending.others:  # the next incarnation reads them from the store
                past = msgspec.structs.replace(past, was_read=True)
            yield Hear(pending.inbound, past)

    def take_in(
        self, inbound: Inbound, past: message_state.AttemptHistory
    ) -> PendingMessage:
        """Keep a message until it is settled."""
        policy = self._services.accounts[inbound.address.connector].retries
        if inbound.occasion == "heartbeat":  # the next one comes anyway
            policy = msgspec.structs.replace(policy, retries_failures=False)
        pending = PendingMessage(inbound, message_state.MessageState(policy, past))
        self.pending[inbound.id] = pending
        return pending

    def settle(self, ids: Collection[str]) -> None:
        """Forget messages that are settled."""
        # A dict that was emptied is three times as large as an empty one.
        self.pending = {k: each for k, each in self.pending.items() if k not in ids}

    def leave_out(self, gone: frozenset[str]) -> tuple[Inbound, ...]:
        """Forget messages that somebody else has settled; give those of this line."""
        found: list[Inbound] = []
        for inbound_id in gone:
            self._history.note_answered(inbound_id)
            if (pending := self.pending.get(inbound_id)) is not None:
                found.append(pending.inbound)
        self.settle(gone)
        return tuple(found)

    # --- places -------------------------------------------------------------------

    def arrival_of(
        self, pending: PendingMessage, persona: Persona, *, is_late: bool
    ) -> queueing.Arrival:
        """Give what the queue must know of a message.

        Args:
            is_late: whether the turn of its sender has its answer already.
        """
        inbound = pending.inbound
        return queueing.Arrival(
            inbound.id,
            # The sender of a webhook was told that it will be handled; `max_open`
            # bounds their number.
            is_owed=pending.state.was_read
            or inbound.occasion == "webhook"
            or (bool(pending.told) and self._is_only_end(pending)),
            whose=(inbound.sender_id, inbound.interruption_scope),
            may_join=self._may_join(pending, persona),
            is_media=bool(inbound.attachments),
            is_late=is_late,
            size=len(inbound.text),
            now=self._services.clock.monotonic(),
        )

    def _is_only_end(self, pending: PendingMessage) -> bool:
        """Whether a command ends the conversation, and no other waits to do so.

        It finds a place in a full line, where people need it most.
        """
        ends = [each.inbound.id for each in self.pending.values() if each.told]
        return ends == [pending.inbound.id]

    def _may_join(self, pending: PendingMessage, persona: Persona) -> bool:
        """Whether a message is a person's plain words that may share a turn."""
        inbound, config = pending.inbound, persona.config
        abilities = self._services.accounts[inbound.address.connector].abilities
        is_own = not (inbound.chain.agents or inbound.occasion or inbound.history)
        # Why no command: the name of a skill has to come first in the text.
        is_plain = isinstance(commands.parse_command(inbound.text), commands.PlainText)
        # A suspicious message that is refused must not take others with it.
        injection = config.context.injection
        is_harmless = injection != "refuse" or (
            not clean(inbound.text, injection).is_suspicious
        )
        may = abilities.shows_asides and is_own and is_plain and is_harmless
        return may and not pending.told

    def hold(self, pending: PendingMessage) -> None:
        """Let a message wait for a hook, and the next ones behind it."""
        self._unplaced = (pending.inbound.id,)

    def waits_behind(self, pending: PendingMessage) -> bool:
        """Put a message behind those without a place, if there are any."""
        if self._unplaced:
            self._unplaced = (*self._unplaced, pending.inbound.id)
        return bool(self._unplaced)

    async def recover(
        self, pending: PendingMessage, heard: queueing.Arrival
    ) -> queueing.Arrival | None:
        """Read which messages shared an earlier turn with this one, and keep them, too.

        Args:
            heard: what the queue must know of it.

        Returns:
            `heard` with the ids of the others; None: the disk cannot be read now.
        """
        inbound, store = pending.inbound, self._services.store
        stream = f"{self._history.stream}/{inbound.id}"
        try:
            found = await shared_turns.read_composition(store, stream, inbound)
        except StoreUnavailableError as error:
            LOG.warning("steps not read yet", why=str(error))
            self._unplaced = (inbound.id,)
            return None
        found = self._still_free(found)
        others = (*found.also, *found.injected)
        for each in others:
            self._take_in_with(each, pending)
        if others or found.has_steps:
            self.pending[inbound.id] = msgspec.structs.replace(
                pending,
                also=found.also,
                style=found.style,
                short=found.short,
                injected=found.injected,
                # Messages that join later would be missing in the recorded steps.
                is_recorded=found.has_steps,
            )
        return msgspec.structs.replace(
            heard,
            is_begun=found.has_steps,
            also=tuple(each.id for each in others),
            style=found.style,
            short=found.short,
        )

    def take_unplaced(self) -> tuple[str, ...]:
        """Give the ids without a place, in their order, to be placed now."""
        unplaced, self._unplaced = self._unplaced, ()
        return unplaced

    def stop_unplaced(self, ids: frozenset[str]) -> tuple[PendingMessage, ...]:
        """Give the messages without a place that are stopped; they get none."""
        gone = tuple(each for each in self._unplaced if each in ids)
        # The timer goes on for the rest.
        self._unplaced = tuple(each for each in self._unplaced if each not in ids)
        return tuple(self.pending[each] for each in gone)

    def _still_free(self, found: Composition) -> Composition:
        """Leave out messages that run or are answered by now."""
        running = self.queue.members
        has_answered = self._history.has_answered

        def free(each: Inbound) -> bool:
            return each.id not in running and not has_answered(each.id)

        return msgspec.structs.replace(
            found,
            also=tuple(filter(free, found.also)),
            injected=tuple(filter(free, found.injected)),
        )

    def _take_in_with(self, inbound: Inbound, first: PendingMessage) -> None:
        """Keep a message that shares a turn, unless it is kept already."""
        if inbound.id not in self.pending:
            account = self._services.accounts[inbound.address.connector]
            past = message_state.AttemptHistory(
                attempts=first.state.past.attempts, was_read=True
            )
            state = message_state.MessageState(account.retries, past)
            self.pending[inbound.id] = PendingMessage(inbound, state)

    # --- turns --------------------------------------------------------------------

    def put_together(self, start: queueing.BeginTurn) -> PendingMessage:
        """Give the message of a turn together with those that share the turn."""
        pending = self.pending[start.id]
        if not start.also or pending.is_recorded:
            return pending
        self.pending[start.id] = pending = msgspec.structs.replace(
            pending,
            also=tuple(self.pending[each].inbound for each in start.also),
            style=start.style,
            short=start.short,
        )
        return pending
