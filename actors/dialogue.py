"""What one call of a tool says to one colleague, and what comes back."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from actors.collaborating import Consultancy
from actors.messages import Chain
from actors.rules import asking_round as rules
from actors.rules import loop_guard

if TYPE_CHECKING:
    from actors.messages import SentFile, ToolCall


class Asks(Protocol):
    """Whom a turn may ask; `colleagues.Colleagues` is one."""

    @property
    def name(self) -> str:
        """Who asks."""
        ...

    def within(self) -> float:
        """Say how many seconds a call made now may take."""
        ...

    async def may_ask(
        self, target: str, key: str
    ) -> loop_guard.Allowed | loop_guard.Refused:
        """Say whether one more question may be put; count it if so."""
        ...

    async def put(self, question: rules.Question, deadline: float) -> Consultancy:
        """Put a question that may be put, and wait for the answer."""
        ...

    def count(self, outcome: str) -> None:
        """Count what became of one question."""
        ...


class Dialogue:
    """What one call says to one colleague.

    Args:
        colleagues: whom it may ask.
        call: which.
        target: the colleague, as the model calls it.
        number: which of the colleagues of this call it is.
    """

    def __init__(
        self, colleagues: Asks, call: ToolCall, target: str, number: int = 0
    ) -> None:
        self._colleagues = colleagues
        self._target = target
        parts = (call.id, call.name, call.arguments, number)
        # Why no new id: asked again after a crash, it is known to be the same.
        self._key = hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()[:16]
        self._questions = 0
        self._chain = Chain()
        self.files: list[SentFile] = []
        """What the colleague sent: it goes out with the answer of whoever asks."""

    async def ask_once(
        self, message: str, session: str, deadline: float
    ) -> rules.Answer:
        """Ask one question.

        Args:
            message: the question.
            session: the consultation to go on with; empty: a new one.
            deadline: on trio's clock.
        """
        answer, told = await self._ask(message, session, deadline)
        if told.outcome != "ok":
            why = rules.why_not(answer, told.outcome, told.text)
            return rules.Answer(answer, missing=why, questions=self._questions)
        return rules.Answer(
            answer,
            answer=told.text,
            session_id=session or self._key,
            is_done=told.is_done,
            questions=self._questions,
        )

    async def discuss(
        self, wanted: rules.CollaborateArguments, turns: int, deadline: float
    ) -> rules.Discussion:
        """Go on until one of the two is done, or there are no more turns (F273).

        Args:
            wanted: the first message, and the consultation to go on with.
            turns: most questions.
            deadline: on trio's clock.
        """
        said: list[rules.Saying] = []
        source = self._colleagues.name
        target, message, ended = self._target, wanted.message, "turns"
        session = wanted.session_id
        for turn in range(turns):
            target, told = await self._ask(message, session, deadline)
            session = session or self._key
            if told.outcome != "ok":
                ended = rules.why_not(target, told.outcome, told.text)
                break
            said += (rules.Saying(source, message), rules.Saying(target, told.text))
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
    ) -> tuple[str, Consultancy]:
        """Ask, if that may be; give the colleague's own name with the answer."""
        key = f"{self._key}.{self._questions}"
        if not message.strip():
            return self._target, Consultancy("failed", "say what you want to know")
        verdict = await self._colleagues.may_ask(self._target, key)
        if isinstance(verdict, loop_guard.Refused):
            self._colleagues.count(verdict.reason)
            return self._target, Consultancy("failed", loop_guard.plain(verdict))
        is_new = not session
        self._questions += 1
        question = rules.Question(
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
    ) -> Consultancy:
        """Have the agent that asks say what it makes of an answer."""
        source = self._colleagues.name
        number = self._questions
        question = rules.Question(
            source=target,
            target=source,
            text=rules.to_judge(goal if number == 1 else "", target, answer),
            key=f"{self._key}.{number}j",
            session=self._key,
            is_new=True,
            chain=rules.back(self._chain, source),
        )
        return await self._put(question, deadline)

    async def _put(self, question: rules.Question, deadline: float) -> Consultancy:
        told = Consultancy("cancelled")
        try:
            with trio.move_on_at(deadline) as scope:
                told = await self._colleagues.put(question, deadline)
            if scope.cancelled_caught:
                told = Consultancy("late", rules.LATE)
        finally:
            self._colleagues.count(told.outcome)
        return told
