"""Slow model: sixty-four people, and a model that takes half a second.

As in `bench_http.py`. Nobody can have more than 128 answers a second of such a model;
what is missing is what Callboard adds. Once people begin at any moment, as people do;
once all in the same, and then their answers fall due in the same moment again and
again.
"""

from __future__ import annotations

from benchmarks.arithmetic import percentile
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.provider import ANSWER, provided
from benchmarks.stage.serving import AGENT, served, with_provider
from benchmarks.stage.visitors import Visit, visit

CHATS = 64
SECONDS = 0.5


def measure(plan: Plan) -> list[Figure]:
    """Let everybody write their share of `size` messages, both ways."""
    share = max(1, plan.size // CHATS)
    figures: list[Figure] = []
    with provided(SECONDS) as base_url, served(with_provider(base_url)) as server:
        # Uncounted: a server's first messages load what the others use.
        visit(Visit(server.address, AGENT, CHATS, 1, "warm", ANSWER))
        for suffix, within in (("", SECONDS), (", all at once", 0.0)):
            name = f"within-{within:g}"
            visited = visit(
                Visit(
                    server.address,
                    AGENT,
                    CHATS,
                    share,
                    name,
                    ANSWER,
                    begin_within=within,
                )
            )
            p50, p99 = (percentile(visited.taken, each) / 1e6 for each in (0.5, 0.99))
            figures += [
                Figure(f"rate{suffix}", visited.pace, "messages/s"),
                Figure(f"p50{suffix}", p50, "ms"),
                Figure(f"p99{suffix}", p99, "ms"),
            ]
    return figures


BENCHMARK = Benchmark(
    name="slow_model",
    about="message over HTTP, durable, 500 ms model over HTTP; 64 chats",
    full=Plan(1_280, 1),
    quick=Plan(64, 1),
    measure=measure,
    warms_up=False,
)
