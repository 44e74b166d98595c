"""The router: decides which agents hear a message, and hands it to their sessions.

The actor holds a part for each thing that may take time or must be remembered, and
carries out what they return. A message stands in the line of its chat, and only the
head of a line moves: while it waits for the disk, for hooks, or for a model that is
asked whom the words are for, what comes next waits behind it, so that all agents hear
everything in one order. Only a `/stop` waits for neither hook nor model.

`Copies` is the part that stores a message that several agents hear once for each of
them: the first answers the original, each other one answers and settles its copy.
`Stops` is the part that carries a `/stop` to the agents that work in a chat.
"""

from __future__ import annotations

from collections.abc import Iterable, Set as AbstractSet
from itertools import takewhile
from typing import ClassVar

import msgspec

from actors import names
from actors.agents.messages import ReplaceTable
from actors.hooks.book import HooksAnswered
from actors.inbound.chat_lines import ASKED, ChatLines, Place
from actors.inbound.hearing import Audience
from actors.inbound.hooks import HooksStored, InboundHooks
from actors.inbound.recovery import (
    Recovery,
    RecoveryDue,
    RecoveryMessage,
    RouteNext,
    SweepDue,
)
from actors.inbound.relevance import RelevanceChecked, RelevanceChecks
from actors.inbound.undeliverable import DropStored, UnroutedMessages
from actors.journal import commits
from actors.journal.unsettled import UnroutedMessage
from actors.messages.inbound import Inbound
from actors.messages.keys import account_of, chat_partition, session_key
from actors.messages.state import AttemptHistory
from actors.messages.tracing import TracedStep
from actors.people import admission
from actors.protocol import (
    Hear,
    NotHeard,
    Replied,
    Route,
    RouteArrived,
    RouteUnanswered,
    StopDelegated,
)
from actors.rules.groups.activation import GroupVerdict
from actors.rules.groups.assignments import StickyRoutes
from actors.rules.groups.routes import Outcome, Routed, Unrouted
from actors.schedule.occasions import LANES
from actors.services import Services
from actors.session.stop import is_same_asker, stop_command, stop_for_room
from runtime.actor.actor import Actor
from runtime.actor.committer import RETRY_EVERY, Committer
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.errors import DuplicateError, StoreError, StoreUnavailableError
from runtime.store.rows import Commit, Committed
from runtime.supervision.keyed import KeyGivenUp
from runtime.telemetry.logs import EventLog


class Stops:
    """Tells conversations what a `/stop` ends; the router's own part."""

    def __init__(
        self, router: Actor, allotted: StickyRoutes, services: Services
    ) -> None:
        self._router = router
        self._allotted = allotted
        self._services = services

    def tell_awake(
        self, stop: StopDelegated, agents: Iterable[str] | None = None
    ) -> None:
        """Tell the conversations of a chat that are awake.

        One that sleeps works at nothing, and whatever waits elsewhere comes later.

        Args:
            agents: whose conversations; None: all agents'.
        """
        if agents is None:
            self._router.tell(names.STAFF, stop)  # it has tasks for new agents
        scope = self._services.sessions.session_scope
        for agent in self._allotted.agents if agents is None else agents:
            is_meant = stop.agent in {"", agent}
            has_lanes = is_meant and not stop.correlation_id
            for lane in ("", *LANES) if has_lanes else ("",):
                by = msgspec.structs.replace(stop.by, lane=lane)
                key = session_key(by, agent, scope).text
                keyed = Keyed(key, stop, may_wake=False)
                self._router.tell(names.sessions(agent), keyed)

    def in_room(self, inbound: Inbound) -> None:
        """Have a `/stop` that names nobody in a group end what its sender asked there.

        Whoever wants an end to it need not know which agent is at it. Nobody says that
        there was nothing to stop: it may have been meant for another program.
        """
        if stop_for_room(inbound, self._allotted.table.agents) is not None:
            self.at_once(inbound)

    def at_once(self, inbound: Inbound, agents: Iterable[str] | None = None) -> None:
        """Have a `/stop` end what its sender asked some agents, or all, before it."""
        command = stop_command(inbound)
        if command is None:
            return
        if command.is_all and account_of(inbound) not in self._services.approvers:
            return
        self.tell_awake(StopDelegated(inbound, "", is_all=command.is_all), agents)


LOG = EventLog("router")


class CopiesStored(msgspec.Struct, frozen=True):
    """A note to the router: the outcome of storing copies for further agents."""

    copies: tuple[Inbound, ...]
    """The original, then its copies."""

    past: AttemptHistory
    """Earlier attempts at the original."""

    outcome: Committed | Exception


class Copies:
    """Makes and finds the copies."""

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._committer = Committer(services.store)

    async def find(
        self, message: UnroutedMessage, agents: Iterable[str]
    ) -> UnroutedMessage:
        """Find out which agents have a copy of a message already.

        A stored decision stays: these agents answer their copies, and never the
        original beside it.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        inbound = message.inbound
        connector = inbound.address.connector
        keys = {(connector, copy_id(inbound, agent)): agent for agent in agents}
        try:
            found = await self._services.store.messages(keys)
        except StoreUnavailableError:
            raise
        except StoreError as error:
            LOG.fault("copies not read", error, correlation_id=inbound.id)
            found = ()
        has = (keys[each.connector, each.platform_id] for each in found)
        return msgspec.structs.replace(message, copied=frozenset(has))

    def store(self, message: UnroutedMessage, agents: tuple[str, ...]) -> None:
        """Store a copy for each agent but the first, and tell the router.

        Args:
            agents: agents that have no copy yet; at least two.
        """
        copies, router = self._split(message, agents), self._router

        def make() -> Commit:
            now = self._services.clock.wall()
            accepts = tuple(commits.as_accept(each, now) for each in copies[1:])
            return Commit(at=now, accepts=accepts)

        self._committer.submit(
            router,
            make,
            lambda outcome: router.note(CopiesStored(copies, message.past, outcome)),
        )

    def _split(
        self, message: UnroutedMessage, agents: tuple[str, ...]
    ) -> tuple[Inbound, ...]:
        first, *further = agents
        others = len(further) + len(message.copied)
        inbound = msgspec.structs.replace(message.inbound, heard_by=others + 1)
        copies = tuple(
            msgspec.structs.replace(
                inbound,
                id=self._services.ids.new(),
                platform_id=copy_id(inbound, agent),
                agent=agent,
                copy_of=message.number,
            )
            for agent in further
        )
        return (msgspec.structs.replace(inbound, agent=first, others=others), *copies)


def to_be_heard(stored: CopiesStored) -> list[UnroutedMessage]:
    """Give the original and its copies; each names its agent."""
    first, *further = stored.copies
    if isinstance(stored.outcome, DuplicateError):
        # They were stored before a restart, and are routed by their own rows.
        LOG.warning("copies were stored before", correlation_id=first.id)
        further = []
    elif isinstance(stored.outcome, Exception):
        LOG.error("copies not stored", correlation_id=first.id)
        first, further = msgspec.structs.replace(first, others=0), []
    return [UnroutedMessage(first, past=stored.past), *map(UnroutedMessage, further)]


def without_copies(message: UnroutedMessage) -> UnroutedMessage:
    """Give a message for one agent, while others have a copy from before."""
    others = len(message.copied)
    if not others:
        return message
    inbound = msgspec.structs.replace(
        message.inbound, others=others, heard_by=others + 1
    )
    return msgspec.structs.replace(message, inbound=inbound)


def copy_id(inbound: Inbound, agent: str) -> str:
    """Name an agent's copy of a message: always the same. See `Inbound.source_id`."""
    return f"{inbound.platform_id}+{agent}"


class FindCopies(msgspec.Struct, frozen=True):
    """A note to itself: find the copies of a message that an earlier process made."""

    message_id: str


class ReplaceDue(msgspec.Struct, frozen=True):
    """A note to itself: the disk may be able to give the open messages now."""


class Router(Actor):
    """Hands each message to the sessions of the agents that hear it.

    Takes: `Route`, from connectors and, for what agents hand on, from sessions;
        `Replied`, `NotHeard` and `StopDelegated` from sessions; `RouteUnanswered` from
        whoever was restarted; `RouteArrived` from the keeper; `ReplaceTable` from
        `staff`; the answers of hooks and of relevance checkers.
    Sends: `Hear`, `CheckHeard` and `StopDelegated` to sessions; `Deliver` or
        `MessageSettled` about messages that nobody hears.
    Keeps: its table, whom agents answered lately, and the lines of all chats: what is
        not decided yet, and what was left unanswered until all of it is routed.
    Fails: never by a message.
    Ends: with the system. When it starts, it routes again what was accepted and
        never settled.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(
        self, allotted: StickyRoutes, connectors: AbstractSet[str], services: Services
    ) -> None:
        super().__init__()
        self._allotted = allotted
        self._services = services
        self._hearing = Audience(allotted, services)
        self._lines = lines = ChatLines()
        self._recovery = Recovery(self, lines, connectors, self._hearing, services)
        self._hooks = InboundHooks(self, lines, services)
        self._checks = RelevanceChecks(self, lines, services)
        self._copies = Copies(self, services)
        self._unrouted = UnroutedMessages(self, services)
        self._stops = Stops(self, allotted, services)
        self._newest: ReplaceTable | None = None

    async def on_start(self) -> None:
        """Route again what an earlier process accepted and did not settle."""
        await self._hearing.read()
        self._let_in(await self._recovery.begin())

    def on_receive(self, message: object) -> object:
        """Route, or go on with a message that waited."""
        match message:
            case Route(inbound=inbound, number=number, arrived_at=at):
                new = UnroutedMessage(inbound, number, arrived_at=at)
                self._let_in(self._recovery.arrive(new))
            case StopDelegated():
                self._stop_caused(message)
            case Replied():
                self._hearing.answered(message)
            case (
                RouteUnanswered()
                | RouteArrived()
                | NotHeard()
                | RecoveryDue()
                | SweepDue()
            ):
                return self._recover(message)
            case RouteNext():
                return self._recover(message)
            case ReplaceTable() | ReplaceDue():
                return self._replace_table(message)
            case _:
                return self._go_on(message)
        return None

    def _go_on(self, message: object) -> object:
        """Go on with a message that waited."""
        match message:
            case FindCopies(message_id=message_id):
                return self._find_copies(message_id)
            case RelevanceChecked():
                self._checked(message)
            case KeyGivenUp(key=key):
                self._checked(RelevanceChecked(key, "failed"))
            case HooksAnswered() | HooksStored():
                self._hooked(message)
            case CopiesStored():
                self._copied(message)
            case DropStored():
                self._unrouted.stored(message)
            case _:
                return super().on_receive(message)
        return None

    async def _recover(self, message: RecoveryMessage) -> None:
        self._let_in(await self._recovery.take(message))

    async def _replace_table(self, message: ReplaceTable | ReplaceDue) -> None:
        """Route new messages by another table; what an agent has stays with it."""
        if isinstance(message, ReplaceTable):
            self._newest = message
        if self._newest is None:
            return
        try:
            await self._hearing.replace(self._newest)
        except StoreUnavailableError as error:
            LOG.warning("agents not taken over yet", why=str(error))
            self.after(RETRY_EVERY, ReplaceDue())
        else:
            self._newest = None

    # --- the line of a chat -----------------------------------------------------------

    def _let_in(self, places: Iterable[Place]) -> None:
        """Move those that are the head of their line; let the others wait."""
        for each in places:
            if each is self._lines.head(each.chat):
                self._go_ahead(each.chat)
            else:
                self._line_up(each)

    def _go_ahead(self, chat: str) -> None:
        """Move the head of a chat's line, and those behind it until one has to wait."""
        head, has_moved = self._lines.head(chat), False
        while head is not None and head.state == "ready":
            self._move(head)
            head, has_moved = self._lines.head(chat), True
        if has_moved and head is not None:
            for each in self._lines.moving(chat)[1:]:
                self._line_up(each)

    def _move(self, head: Place) -> None:
        """Do what is next with a head: carry a stop, or ask hooks about a message."""
        if isinstance(head.item, StopDelegated):
            self._stops.tell_awake(head.item)
            self._lines.remove(head)
        elif (message := head.message) and not self._hooks.ask(head, message):
            self._begin(head, message)

    def _finish(self, place: Place) -> None:
        """Take out a message that sessions have, or that is settled."""
        if place.check is not None:
            self._checks.forget(place)
        self._lines.remove(place)
        if place.message is not None and not place.message.inbound.is_direct:
            self._stops.in_room(place.message.inbound)

    def _line_up(self, place: Place) -> None:
        """Let a message wait; what has to be asked about it is asked meanwhile."""
        message, head = place.message, self._lines.head(place.chat)
        if message is None or head is None:
            return
        if head.state in ASKED and self._stops_now(place, message):
            return
        if not self._checks.may_ask_ahead(place):
            return
        # Hooks may change its text, so that another agent is meant.
        is_open = self._services.hooks.receiving(message.inbound)
        is_foreseen = not (is_open or self._agent_asking(message))
        heard = self._hearing.foresee(message) if is_foreseen else None
        if heard is not None:
            self._checks.ask_ahead(place, message, heard, self._allotted.table)

    def _stop_caused(self, stop: StopDelegated) -> None:
        """Tell a chat's awake conversations, behind what they are still to hear."""
        chat = commits.chat_stream(stop.by)
        if chat in self._lines:
            head = self._lines.head(chat)
            self._lines.add(chat, stop)
            if head is not None and head.state not in ASKED:
                return
        self._stops.tell_awake(stop)

    def _stops_now(self, place: Place, message: UnroutedMessage) -> bool:
        """Have a `/stop` end at once what runs; give whether that is all it does.

        If its sender has something in line, it also keeps its place: what they wrote
        before it must not begin after it.
        """
        inbound = message.inbound
        command = stop_command(inbound)
        if command is None or self._hearing.must_look_back(message):
            return False
        before = takewhile(
            lambda each: each is not place, self._lines.moving(place.chat)
        )
        waiting = [each.message.inbound for each in before if each.message is not None]
        is_theirs = any(is_same_asker(each, inbound) for each in waiting)
        is_for_all = stop_for_room(inbound, self._allotted.table.agents) is not None
        if is_for_all and (is_theirs or command.is_all):
            self._stops.in_room(inbound)
            return False
        outcome = self._hearing.decide(message)
        if isinstance(outcome, GroupVerdict):
            return False
        outcome = admission.permitted(outcome, inbound, self._services)
        agents = outcome.agents if isinstance(outcome, Routed) else ()
        if is_theirs or command.is_all or len(agents) > 1:
            self._stops.at_once(inbound, agents)
            return False
        for agent in agents:
            self._hear(message, agent)
        if isinstance(outcome, Unrouted):
            self._unrouted.drop(inbound, outcome.reason, outcome.text)
        self._finish(place)
        return True

    # --- one message ------------------------------------------------------------------

    def _begin(self, head: Place, message: UnroutedMessage) -> None:
        """Decide who hears a message that hooks have passed."""
        if asking := self._agent_asking(message):
            self._hear(message, asking)
            self._finish(head)
        elif self._hearing.must_look_back(message):
            self._lines.wait(head, "finding")
            self.note(FindCopies(head.id))
        else:
            self._decide(head, message)

    def _agent_asking(self, message: UnroutedMessage) -> str:
        """Name the agent whose question for approval this answers; empty: none.

        In a group that needs no mention, and no other agent is to hear it.
        """
        board, terms = self._services.board, self._services.terms
        at = message.arrived_at
        if not at and self._services.duties.parts is not None:
            at = self._arrived_elsewhere(message)
        return board.agent_waiting_for(message.inbound, at, terms)

    def _arrived_elsewhere(self, message: UnroutedMessage) -> float:
        """Say when a message came in, perhaps at another node; see `Services`."""
        connector = message.inbound.address.connector
        return self._services.arrival_at(connector, 0.0, message.at)

    def _hooked(self, message: HooksAnswered | HooksStored) -> None:
        """Go on with a message that hooks were asked about."""
        if isinstance(message, HooksAnswered):
            self._hooks.answered(message)
            return
        head = self._lines.place(message.message.inbound.id, "hooks")
        is_settled = self._hooks.is_settled(message)
        if head is None:
            return
        if is_settled:
            self._finish(head)
        else:
            self._begin(head, message.message)
        self._go_ahead(head.chat)

    async def _find_copies(self, message_id: str) -> None:
        """Decide about a message that an earlier process may have decided about."""
        head = self._lines.place(message_id, "finding")
        if head is None or head.message is None:
            return
        # Why all agents: reply windows and relevance differ from what they were then.
        agents = dict.fromkeys(head.message.inbound.present or self._allotted.agents)
        try:
            message = await self._copies.find(head.message, agents)
            head.put(message)
        except StoreUnavailableError as error:
            LOG.warning("copies not looked for yet", why=str(error))
            self.after(RETRY_EVERY, FindCopies(message_id))
        else:
            self._decide(head, message)
            self._go_ahead(head.chat)

    def _decide(
        self,
        head: Place,
        message: UnroutedMessage,
        checked: dict[str, bool] | None = None,
    ) -> None:
        outcome = self._hearing.decide(message, checked)
        if isinstance(outcome, GroupVerdict):
            table, known = self._allotted.table, checked or {}
            checked = self._checks.ask(head, message, outcome, table, known)
            if checked is not None:
                self._decide(head, message, checked)
        else:
            self._carry_out(head, message, outcome)

    def _checked(self, checked: RelevanceChecked) -> None:
        """Go on with a message that a model was asked about."""
        found = self._checks.take(checked)
        if found is None:
            return
        head, outcomes = found
        if head.message is not None:
            self._decide(head, head.message, outcomes)
        self._go_ahead(head.chat)

    def _carry_out(
        self, head: Place, message: UnroutedMessage, outcome: Outcome
    ) -> None:
        """Have those hear it who are to hear it, and go on with its chat."""
        inbound, copied = message.inbound, message.copied
        outcome = admission.permitted(outcome, inbound, self._services)
        if isinstance(outcome, Unrouted):
            self._unrouted.drop(inbound, outcome.reason, outcome.text)
        elif len(agents := [x for x in outcome.agents if x not in copied]) > 1:
            self._lines.wait(head, "copying")
            self._copies.store(message, tuple(agents))
            return  # the chat goes on when the copies are stored
        elif agents:
            self._hear(without_copies(message), agents[0])
        else:
            self._unrouted.drop(inbound, "copied", "")
        self._finish(head)

    def _copied(self, stored: CopiesStored) -> None:
        first, *further = to_be_heard(stored)
        address = first.inbound.address
        part = chat_partition(address.connector, address.chat)
        # In a part that is closed meanwhile, copies are routed by their rows, later.
        may_begin = self._services.duties.begins(address.connector, part)
        for each in (first, *further) if may_begin else (first,):
            self._hear(each, each.inbound.agent)
        head = self._lines.place(stored.copies[0].id, "copying")
        if head is not None:
            self._finish(head)
            self._go_ahead(head.chat)

    def _hear(self, message: UnroutedMessage, agent: str) -> None:
        inbound = message.inbound
        key = session_key(inbound, agent, self._services.sessions.session_scope)
        at = message.arrived_at
        if not at and self._services.duties.parts is not None:
            at = self._arrived_elsewhere(message)
        hear = Hear(inbound, message.past, at)
        self.tell(names.sessions(agent), Keyed(key.text, hear))
        if (trace := self._services.trace) is not None:
            trace(
                TracedStep(
                    stage="route",
                    correlation_id=inbound.correlation_id,
                    seconds=None,
                    agent=agent,
                    traceparent=inbound.traceparent,
                )
            )
        self._recovery.hand_over(message, key)
