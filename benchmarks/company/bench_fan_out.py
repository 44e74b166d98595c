"""Fan out: one message in a room of a hundred agents, who all answer, or one of whom.

From handing it in to the answers said: each agent that is meant has a stored copy of
its own, a conversation and an answer in the outbox; all go out through one chat. The
model answers at once.
"""

from __future__ import annotations

import trio

from actors.config.agents import AgentConfig
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.room import Rooms, gathered
from benchmarks.stopwatch import spans
from connectors.models.scripted import (
    ActionSettings,
    Script,
    ScriptedModel,
    ScriptSettings,
)

AGENTS = tuple(f"agent-{number}" for number in range(1, 101))
ALL = " ".join(f"@{name}" for name in AGENTS)
SCRIPT = ScriptSettings(ActionSettings(reply="Here."))


def measure(plan: Plan) -> list[Figure]:
    """Ask all of them `size` times, then as often one of them."""
    return trio.run(ask, plan.size)


async def ask(size: int) -> list[Figure]:
    """Run the company, and have somebody write again and again."""
    rooms = Rooms(AGENTS)
    agents = {name: AgentConfig() for name in AGENTS}
    first: list[int] = []
    last: list[int] = []
    single: list[int] = []
    async with gathered(rooms, ScriptedModel(Script(SCRIPT)), agents):
        for number in range(size):
            heard = await rooms.write(f"{ALL} are you here?", len(AGENTS))
            first.append(heard.said[0] - heard.written)
            last.append(heard.said[-1] - heard.written)
            one = AGENTS[number % len(AGENTS)]
            heard = await rooms.write(f"@{one} are you here?", 1)
            single.append(heard.said[0] - heard.written)
    pace = len(AGENTS) * size / (sum(last) / 1e9)
    return [
        Figure("rate, all answer", pace, "answers/s"),
        *spans(first, " first of 100"),
        *spans(last, " all 100"),
        *spans(single, " one of 100"),
    ]


BENCHMARK = Benchmark(
    name="fan_out",
    about="a message to a room of 100 agents: all answer, or one does",
    full=Plan(50, 1),
    quick=Plan(1, 1),
    measure=measure,
)
