"""Who hears a message: the shell of `rules/routes.py` and `rules/activation.py`.

The lower half of the router. A chat whose message waits for the disk, for hooks, or for
a model that is asked whom the words are for, is held: what comes next stands in line,
so that all hear everything in one order. Only a `/stop` waits for neither hook nor
model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import commits, gatekeeper, names, telling
from actors.checker import Checked
from actors.checking import Checks
from actors.dismissal import dismissal, tell_dismissed
from actors.hearing import Hearing, split, without_copies
from actors.hooking import HooksSaid
from actors.interception import Intercepted, Interception, StoreAgain
from actors.joint import untold
from actors.messages import Inbound
from actors.protocol import DrainOutbox, Hear, StopCaused
from actors.router_notes import LookBack, Settling, Splitting, TryAgain
from actors.rules.activation import Heard
from actors.rules.keys import session_key
from actors.rules.routes import Routed, Unrouted
from actors.rules.sparing import Sparing
from actors.rules.stopping import for_room, is_of, stop_of
from actors.stopping import stop_at_once, stop_awake, stop_in_room
from actors.unheard import Unheard
from runtime.actor import Actor
from runtime.errors import DuplicateError, StoreUnavailableError
from runtime.keyed import KeyGivenUp
from runtime.logs import EventLog
from runtime.messages import Keyed
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.rules.allotted import Allotted
    from actors.rules.message_state import Past
    from actors.rules.routes import Outcome
    from actors.services import Services

LOG = EventLog("router")

RETRY_COMMIT = 1.0
"""Seconds until a failed commit is tried again."""


TOLD_ONCE = frozenset({"not_permitted", "no_default_agent"})
"""Reasons for which messages are dismissed that hold for the next ones, too."""


class Line(msgspec.Struct):
    """What waits in one chat."""

    first: Inbound
    """For which all else waits."""

    behind: list[Unheard | StopCaused]


class Deciding(Actor):
    """Has each message heard by the sessions of the agents that it is for.

    Args:
        allotted: who there is, whose chats are whose, and what was decided before.
        services: clock, store, counts, rights.
    """

    def __init__(self, allotted: Allotted, services: Services) -> None:
        super().__init__()
        self._hearing = Hearing(allotted, services)
        self._allotted = allotted
        self._checks = Checks(self, services)
        self._interception = Interception(self, services)
        self._services = services
        self._sparing = Sparing(services.limits.told_again_after)
        self._held_back: dict[str, Line] = {}
        """By chat, while copies are looked for or stored, or a model is asked whom its
        words are for: what came after. No more than the connectors have open."""

    def on_receive(self, message: object) -> object:
        """Go on with a message that waited."""
        match message:
            case LookBack(unheard=unheard):
                return self._look_back(unheard)
            case Checked():
                self._checked(message)
            case KeyGivenUp(key=key):
                self._checked(Checked(key, "failed"))
            case HooksSaid() | Intercepted() | StoreAgain():
                self._intercepted(message)
            case _:
                return self._on_commit(message)
        return None

    def _on_commit(self, message: object) -> object:
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
                return super().on_receive(message)
        return None

    def _route(self, unheard: Unheard) -> None:
        inbound = unheard.inbound
        if self._is_asked(inbound):
            return  # found once more, while somebody is being asked of it
        line = self._held_back.get(commits.chat_stream(inbound))
        if line is not None:
            self._line_up(unheard, line)
        elif self._interception.ask(unheard):
            self._hold(inbound)
        else:
            self._find_ears(unheard)

    def _is_asked(self, inbound: Inbound) -> bool:
        """Whether a model, or a hook, is being asked of a message: it takes seconds."""
        return self._checks.is_open(inbound) or self._interception.is_open(inbound)

    def _intercepted(self, message: HooksSaid | Intercepted | StoreAgain) -> None:
        """Go on with a message that hooks were asked about."""
        match self._interception.take(message):
            case Unheard() as unheard:
                self._find_ears(unheard)
            case Inbound() as settled:
                self._release(settled)
            case None:
                pass

    def _find_ears(self, unheard: Unheard) -> None:
        inbound = unheard.inbound
        if asking := self._asking(unheard):
            self._hear(unheard, asking)
            self._release(inbound)
        elif self._hearing.must_look_back(unheard):
            self._hold(inbound)
            self.note(LookBack(unheard))
        else:
            self._decide(unheard)

    def _asking(self, unheard: Unheard) -> str:
        """Name the agent that asked for leave and is answered; empty: none is.

        In a group that needs no mention, and no other agent is to hear it.
        """
        board, terms = self._services.board, self._services.terms
        return board.agent_waiting_for(unheard.inbound, unheard.arrived_at, terms)

    # --- behind others of its chat ---------------------------------------------------

    def _line_up(self, unheard: Unheard, line: Line) -> None:
        """Have a message wait; what has to be asked of it is asked meanwhile."""
        if self._is_asked(line.first) and self._stops(unheard, line):
            return
        line.behind.append(unheard)
        # Hooks may make other words of it, for somebody else.
        is_open = self._services.hooks.receiving(unheard.inbound)
        is_foreseen = not (is_open or self._asking(unheard))
        heard = self._hearing.foresee(unheard) if is_foreseen else None
        if heard is not None:
            self._checks.ask_ahead(unheard, heard, self._allotted.table)

    def _stops(self, unheard: Unheard, line: Line) -> bool:
        """Have a `/stop` end at once what runs; give whether that is all it does.

        If somebody whom it is for has something in line, it also keeps its place: what
        they wrote before it is not to begin after it.
        """
        inbound = unheard.inbound
        command = stop_of(inbound)
        if command is None or self._hearing.must_look_back(unheard):
            return False
        waiting = [x.inbound for x in line.behind if isinstance(x, Unheard)]
        is_theirs = any(is_of(each, inbound) for each in (line.first, *waiting))
        if for_room(inbound) is not None and (is_theirs or command.is_all):
            stop_in_room(self, inbound, self._allotted.agents, self._services)
            return False
        outcome = self._hearing.decide(unheard)
        if isinstance(outcome, Heard):
            return False
        outcome = gatekeeper.permitted(outcome, inbound, self._services)
        agents: tuple[str, ...] = ()
        if isinstance(outcome, Routed):
            agents = outcome.agents
        if is_theirs or command.is_all or len(agents) > 1:
            stop_at_once(self, inbound, agents, self._services)
            return False
        for agent in agents:
            self._hear(unheard, agent)
        if isinstance(outcome, Unrouted):
            self._nobody(inbound, outcome.reason, outcome.text)
        stop_in_room(self, inbound, self._allotted.agents, self._services)
        return True

    # --- one message -----------------------------------------------------------------

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
            self._checks.forget(unheard.inbound)
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
        stream = commits.chat_stream(inbound)
        if stream not in self._held_back:
            self._held_back[stream] = Line(inbound, [])

    def _release(self, inbound: Inbound) -> None:
        """Go on with a chat, if it was held."""
        stop_in_room(self, inbound, self._allotted.agents, self._services)
        line = self._held_back.pop(commits.chat_stream(inbound), None)
        for held in () if line is None else line.behind:
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
        line = self._held_back.get(commits.chat_stream(stop.by))
        if line is not None:
            line.behind.append(stop)
            if not self._is_asked(line.first):
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
        answer = dismissal(inbound, reason, text, self._services)
        if reason in TOLD_ONCE and self._was_told(answer):
            self._services.metrics.left_out(reason)
            answer = untold(answer)
        self._store(answer)

    def _was_told(self, answer: Answer) -> bool:
        """Whether its sender, a person, was told the same lately."""
        inbound, services = answer.inbound, self._services
        is_own = not (inbound.chain.agents or inbound.occasion)
        shows = services.account(inbound.address.connector).abilities.shows_asides
        if not (answer.deliveries and is_own and shows):
            return False
        whose = (commits.chat_stream(inbound), inbound.sender_id, answer.settled[1])
        self._sparing.every = services.limits.told_again_after
        return not self._sparing.may_tell(whose, services.clock.monotonic())

    def _store(self, answer: Answer) -> None:
        services = self._services
        told = telling.of_unheard(answer, services)
        commit = commits.as_unheard(answer, services.clock.wall(), services.keep, told)
        note = self.note
        services.store.submit(
            commit, lambda outcome: note(Settling(answer, outcome, told))
        )

    def _settled(self, settling: Settling) -> None:
        answer, outcome = settling.answer, settling.outcome
        if isinstance(outcome, StoreUnavailableError):
            self.after(RETRY_COMMIT, TryAgain(settling))
        elif isinstance(outcome, Exception):
            self.tell(names.connector(answer.inbound.address.connector), DrainOutbox())
        else:
            telling.wake_notifiers(self.find, settling.told)
            tell_dismissed(self, answer, self._services)
