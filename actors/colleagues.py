"""The agents that one turn may ask behind the scenes, and how one of them is asked.

Nobody is asked whom the loop guard, the budget of the message or the pair limiter
forbids. What is asked runs under the permit of the turn that asks: it waits for none of
its own, so however many agents ask each other, none waits for another's permit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import trio

from actors import names, rulings
from actors.collaborating import CancelConsult, Consult, Consultancy, book_key
from actors.rules import asking_round as rules
from actors.rules import loop_guard, tool_results
from actors.rules.agent_access import may_use
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.messages import Keyed
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services
    from runtime.actor import Actor

LOG = EventLog("turn")

GRACE = 5.0
"""Seconds that a consultant may take to say that it is late."""

SHARE = 0.9
"""How much of the asking turn's time is for its colleagues: it has to answer, too."""

AWAY = "it is not here now"


class Colleagues:
    """The agents that one turn may ask.

    Args:
        turn: on whose behalf.
        start: what is being answered.
        persona: who asks, and whom it may.
        services: settings, clock, counts.
        ends_at: when the turn's time is over, on trio's clock.
    """

    def __init__(
        self,
        turn: Actor,
        start: StartTurn,
        persona: Persona,
        services: Services,
        ends_at: float = math.inf,
    ) -> None:
        self._turn = turn
        self._start = start
        self._persona = persona
        self._services = services
        self._ends_at = ends_at
        self._slots = trio.CapacityLimiter(services.collaboration.max_parallel)
        self.asked = 0
        """Questions so far: of the budget that one message has."""

    @property
    def name(self) -> str:
        """Who asks."""
        return self._persona.name

    def recall(self, result: str) -> None:
        """Count the questions of a call that an earlier attempt made."""
        self.asked += rules.questions_of(result)

    def within(self) -> float:
        """Say how many seconds a call made now may take."""
        config, deadline = (
            self._services.collaboration,
            self._start.inbound.chain.deadline,
        )
        left = (self._ends_at - trio.current_time()) * SHARE
        most = min(config.timeout, self._services.tool_calls.tool_timeout * SHARE, left)
        if deadline:
            most = min(most, deadline - self._services.clock.wall())
        return max(0.0, most)

    async def may_ask(
        self, target: str, key: str
    ) -> loop_guard.Allowed | loop_guard.Refused:
        """Say whether one more question may be put; count it if so.

        Args:
            target: whom.
            key: what tells the question from all others of the message.
        """
        services, inbound = self._services, self._start.inbound
        limits = self._persona.delegation_limits(services.limits.max_hops)
        chain, now = inbound.chain, services.clock.wall()
        verdict = loop_guard.may_delegate(chain, self.name, target, limits, now)
        if isinstance(verdict, loop_guard.Refused):
            return verdict
        if not may_use(verdict.target, inbound, services.agent_access).may:
            return loop_guard.not_permitted(verdict.target)
        most = services.limits.max_delegations
        own = loop_guard.own_share(most, inbound.heard_by)
        if self.asked >= (chain.left if chain.agents else own):
            return loop_guard.spent(most)
        self.asked += 1  # before others ask
        exchange = rulings.exchange(inbound, self.name, verdict.target, key)
        (ruling,) = await rulings.rule(self._turn, (exchange,), inbound)
        if ruling.is_allowed:
            return verdict
        self.asked -= 1
        return loop_guard.to_pause(self.name, verdict.target)

    async def put(self, question: rules.Question, deadline: float) -> Consultancy:
        """Put a question that may be put, and wait for the answer.

        Args:
            question: to whom, by whom.
            deadline: when nobody waits any longer, on trio's clock.
        """
        async with self._slots:
            within = deadline - trio.current_time()
            supervisor = self._turn.find(names.consultants(question.target))
            if supervisor is None:
                return Consultancy("failed", AWAY)
            consult = self._consult(question, within)
            start = self._start.inbound
            key = book_key(start, question.target, question.source).text
            is_answered = False
            try:
                asked = supervisor.ask(Keyed(key, consult), timeout=within + GRACE)
                answer: Consultancy = await asked
                is_answered = True
            except (*UNANSWERED, KernelError) as error:
                LOG.warning(
                    "colleague not asked",
                    correlation_id=start.correlation_id,
                    target=question.target,
                    why=str(error),
                )
                return Consultancy("failed", AWAY)
            finally:
                # Also where this very turn was cancelled: what it caused ends with it.
                if not is_answered:
                    cancel = CancelConsult(consult.inbound.id)
                    self._turn.tell(supervisor, Keyed(key, cancel, may_wake=False))
            return answer

    def _consult(self, question: rules.Question, within: float) -> Consult:
        inbound, services = self._start.inbound, self._services
        now = services.clock.wall()
        most = services.collaboration.max_chars
        inbound_id = f"{inbound.id}?{question.key}"
        asked = msgspec.structs.replace(
            inbound,
            id=inbound_id,
            platform_id=inbound_id,
            sender_name=question.source,
            text=tool_results.bound(question.text, most),
            received_at=now,
            agent=question.target,
            wants_drafts=False,
            attachments=(),
            quoted=None,
            history=(),
            chain=msgspec.structs.replace(question.chain, deadline=now + within),
            occasion="",
            others=0,
            copy_of=0,
        )
        return Consult(
            inbound=asked,
            source=question.source,
            session=question.session,
            is_new=question.is_new,
            attempt=self._start.attempt,
        )

    def count(self, outcome: str) -> None:
        """Count what became of one question."""
        self._services.metrics.collaboration(self.name, "consult", outcome)
