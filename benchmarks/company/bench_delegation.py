"""Delegation: a task that one agent hands to another, until both have answered.

Beside it the same question to the agent that knows the answer: the difference is what
handing it on costs. The models answer at once.
"""

from __future__ import annotations

import trio

from actors.config.agents import AgentConfig
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.room import Rooms, gathered
from benchmarks.stopwatch import spans
from connectors.models.scripted import (
    ActionSettings,
    DelegateSettings,
    RuleSettings,
    Script,
    ScriptedModel,
    ScriptSettings,
)

SCRIPT = ScriptSettings(
    ActionSettings(reply="42."),
    (
        RuleSettings(
            agent="anna",
            pattern="sum",
            reply="Ben knows.",
            delegate=DelegateSettings("ben", "the sum, please"),
        ),
    ),
)


def measure(plan: Plan) -> list[Figure]:
    """Ask `size` times, and as often whom it is handed to."""
    return trio.run(ask, plan.size)


async def ask(size: int) -> list[Figure]:
    """Run the company, and have somebody ask, the next when all was answered."""
    rooms = Rooms(("anna", "ben"))
    agents = {
        "anna": AgentConfig(delegates=("ben",)),
        "ben": AgentConfig(delegates=("anna",)),
    }
    handed: list[int] = []
    straight: list[int] = []
    async with gathered(rooms, ScriptedModel(Script(SCRIPT)), agents):
        for _ in range(size):
            heard = await rooms.write("@anna the sum?", 2)
            handed.append(heard.said[-1] - heard.written)
            heard = await rooms.write("@ben the sum?", 1)
            straight.append(heard.said[-1] - heard.written)
    return [*spans(handed, " handed on"), *spans(straight, " asked straight")]


BENCHMARK = Benchmark(
    name="delegation",
    about="a question that one agent hands to another, until that has answered",
    full=Plan(500, 1),
    quick=Plan(3, 1),
    measure=measure,
)
