"""Who hears a message: the shell of `rules/routes.py` and `rules/activation.py`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import commits, gatekeeper, names
from actors.checker import Checked
from actors.checking import Checks
from actors.dismissal import dismissal, tell_dismissed
from actors.hearing import Hearing, split, without_copies
from actors.protocol import (
    DrainOutbox,
    Hear,
    Replied,
    Route,
    StopCaused,
    TakeUp,
)
from actors.router_notes import (
    HandOn,
    LookBack,
    ReplaceDue,
    Settling,
    Splitting,
    TakeUpDue,
    TryAgain,
)
from actors.rules.activation import Heard
from actors.rules.backlog import Backlog
from actors.rules.keys import session_key
from actors.rules.routes import Unrouted
from actors.staffing import ReplaceTable
from actors.stopping import stop_awake, stop_in_room
from actors.unheard import Unheard, place, read_back, read_open, tell_found
from runtime.actor import Actor
from runtime.errors import DuplicateError, StoreUnavailableError
from runtime.keyed import KeyGivenUp
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.messages import Keyed
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.messages import Inbound
    from actors.rules.allotted import Allotted
    from actors.rules.message_state import Past
    from actors.rules.routes import Outcome
    from actors.services import Services
    from runtime.rows import StoredMessage

LOG = EventLog("router")

RETRY_COMMIT = 1.0
"""Seconds until a failed commit is tried again."""

SWEEP_EVERY = 60.0
"""Seconds between looks for messages that nobody told of: their connector, or their
session, may have been killed with its whole branch before it could. Whoever has such
a message in hand knows it, and takes it no second time."""

# Chosen: an agent starts its sessions right after itself.
TAKE_UP_AFTER = 1.0
"""Seconds until unanswered messages are looked for."""

# Chosen: a thousand a second. Waking ten thousand conversations at once keeps the
# process from answering anybody, and from saying that it is ready, for seconds.
HANDED_AT_ONCE = 100
"""Messages taken up that are handed out in one go."""

HAND_ON_EVERY = 0.1
"""Seconds between two goes."""


class Router(Actor):
    """Hands each message to the sessions of the agents that hear it.

    Takes: `Route`, from connectors and, for what agents hand on, from sessions;
        `Replied` and `StopCaused` from sessions; `TakeUp` from whoever was restarted;
        `ReplaceTable` from `staff`.
    Sends: `Hear` and `StopCaused` to sessions; `Deliver` or `Settled` about what
        nobody hears.
    Keeps: its table, whom agents answered lately, what waits behind a message that
        several agents hear, and what was taken up until all of it is handed out.
    Fails: never by a message.
    Ends: with the system. When it starts, it routes again what was accepted and
        never settled.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(
        self, allotted: Allotted, connectors: frozenset[str], services: Services
    ) -> None:
        super().__init__()
        self._hearing = Hearing(allotted, services)
        self._allotted = allotted
        self._checks = Checks(self, services)
        self._connectors = connectors
        self._services = services
        self._newest: ReplaceTable | None = None
        self._is_taking_up = False
        self._is_handing_on = False
        self._held_back: dict[str, list[Unheard | StopCaused]] = {}
        """By chat, while copies are looked for or stored, or a model is asked whom its
        words are for: what came after. No more than the connectors have open."""

        self._taken_up: Backlog[StoredMessage | Unheard] = Backlog()
        """What is still to be handed out: what comes new in its chats waits behind.
        Its rows are read when their turn comes, so that the first need not wait."""

    async def on_start(self) -> None:
        """Route again what an earlier process accepted and did not settle."""
        self.every(SWEEP_EVERY, TakeUp())
        await self._hearing.read()
        tell_found(await self._take_up(), self._connectors)

    def on_receive(self, message: object) -> object:
        """Route, or go on after a commit."""
        match message:
            case Route(inbound=inbound, number=number, arrived_at=at):
                self._hear_of(Unheard(inbound, number, arrived_at=at))
            case StopCaused():
                self._stop_caused(message)
            case Replied():
                self._hearing.answered(message)
            case TakeUp() | TakeUpDue() | HandOn():
                return self._on_taken_up(message)
            case LookBack() | Checked() | KeyGivenUp():
                return self._on_decision(message)
            case ReplaceTable() | ReplaceDue():
                return self._replace_table(message)
            case _:
                self._on_commit(message)
        return None

    def _on_decision(self, message: LookBack | Checked | KeyGivenUp) -> object:
        match message:
            case LookBack(unheard=unheard):
                return self._look_back(unheard)
            case Checked():
                self._checked(message)
            case KeyGivenUp(key=key):
                self._checked(Checked(key, "failed"))
        return None

    def _on_taken_up(self, message: TakeUp | TakeUpDue | HandOn) -> object:
        match message:
            case TakeUp():
                self._take_up_soon()
            case TakeUpDue():
                return self._take_up_again()
            case HandOn():
                self._is_handing_on = False
                self._hand_on()
        return None

    def _on_commit(self, message: object) -> None:
        match message:
            case Splitting():
                self._split(message)
            case Settling():
                self._settled(message)
            case TryAgain(message=Splitting(copies=copies, past=past)):
                self._store_copies(copies, past)
            case TryAgain(message=Settling(answer=answer)):
                self._store(answer)
            case _:
                super().on_receive(message)

    # --- what was left unanswered ---------------------------------------------------

    def _take_up_soon(self) -> None:
        """Give who asked for it time to start; several who ask are one."""
        if not self._is_taking_up:
            self._is_taking_up = True
            self.after(TAKE_UP_AFTER, TakeUpDue())

    async def _take_up_again(self) -> None:
        self._is_taking_up = False
        self._hearing.sweep()
        # Before: what was stored goes out before what is said next in the same chat.
        for name in self._connectors:
            self.tell(names.connector(name), DrainOutbox())
        try:
            await self._take_up()
        except StoreUnavailableError as error:
            LOG.warning("messages not taken up yet", why=str(error))
            self._take_up_soon()

    async def _take_up(self) -> Counter[str]:
        """Route what is not settled; give how many there are of each connector."""
        found: Counter[str] = Counter()
        rows = await read_open(self._services.store)
        found.update(row.connector for row in rows)
        mine = [row for row in rows if row.connector in self._connectors]
        self._allotted.forget_all_but({row.id for row in mine})
        # Copies for further agents stand where their original stands. What an earlier
        # look found and is not handed out yet is among them.
        mine.sort(key=place)
        self._taken_up.refill((row.stream, row) for row in mine)
        self._hand_on()
        return found

    async def _replace_table(self, message: ReplaceTable | ReplaceDue) -> None:
        """Route what is new by another table; what somebody has goes its old way."""
        if isinstance(message, ReplaceTable):
            self._newest = message
        if (newest := self._newest) is None:
            return
        try:
            rows = await read_open(self._services.store)
        except StoreUnavailableError as error:
            LOG.warning("agents not taken over yet", why=str(error))
            self.after(RETRY_COMMIT, ReplaceDue())
            return
        still_open = [each.inbound for row in rows for each in read_back(row)]
        self._allotted.replace(newest.table, newest.finishing, still_open)
        self._newest = None

    def _hand_on(self) -> None:
        """Hand out some of what was taken up, and the rest later."""
        if self._is_handing_on:
            return
        self._route_all(self._taken_up.take(HANDED_AT_ONCE))
        if self._taken_up:
            self._is_handing_on = True
            self.after(HAND_ON_EVERY, HandOn())

    def _hear_of(self, unheard: Unheard) -> None:
        """Route what is new, behind what was taken up of the same chat.

        That is handed out at once, so that nobody waits for the chats of others.
        """
        stream = commits.chat_stream(unheard.inbound)
        if stream in self._taken_up:
            self._taken_up.add(stream, unheard)
            self._route_all(self._taken_up.hurry(stream, HANDED_AT_ONCE))
        else:
            self._route(unheard)

    def _route_all(self, taken: list[StoredMessage | Unheard]) -> None:
        for each in taken:
            for unheard in (each,) if isinstance(each, Unheard) else read_back(each):
                self._route(unheard)

    # --- who hears what --------------------------------------------------------------

    def _route(self, unheard: Unheard) -> None:
        inbound = unheard.inbound
        behind = self._held_back.get(commits.chat_stream(inbound))
        if self._checks.is_open(inbound):
            return  # found once more, while it is being asked whom it is for
        if behind is not None:
            behind.append(unheard)
            return
        # In a group it needs no mention, and no other agent is to hear it.
        services = self._services
        asking = services.board.agent_waiting_for(
            inbound, unheard.arrived_at, services.terms
        )
        if asking:
            self._hear(unheard, asking)
            return
        if self._hearing.must_look_back(unheard):
            self._hold(inbound)
            self.note(LookBack(unheard))
        else:
            self._decide(unheard)

    async def _look_back(self, unheard: Unheard) -> None:
        """Decide about what an earlier process took in, and may have decided about."""
        try:
            unheard = await self._hearing.look_back(unheard)
        except StoreUnavailableError as error:
            LOG.warning("copies not looked for yet", why=str(error))
            self.after(RETRY_COMMIT, LookBack(unheard))
        else:
            self._decide(unheard)

    def _decide(self, unheard: Unheard, checked: dict[str, bool] | None = None) -> None:
        outcome = self._hearing.decide(unheard, checked)
        if isinstance(outcome, Heard):
            self._hold(unheard.inbound)
            table, known = self._allotted.table, checked or {}
            checked = self._checks.ask(unheard, outcome, table, known)
            if checked is not None:
                self._decide(unheard, checked)
        else:
            self._carry_out(unheard, outcome)

    def _checked(self, checked: Checked) -> None:
        """Go on with a message of which a model was asked."""
        found = self._checks.take(checked)
        if found is not None:
            self._decide(*found)

    def _carry_out(self, unheard: Unheard, outcome: Outcome) -> None:
        """Have those hear it who are to hear it, and go on with its chat."""
        inbound, copied = unheard.inbound, unheard.copied
        outcome = gatekeeper.permitted(outcome, inbound, self._services)
        if isinstance(outcome, Unrouted):
            self._nobody(inbound, outcome.reason, outcome.text)
        elif len(agents := [x for x in outcome.agents if x not in copied]) > 1:
            self._several(unheard, tuple(agents))
            return  # its chat goes on when the copies are stored
        elif agents:
            self._hear(without_copies(unheard), agents[0])
        else:
            self._nobody(inbound, "copied", "")
        self._release(inbound)

    def _hold(self, inbound: Inbound) -> None:
        """Let what comes next in a chat wait, so that all hear it in one order."""
        self._held_back.setdefault(commits.chat_stream(inbound), [])

    def _release(self, inbound: Inbound) -> None:
        """Go on with a chat, if it was held."""
        stop_in_room(self, inbound, self._allotted.agents, self._services)
        for held in self._held_back.pop(commits.chat_stream(inbound), ()):
            if isinstance(held, StopCaused):
                self._stop_caused(held)
            else:
                self._route(held)

    def _hear(self, unheard: Unheard, agent: str) -> None:
        inbound = unheard.inbound
        key = session_key(inbound, agent, self._services.sessions.session_scope)
        hear = Hear(inbound, unheard.past, unheard.arrived_at)
        self.tell(names.sessions(agent), Keyed(key.text, hear))

    def _stop_caused(self, stop: StopCaused) -> None:
        """Tell who is awake in this chat, behind what they are still to hear."""
        behind = self._held_back.get(commits.chat_stream(stop.by))
        if behind is not None:
            behind.append(stop)
            return
        stop_awake(self, stop, self._allotted.agents, self._services)

    def _several(self, unheard: Unheard, agents: tuple[str, ...]) -> None:
        """Give each further agent a stored copy of its own to answer and settle."""
        self._hold(unheard.inbound)
        self._store_copies(split(unheard, agents, self._services), unheard.past)

    def _store_copies(self, copies: tuple[Inbound, ...], past: Past) -> None:
        now = self._services.clock.wall()
        commit = Commit(
            at=now, accepts=tuple(commits.as_accept(each, now) for each in copies[1:])
        )
        note = self.note
        self._services.store.submit(
            commit, lambda outcome: note(Splitting(copies, past, outcome))
        )

    def _split(self, split: Splitting) -> None:
        if isinstance(split.outcome, StoreUnavailableError):
            self.after(RETRY_COMMIT, TryAgain(split))
            return
        first, *further = split.copies
        if isinstance(split.outcome, DuplicateError):
            # They were stored before a restart, and are routed by their own rows.
            LOG.warning("copies were stored before", correlation_id=first.id)
            further = []
        elif isinstance(split.outcome, Exception):
            LOG.error("copies not stored", correlation_id=first.id)
            first, further = msgspec.structs.replace(first, others=0), []
        self._hear(Unheard(first, past=split.past), first.agent)
        for inbound in further:
            self._hear(Unheard(inbound), inbound.agent)
        self._release(first)

    def _nobody(self, inbound: Inbound, reason: str, text: str) -> None:
        """Settle what nobody hears; tell the sender where one waits."""
        name = inbound.correlation_id
        LOG.info("message dropped", correlation_id=name, reason=reason)
        self._store(dismissal(inbound, reason, text, self._services))

    def _store(self, answer: Answer) -> None:
        commit = commits.as_unheard(
            answer, self._services.clock.wall(), self._services.keep
        )
        note = self.note
        self._services.store.submit(
            commit, lambda outcome: note(Settling(answer, outcome))
        )

    def _settled(self, settling: Settling) -> None:
        answer, outcome = settling.answer, settling.outcome
        if isinstance(outcome, StoreUnavailableError):
            self.after(RETRY_COMMIT, TryAgain(settling))
        elif isinstance(outcome, Exception):
            self.tell(names.connector(answer.inbound.address.connector), DrainOutbox())
        else:
            tell_dismissed(self, answer, self._services)
