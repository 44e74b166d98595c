"""Interrupt: from `/stop` to the model call that ends, with others at work or not.

The `/stop` goes the whole way: it is stored, routed and heard before it stops anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.config.agents import AgentConfig
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.room import Rooms, gathered
from benchmarks.stopwatch import now_ns, spans

if TYPE_CHECKING:
    from actors.messages.inbound import ModelAnswer, ModelRequest
    from actors.ports import Speak

AGENT = "anna"
OTHERS = 32
"""Rooms in which the agent is at work as well, where it is: half of the turns that may
run at once."""


class EndlessModel:
    """A model that writes until nobody listens, and notes when that is."""

    def __init__(self) -> None:
        self.begun: dict[str, trio.Event] = {}
        """By what was said to it: set when it has begun to answer."""

        self.ended: dict[str, int] = {}
        """The same, when that ended; nanoseconds of the stopwatch."""

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Begin, and never end."""
        word = request.lines[-1].text.split()[-1]
        speak("Once upon a time")
        self.begun[word].set()
        try:
            await trio.sleep_forever()
        finally:
            self.ended[word] = now_ns()
        raise AssertionError("unreachable: nothing ends it but its being cancelled")

    async def aclose(self) -> None:
        """Have nothing to close."""


def measure(plan: Plan) -> list[Figure]:
    """Stop `size` answers, with nobody else at work, and then beside others."""
    return [
        *trio.run(stop_all, plan.size, 0),
        *trio.run(stop_all, plan.size, OTHERS),
    ]


async def stop_all(size: int, others: int) -> list[Figure]:
    """Run the company; have answers begin, and stop one after the other."""
    rooms, model = Rooms((AGENT,)), EndlessModel()
    taken: list[int] = []
    async with (
        gathered(rooms, model, {AGENT: AgentConfig()}),
        trio.open_nursery() as nursery,
    ):
        for number in range(others):
            await begin(rooms, model, f"other-{number}", nursery)
        for number in range(size):
            word = f"story-{number}"
            await begin(rooms, model, word, nursery)
            heard = await rooms.write(f"/stop@{AGENT}", 1, word)
            taken.append(model.ended[word] - heard.written)
        nursery.cancel_scope.cancel()
    return spans(taken, f" stop → model, {others} others")


async def begin(
    rooms: Rooms, model: EndlessModel, word: str, nursery: trio.Nursery
) -> None:
    """Have an answer begin in a room of its own."""
    is_begun = model.begun[word] = trio.Event()
    # Its one answer is that it was stopped.
    nursery.start_soon(rooms.write, f"@{AGENT} {word}", 1, word)
    await is_begun.wait()


BENCHMARK = Benchmark(
    name="interrupt",
    about="from /stop to the model call that ends; alone, and beside 32 others",
    full=Plan(500, 1),
    quick=Plan(3, 1),
    measure=measure,
)
