"""What the store is asked for while its disk fails: a little of everything.

A workload is a list of steps over the store port alone. It is carried out in memory
first, which tells how the rows must look after each commit, and then on disks that
fail.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal

import apsw
import msgspec
import trio

from runtime.errors import StoreError
from runtime.sqlite.migrations import MIGRATIONS, Migration
from runtime.store.port import Store
from runtime.store.rows import Commit, Committed, Receipt
from tests.fakes.store.in_memory import MemoryStore
from tests.support.store.rows import NOW, accepting, enqueueing, events, settling, turn

STREAMS = ("a", "b", "c", "d", "e", "f", "large")
"""Every stream that any workload writes to."""


class Together(msgspec.Struct, frozen=True):
    """Commits submitted at once, so that some of them share a transaction."""

    commits: tuple[Commit, ...]


class Prune(msgspec.Struct, frozen=True):
    """Some old rows are forgotten."""


class Probe(msgspec.Struct, frozen=True):
    """The disk is tried."""


class Look(msgspec.Struct, frozen=True):
    """All is read."""


class Reopen(msgspec.Struct, frozen=True):
    """The store is closed, and opened again."""


Step = Together | Prune | Probe | Look | Reopen


class Workload(msgspec.Struct, frozen=True):
    """Steps, and the file they begin with."""

    name: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    """Done on a good disk, by a release that has not got the last migration."""

    migrations: Sequence[Migration] = MIGRATIONS
    synchronous: Literal["full", "normal"] = "full"


class Picture(msgspec.Struct, frozen=True):
    """All that the port shows, but for numbers, which a refused commit may use up."""

    events: tuple[tuple[str, int, str, bytes], ...]
    unsettled: tuple[str, ...]
    undelivered: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]


class Expected(msgspec.Struct, frozen=True):
    """How a workload must go."""

    pictures: tuple[Picture, ...]
    """How all looks at the beginning and after each commit, in order."""

    outcomes: tuple[list[Outcome], ...]
    """Of each step."""

    reached: tuple[int, ...]
    """Of each step: the number of the picture that it leads to."""


Outcome = type[Exception] | None
"""How a commit, or another step, was refused; None: it was done."""


async def expect(workload: Workload) -> Expected:
    """Carry out a workload in memory."""
    store = MemoryStore()
    for step in workload.before:
        await carry_out(store, step)
    pictures = [await take_picture(store)]
    outcomes: list[list[Outcome]] = []
    reached: list[int] = []
    for step in workload.steps:
        outcomes.append([])
        for part in apart(step):
            outcomes[-1] += await carry_out(store, part)
            pictures.append(await take_picture(store))
        reached.append(len(pictures) - 1)
    return Expected(tuple(pictures), tuple(outcomes), tuple(reached))


def apart(step: Step) -> list[Step]:
    """Split a step into steps of one commit."""
    if isinstance(step, Together):
        return [Together((commit,)) for commit in step.commits]
    return [step]


async def take_picture(store: Store) -> Picture:
    """Read all there is."""
    found = [event for stream in STREAMS for event in await store.read(stream)]
    counts = await store.counts()
    states = [(f"inbox {state}", count) for state, count in counts.inbox.items()]
    states += [(f"outbox {state}", count) for state, count in counts.outbox.items()]
    return Picture(
        events=tuple((e.stream, e.sequence, e.kind, e.body) for e in found),
        unsettled=tuple(sorted([row.id for row in await store.unsettled()])),
        undelivered=tuple(sorted([row.id for row in await store.undelivered()])),
        counts=tuple(sorted(state for state in states if state[1])),
    )


async def carry_out(store: Store, step: Step) -> list[Outcome]:
    """Do one step; gives what became of each commit of it."""
    match step:
        case Together(commits=commits):
            return await submit_all(store, commits)
        case Prune():
            return [await outcome_of(partial(store.prune, NOW + 1, 2))]
        case Probe():
            return [await outcome_of(store.probe)]
        case Look():
            return [await outcome_of(partial(take_picture, store))]
        case Reopen():
            return [None]


async def outcome_of(work: Callable[[], Awaitable[object]]) -> Outcome:
    """Do something; gives how the store refused it."""
    try:
        await work()
    except StoreError as error:
        return type(error)
    return None


async def submit_all(store: Store, commits: Sequence[Commit]) -> list[Outcome]:
    """Submit commits in one go, in order, and wait for all of them."""
    outcomes: dict[int, Outcome] = {}
    all_told = trio.Event()

    def told(number: int, result: Committed | Exception) -> None:
        outcomes[number] = type(result) if isinstance(result, Exception) else None
        if len(outcomes) == len(commits):
            all_told.set()

    for number, commit in enumerate(commits):
        store.submit(commit, partial(told, number))
    await all_told.wait()
    return [outcomes[number] for number in range(len(commits))]


def one(commit: Commit) -> Together:
    """Make the step of a single commit."""
    return Together((commit,))


def add_table(db: apsw.Connection) -> None:
    """Stand in for the next release's migration: a new table and a new column."""
    db.execute("CREATE TABLE later(id INTEGER PRIMARY KEY, body BLOB) STRICT")
    db.execute("INSERT INTO later SELECT number, zeroblob(3000) FROM journal")
    db.execute("ALTER TABLE inbox ADD COLUMN later TEXT NOT NULL DEFAULT ''")


STANDARD = Workload(
    "standard",
    (
        one(accepting("m1", "m2")),
        one(Commit(at=NOW, appends=(events("a", 0, 3), events("b", 0)))),
        one(turn(0, "c")),
        Look(),
        one(enqueueing("d1", "d2")),
        one(accepting("m1")),  # a platform that says it again
        one(settling("m1")),
        one(Commit(at=NOW, receipts=(Receipt("d1", "sent", receipt="42"),))),
        one(Commit(at=NOW, appends=(events("a", 1),))),  # another writer was first
        one(Commit(at=NOW, appends=(events("large", 0, body=bytes(12_000)),))),
        Probe(),
        Reopen(),
        Look(),
        one(turn(1, "c")),
        Prune(),
        one(turn(2, "c")),
    ),
)
"""One thing after the other, with a restart in the middle."""

CROWD = Workload(
    "crowd",
    (
        Together(tuple(turn(0, stream) for stream in "abcdef")),
        Together((accepting("m1"), turn(1, "a"), accepting("m1"), turn(1, "b"))),
        Together((settling("m1"), *(turn(1, stream) for stream in "cdef"))),
        Reopen(),
        Prune(),
        Together(tuple(turn(2, stream) for stream in "abcdef")),
        Look(),
    ),
)
"""Many at once: groups that share a transaction, some of whom are refused."""

UPGRADE = Workload(
    "upgrade",
    (
        Look(),
        one(turn(2, "a")),
        Reopen(),
        one(turn(3, "a")),
        Prune(),
        Look(),
    ),
    before=(
        Together((turn(0, "a"), turn(1, "a"), turn(0, "b"))),
        one(Commit(at=NOW, appends=(events("large", 0, body=bytes(12_000)),))),
        one(accepting("m1")),
        one(enqueueing("d1")),
    ),
    migrations=(*MIGRATIONS, add_table),
)
"""A new release on an old file: the schema changes first."""

RELAXED = msgspec.structs.replace(STANDARD, name="relaxed", synchronous="normal")
"""Acknowledges what is not flushed; the negative control of the power cuts."""

WORKLOADS = (STANDARD, CROWD, UPGRADE)
