"""The colleagues that one turn may ask, and how a question gets to one.

Nobody is asked whom the loop guard, the budget of the message or the pair limiter
forbids. What is asked runs under the permit of the turn that asks: it waits for none of
its own, so however many agents ask each other, none waits for another's permit.

What one call of a tool says to one colleague, and what comes back.
"""

from __future__ import annotations

import hashlib
import math
from typing import Protocol

import msgspec
import trio

from actors import names
from actors.agents.persona import Persona
from actors.collaboration import questions as rules
from actors.delegation import loop_guard, rulings
from actors.delegation.handing import without_files
from actors.delegation.messages import (
    CancelConsult,
    Consult,
    ConsultationResult,
    book_key,
)
from actors.hooks.asker import ask_about
from actors.hooks.chain import HookPart
from actors.messages.inbound import DelegationChain, SentFile, ToolCall
from actors.protocol import StartTurn
from actors.rules.groups.access import may_use
from actors.rules.prompt import tools as tool_results
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

LOG = EventLog("turn")

# Chosen: all stand in the asking turn's one place among limits.max_in_flight.
AT_ONCE = 4
"""Agents that answer one consultation at the same time; the others wait."""

GRACE = 5.0
"""Seconds that a consultant may take to say that it is late."""

SHARE = 0.9
"""How much of the asking turn's time is for its colleagues: it has to answer, too."""

AWAY = "it is not here now"
HELD_BACK = "a hook held the words back"


class Colleagues(msgspec.Struct, eq=False):
    """The agents that one turn may ask.

    Args:
        persona: who asks, and whom it may.
        ends_at: when the turn's time is over, on trio's clock.
    """

    _turn: Actor
    _start: StartTurn
    _persona: Persona
    _services: Services
    _ends_at: float = math.inf
    _slots: trio.CapacityLimiter = msgspec.field(
        default_factory=lambda: trio.CapacityLimiter(AT_ONCE)
    )
    asked: int = 0
    """Questions so far: of the budget that one message has."""

    @property
    def name(self) -> str:
        """Who asks."""
        return self._persona.name

    @property
    def frame_key(self) -> bytes:
        """Key of the frames around answers."""
        return self._services.frame_key

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
            most = min(most, deadline - self._services.clock.monotonic())
        return max(0.0, most)

    async def may_ask(
        self, target: str, key: str
    ) -> loop_guard.DelegationAllowed | loop_guard.DelegationRefused:
        """Say whether one more question may be put; count it if so.

        Args:
            key: what tells the question from all others of the message.
        """
        services, inbound = self._services, self._start.inbound
        limits = self._persona.delegation_limits(services.limits.max_hops)
        chain, now = inbound.chain, services.clock.monotonic()
        verdict = loop_guard.may_delegate(chain, self.name, target, limits, now)
        if isinstance(verdict, loop_guard.DelegationRefused):
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

    async def put(
        self, question: rules.ConsultQuestion, deadline: float
    ) -> ConsultationResult:
        """Put a question that may be put, and wait for the answer.

        Args:
            deadline: when nobody waits any longer, on trio's clock.
        """
        async with self._slots:
            if question.target != self.name:  # else it judges what another said
                said = await self._asked_about(question.text)
                if said is None:
                    return ConsultationResult("failed", HELD_BACK)
                question = msgspec.structs.replace(question, text=said)
            within = deadline - trio.current_time()
            supervisor = self._turn.find(names.consultants(question.target))
            if supervisor is None:
                return ConsultationResult("failed", AWAY)
            consult = self._consult(question, within)
            start = self._start.inbound
            key = book_key(start, question.target, question.source).text
            is_answered = False
            try:
                asked = supervisor.ask(Keyed(key, consult), timeout=within + GRACE)
                answer: ConsultationResult = await asked
                is_answered = True
            except (*UNANSWERED, KernelError) as error:
                LOG.warning(
                    "colleague not asked",
                    correlation_id=start.correlation_id,
                    target=question.target,
                    why=str(error),
                )
                return ConsultationResult("failed", AWAY)
            finally:
                # Also where this very turn was cancelled: what it caused ends with it.
                if not is_answered:
                    cancel = CancelConsult(consult.inbound.id)
                    self._turn.tell(supervisor, Keyed(key, cancel, may_wake=False))
            return answer

    async def _asked_about(self, text: str) -> str | None:
        """Give a question as hooks leave it; None: one holds it back."""
        inbound, services = self._start.inbound, self._services
        hooks = services.hooks.sending(inbound.address.connector, self.name)
        if not hooks:
            return text
        part = HookPart("question", text)
        whose, asker = (inbound, self.name), (self._turn, services.ids)
        passed = await ask_about("", [part], hooks, whose, asker)
        return None if passed.cancelled_by else passed.worded("question", text)

    def _consult(self, question: rules.ConsultQuestion, within: float) -> Consult:
        inbound, services = self._start.inbound, self._services
        clock, most = services.clock, services.collaboration.max_chars
        chain = question.chain
        inbound_id = f"{inbound.id}?{question.key}"
        asked = msgspec.structs.replace(
            inbound,
            id=inbound_id,
            platform_id=inbound_id,
            sender_name=question.source,
            text=without_files(tool_results.bound(question.text, most), inbound),
            received_at=clock.wall(),
            agent=question.target,
            wants_drafts=False,
            attachments=(),
            quoted=None,
            history=(),
            chain=msgspec.structs.replace(chain, deadline=clock.monotonic() + within),
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
        self._services.metrics.collaborations.add(1, self.name, "consult", outcome)


class ColleagueAsker(Protocol):
    """What a tool needs to ask colleagues; `Colleagues` implements it."""

    @property
    def name(self) -> str:
        """Who asks."""
        ...

    @property
    def frame_key(self) -> bytes:
        """Key of the frames around answers."""
        ...

    def within(self) -> float:
        """Say how many seconds a call made now may take."""
        ...

    async def may_ask(
        self, target: str, key: str
    ) -> loop_guard.DelegationAllowed | loop_guard.DelegationRefused:
        """Say whether one more question may be put; count it if so."""
        ...

    async def put(
        self, question: rules.ConsultQuestion, deadline: float
    ) -> ConsultationResult:
        """Put a question that may be put, and wait for the answer."""
        ...

    def count(self, outcome: str) -> None:
        """Count what became of one question."""
        ...


class Dialogue:
    """The questions and answers of one tool call with one colleague.

    Args:
        colleagues: whom it may ask.
        target: the colleague, as the model calls it.
        number: which of the colleagues of this call it is.
    """

    def __init__(
        self, colleagues: ColleagueAsker, call: ToolCall, target: str, number: int = 0
    ) -> None:
        self._colleagues = colleagues
        self._target = target
        parts = (call.id, call.name, call.arguments, number)
        # Why no new id: asked again after a crash, it is known to be the same.
        self._key = hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:16]
        self._questions = 0
        self._chain = DelegationChain()
        self.files: list[SentFile] = []
        """Files of the colleague; they are sent with the asking agent's answer."""

    async def ask_once(
        self, message: str, session: str, deadline: float
    ) -> rules.ColleagueAnswer:
        """Ask one question.

        Args:
            session: the consultation to go on with; empty: a new one.
            deadline: on trio's clock.
        """
        answer, told = await self._ask(message, session, deadline)
        if told.outcome != "ok":
            why = rules.why_not(answer, told.outcome, told.text)
            return rules.ColleagueAnswer(answer, missing=why, questions=self._questions)
        return rules.ColleagueAnswer(
            answer,
            answer=told.text,
            session_id=session or self._key,
            is_done=told.is_done,
            questions=self._questions,
        )

    async def discuss(
        self, wanted: rules.CollaborateArguments, turns: int, deadline: float
    ) -> rules.Discussion:
        """Go on until one of the two is done, or there are no more turns.

        Args:
            wanted: the first message, and the consultation to go on with.
            turns: most questions.
            deadline: on trio's clock.
        """
        said: list[rules.DialogueLine] = []
        source = self._colleagues.name
        target, message, ended = self._target, wanted.message, "turns"
        session = wanted.session_id
        for turn in range(turns):
            target, told = await self._ask(message, session, deadline)
            session = session or self._key
            if told.outcome != "ok":
                ended = rules.why_not(target, told.outcome, told.text)
                break
            said += (
                rules.DialogueLine(source, message),
                rules.DialogueLine(target, told.text),
            )
            if told.is_done:
                ended = "done"
                break
            if turn + 1 == turns:
                break
            judged = await self._judge(wanted.message, target, told.text, deadline)
            if judged.outcome != "ok":
                ended = rules.why_not(source, judged.outcome, judged.text)
                break
            if judged.is_done or not judged.text.strip():
                ended = "done"
                break
            message = judged.text
        return rules.Discussion(target, session, ended, tuple(said), self._questions)

    async def _ask(
        self, message: str, session: str, deadline: float
    ) -> tuple[str, ConsultationResult]:
        """Ask, if that may be; give the colleague's own name with the answer."""
        key = f"{self._key}.{self._questions}"
        if not message.strip():
            return self._target, ConsultationResult(
                "failed", "say what you want to know"
            )
        verdict = await self._colleagues.may_ask(self._target, key)
        if isinstance(verdict, loop_guard.DelegationRefused):
            self._colleagues.count(verdict.reason)
            return self._target, ConsultationResult("failed", loop_guard.plain(verdict))
        is_new = not session
        self._questions += 1
        question = rules.ConsultQuestion(
            source=self._colleagues.name,
            target=verdict.target,
            text=message,
            key=key,
            session=session or self._key,
            is_new=is_new,
            chain=verdict.chain,
        )
        self._chain = verdict.chain
        told = await self._put(question, deadline)
        self.files += told.files
        return verdict.target, told

    async def _judge(
        self, goal: str, target: str, answer: str, deadline: float
    ) -> ConsultationResult:
        """Have the agent that asks say what it makes of an answer."""
        source = self._colleagues.name
        number = self._questions
        question = rules.ConsultQuestion(
            source=target,
            target=source,
            text=rules.to_judge(
                self._colleagues.frame_key, goal if number == 1 else "", target, answer
            ),
            key=f"{self._key}.{number}j",
            session=self._key,
            is_new=True,
            chain=rules.back(self._chain, source),
        )
        return await self._put(question, deadline)

    async def _put(
        self, question: rules.ConsultQuestion, deadline: float
    ) -> ConsultationResult:
        told = ConsultationResult("cancelled")
        try:
            with trio.move_on_at(deadline) as scope:
                told = await self._colleagues.put(question, deadline)
            if scope.cancelled_caught:
                told = ConsultationResult("late", rules.LATE)
        finally:
            self._colleagues.count(told.outcome)
        return told
