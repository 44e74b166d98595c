"""HTTP: a message over HTTP to an agent whose model is asked over HTTP, and back.

`callboard serve` as people run it, stored with `synchronous = full`; the model
provider and the people are processes of their own. What the server takes of the
processor is its own, all threads together.
"""

from __future__ import annotations

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.machine import processor_seconds
from benchmarks.stage.provider import ANSWER, provided
from benchmarks.stage.serving import AGENT, served, with_provider
from benchmarks.stage.visitors import Visit, visit
from benchmarks.stopwatch import spans

CHATS = (1, 16, 64)


def measure(plan: Plan) -> list[Figure]:
    """Let one, sixteen and sixty-four people write; `size` messages among many."""
    figures: list[Figure] = []
    with provided(0.0) as base_url, served(with_provider(base_url)) as server:
        for chats in CHATS:
            share = max(1, plan.size // max(chats, 8))
            # Uncounted: a server's first messages load what the others use.
            warm = Visit(server.address, AGENT, chats, 2, f"warm-{chats}", ANSWER)
            visit(warm)
            before = processor_seconds(server.process)
            visited = visit(
                Visit(server.address, AGENT, chats, share, f"chat-{chats}", ANSWER)
            )
            spent = processor_seconds(server.process) - before
            count = len(visited.taken)
            figures += [
                Figure(f"rate, {chats}", count / visited.seconds, "messages/s"),
                *spans(visited.taken, f", {chats}"),
                Figure(f"processor, {chats}", 1000 * spent / count, "ms/message"),
            ]
    return figures


BENCHMARK = Benchmark(
    name="http",
    about="message over HTTP, durable, 0 ms model over HTTP; 1, 16 and 64 chats",
    full=Plan(3_200, 1),
    quick=Plan(64, 1),
    measure=measure,
    warms_up=False,
)
