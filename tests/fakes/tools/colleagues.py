"""Colleagues who may always be asked, and always have an answer."""

from __future__ import annotations

import trio

from actors.collaboration.questions import ConsultQuestion
from actors.delegation.loop_guard import DelegationAllowed
from actors.delegation.messages import ConsultationResult
from actors.messages.inbound import DelegationChain


class Agreeable:
    """Whom a turn may ask, without limits."""

    name = "anna"
    frame_key = b"key"

    def __init__(self) -> None:
        self.asked: list[ConsultQuestion] = []
        self.outcomes: list[str] = []

    def within(self) -> float:
        return 10.0

    async def may_ask(self, target: str, key: str) -> DelegationAllowed:
        del key
        await trio.lowlevel.checkpoint()
        return DelegationAllowed(target, DelegationChain(agents=(self.name, target)))

    async def put(
        self, question: ConsultQuestion, deadline: float
    ) -> ConsultationResult:
        del deadline
        await trio.lowlevel.checkpoint()
        self.asked.append(question)
        return ConsultationResult("ok", f"yes to {question.text}")

    def count(self, outcome: str) -> None:
        self.outcomes.append(outcome)
