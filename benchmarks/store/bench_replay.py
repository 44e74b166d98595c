"""Replay: how fast a conversation comes back from its journal.

Once from all its events, once from its newest snapshot and the events after that, as
a session does when a message wakes it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
import trio

from actors.config.limits import LimitsConfig
from actors.config.sessions import SessionConfig
from actors.journal import commits
from actors.journal.answers import Answer
from actors.journal.history import History
from actors.messages.inbound import Address, Inbound, TranscriptLine
from actors.metrics import LineMetrics
from actors.services import Furnishing, InForce, Services
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now, rate
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from runtime.telemetry.metrics import Metrics

STREAM = "anna/cli/room//zoe"
MAX_HISTORY = 20
PAGE = 1000
GROUP = 500


def measure(plan: Plan) -> list[Figure]:
    """Write `size` exchanges of one conversation, then read it back both ways."""
    with tempfile.TemporaryDirectory() as folder:
        return trio.run(converse, Path(folder) / "replay.db", plan.size)


async def converse(path: Path, size: int) -> list[Figure]:
    """Write and read on a database of its own."""
    store = await SqliteStore.open(SqliteFile(path))
    try:
        await write(store, size)
        begin = now()
        whole = await wake(store, with_snapshot=False)
        replayed = rate(whole.version, begin, "events", "all events")
        begin = now()
        woken = await wake(store, with_snapshot=True)
        waited = now() - begin
    finally:
        await store.aclose()
    assert whole.version == woken.version == size
    assert whole.lines == woken.lines
    assert whole.counted == woken.counted
    return [replayed, Figure("wake from snapshot", waited * 1e3, "ms")]


async def write(store: SqliteStore, size: int) -> None:
    """Store so many exchanges, each as a session would."""
    clock = SystemClock()
    services = Services(
        store=store,
        clock=clock,
        ids=IdSource(clock),
        metrics=LineMetrics(Metrics()),
        in_force=InForce(Furnishing(LimitsConfig(), SessionConfig())),
    )
    history = History(STREAM, MAX_HISTORY)
    for number in range(size):
        answer = exchange(number)
        commit = commits.as_exchange(answer, history, services)
        store.submit(msgspec.structs.replace(commit, settles=()), _pass_over)
        history.take(number + 1, commits.as_event(answer), commit.at)
        if number % GROUP == GROUP - 1:
            await store.commit(Commit(at=commit.at))
    await store.commit(Commit(at=clock.wall()))


def exchange(number: int) -> Answer:
    """Make one exchange of forty words."""
    words = f"message number {number} " + "word " * 17
    inbound = Inbound(
        id=f"m{number}",
        platform="cli",
        platform_id=f"p{number}",
        address=Address("cli", "room"),
        sender_id="zoe",
        sender_name="zoe",
        text=words,
        received_at=1.0,
    )
    lines = (
        TranscriptLine("user", words, name="zoe"),
        TranscriptLine("assistant", words, name="anna"),
    )
    return Answer(inbound=inbound, settled=("replied", "ok"), lines=lines)


async def wake(store: SqliteStore, *, with_snapshot: bool) -> History:
    """Build the history of the conversation."""
    history = History(STREAM, MAX_HISTORY)
    snapshot = await store.snapshot(STREAM) if with_snapshot else None
    if snapshot is not None:
        history.restore(snapshot.sequence, snapshot.body)
    while True:
        events = await store.read(STREAM, history.version, PAGE)
        for event in events:
            history.replay(event.sequence, event.kind, event.body, event.at)
        if len(events) < PAGE:
            return history


def _pass_over(outcome: object) -> None:
    assert not isinstance(outcome, Exception), outcome


BENCHMARK = Benchmark(
    name="replay",
    about="a conversation of 10,000 exchanges read back, with and without its snapshot",
    full=Plan(10_000, 1),
    quick=Plan(60, 1),
    measure=measure,
)
