"""Broadcast: a message taken in over REST, and told to whoever has joined its channel.

`callboard serve` with the ElizaOS API as people run it, stored with `synchronous =
full`; clients in a process of their own. "alone": no agent is in the channel. A
channel's next message is said when all have heard the last.
"""

from __future__ import annotations

import socket
import urllib.request
from typing import TYPE_CHECKING

import msgspec

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.listeners import Hear, hear
from benchmarks.stage.serving import SETTINGS, served
from benchmarks.stopwatch import spans

if TYPE_CHECKING:
    from benchmarks.stage.listeners import Heard

CHANNELS = (1, 16, 64)
CROWD = 1_000
ZERO = "00000000-0000-0000-0000-000000000000"
POST = "/api/messaging/ingest-external"
BODY = (
    '{"channel_id":"{channel}","message_server_id":"' + ZERO + '",'
    '"author_id":"zoe","author_display_name":"Zoe","content":"message {number}",'
    '"source_type":"bench"}'
)
WEB = """
[connectors.web]
kind = "web"
port = {port}
rate_limit = 0
"""


def free_port() -> int:
    """Find a port that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def make_channels(address: str, count: int) -> tuple[str, ...]:
    """Make channels without an agent."""
    made: list[str] = []
    for number in range(count):
        request = urllib.request.Request(  # noqa: S310  our own address
            f"{address}/api/messaging/channels",
            data=msgspec.json.encode({"name": f"room {number}", "type": "GROUP"}),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310  likewise
            made.append(msgspec.json.decode(answer.read())["data"]["id"])
    return tuple(made)


def crowd_figures(heard: Heard) -> list[Figure]:
    """Say how long a thousand clients take to hear, and what each costs."""
    return [
        *spans(heard.taken, f", to the last of {CROWD}"),
        Figure("memory", heard.bytes_each / 1024, "KiB/client"),
    ]


def channel_figures(heard: Heard, count: int) -> list[Figure]:
    """Say how many messages so many channels hear, and how soon."""
    rate = len(heard.taken) / heard.seconds
    told = Figure(f"rate, {count}", rate, "messages/s")
    return [told, *spans(heard.taken, f", {count}")]


def measure(plan: Plan) -> list[Figure]:
    """Let one, sixteen and sixty-four channels hear; then a thousand clients one."""
    figures: list[Figure] = []
    port = free_port()
    crowd = min(CROWD, plan.size)
    with served(SETTINGS + WEB.format(port=port)) as server:
        address = f"http://127.0.0.1:{port}"
        # First: what the clients of others leave behind would be taken for theirs.
        one = make_channels(address, 1)
        share = max(2, plan.size // 20)
        asked = Hear(address, one, crowd, share, POST, BODY, server.process)
        figures += crowd_figures(hear(asked))
        for count in CHANNELS:
            channels = make_channels(address, count)
            share = max(2, plan.size // max(count, 4))
            asked = Hear(address, channels, 1, share, POST, BODY, server.process)
            figures += channel_figures(hear(asked), count)
    return figures


BENCHMARK = Benchmark(
    name="broadcast",
    about="REST to Socket.IO broadcast, durable; 1, 16, 64 channels; 1,000 clients",
    full=Plan(1_000, 1),
    quick=Plan(20, 1),
    measure=measure,
    warms_up=False,
)
