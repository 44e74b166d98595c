"""Rooms: very many group chats with one message each, some for an agent, some for none.

Small talk is what rooms are full of: it is accepted, committed, found to be for nobody
and settled with that reason.
"""

from __future__ import annotations

import trio

from actors.config.agents import AgentConfig
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.room import Rooms, gathered
from benchmarks.stopwatch import now, rate
from connectors.models.scripted import (
    ActionSettings,
    Script,
    ScriptedModel,
    ScriptSettings,
)

AGENTS = ("anna", "ben", "carl", "dora")
AT_ONCE = 64
SCRIPT = ScriptSettings(ActionSettings(reply="Hello."))


def measure(plan: Plan) -> list[Figure]:
    """Have `size` rooms with a message that is meant, and as many with small talk."""
    return trio.run(converse, plan.size)


async def converse(size: int) -> list[Figure]:
    """Run the company until everybody was answered, or heard by nobody."""
    rooms = Rooms(AGENTS)
    agents = {name: AgentConfig() for name in AGENTS}
    async with gathered(rooms, ScriptedModel(Script(SCRIPT)), agents):
        begin = now()
        await write_all(rooms, size, "@anna hello", 1)
        meant = rate(size, begin, "rooms", "rate, an agent is meant")
        begin = now()
        await write_all(rooms, size, "hello everybody", 0)
        return [meant, rate(size, begin, "rooms", "rate, nobody is meant")]


async def write_all(rooms: Rooms, size: int, text: str, answers: int) -> None:
    """Have a message in each room, so many rooms at once."""
    numbers = iter(range(size))

    async def write() -> None:
        for number in numbers:
            await rooms.write(text, answers, f"{answers}-{number}")

    async with trio.open_nursery() as nursery:
        for _ in range(min(AT_ONCE, size)):
            nursery.start_soon(write)


BENCHMARK = Benchmark(
    name="rooms",
    about="10,000 rooms with a message each, for an agent or for nobody",
    full=Plan(10_000, 1),
    quick=Plan(20, 1),
    measure=measure,
)
