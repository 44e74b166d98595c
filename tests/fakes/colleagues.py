"""Colleagues who may always be asked, and always have an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.collaborating import Consultancy
from actors.messages import Chain
from actors.rules.loop_guard import Allowed

if TYPE_CHECKING:
    from actors.rules.asking_round import Question


class Agreeable:
    """Whom a turn may ask, without limits."""

    name = "anna"

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.outcomes: list[str] = []

    def within(self) -> float:
        return 10.0

    async def may_ask(self, target: str, key: str) -> Allowed:
        del key
        await trio.lowlevel.checkpoint()
        return Allowed(target, Chain(agents=(self.name, target)))

    async def put(self, question: Question, deadline: float) -> Consultancy:
        del deadline
        await trio.lowlevel.checkpoint()
        self.asked.append(question)
        return Consultancy("ok", f"yes to {question.text}")

    def count(self, outcome: str) -> None:
        self.outcomes.append(outcome)
