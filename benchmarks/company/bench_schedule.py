"""Schedule: how late what is due is on its way, among few appointments and many.

The real scheduler on a database in a file. Of all appointments a thousand come due, a
hundred in each second for ten seconds, and once a thousand in the very same second;
the others are a month away. Late is the time from the second at which something is due
until the router hears of it, stored: what the file takes is in it.

Idle is a whole `callboard serve` with a hundredth of the appointments, none of them
due: the processor's time. That it writes nothing, to the database or to its log, is
checked here, too.
"""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, ClassVar

import trio

from actors import names
from actors.config.limits import LimitsConfig
from actors.config.sessions import SessionConfig
from actors.messages.inbound import Address
from actors.metrics import LineMetrics
from actors.protocol import Route
from actors.schedule.appointments import Appointment
from actors.schedule.rows import as_entry
from actors.schedule.scheduler import Scheduler
from actors.services import Furnishing, InForce, Services
from benchmarks.arithmetic import percentile
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.machine import processor_seconds
from benchmarks.stage.serving import AGENT, DATABASE, served
from benchmarks.stopwatch import now
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from runtime.system import open_system
from runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.store.port import Store

CONNECTOR = "http"
DUE = 1_000
SECONDS = 10
SHARES = (100, 10, 1)
MONTH = 30 * 86_400.0
TOGETHER = 1_000
"""Appointments written in one commit."""

SOON = 3.0
"""Seconds until the first is due, when all are read."""

PATIENCE = 120.0
IDLE = 30.0
"""Seconds for which an idle server is watched."""

SETTLES = 3.0
"""Seconds in which it does what a start leaves to be done."""

LEAST = 0.01
"""Percent; the system counts a process's time in steps."""


class Router(Actor):
    """Notes how late it hears of what is due.

    Args:
        clock: by which things are due.
        wanted: how many that are.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(self, clock: SystemClock, wanted: int) -> None:
        super().__init__()
        self._clock = clock
        self._wanted = wanted
        self.late: list[float] = []
        self.has_all = trio.Event()

    def on_receive(self, message: object) -> object:
        """Take what is due; nothing else is told."""
        assert isinstance(message, Route)
        due = float(message.inbound.platform_id.rpartition("@")[2])
        self.late.append(self._clock.wall() - due)
        if len(self.late) == self._wanted:
            self.has_all.set()
        return None


def measure(plan: Plan) -> list[Figure]:
    """Keep a hundredth, a tenth and all of `size` appointments."""
    figures: list[Figure] = []
    due, seconds = min(DUE, plan.size // 10), max(1, SECONDS * plan.size // 100_000)
    for share in SHARES:
        size = plan.size // share
        late = lateness(size, min(due, size), seconds)
        figures += [
            Figure(f"late, p50, {size}", 1e3 * percentile(late, 0.5), "ms"),
            Figure(f"late, p99, {size}", 1e3 * percentile(late, 0.99), "ms"),
            Figure(f"late, worst, {size}", 1e3 * max(late), "ms"),
        ]
    late = lateness(plan.size, due, 1)
    name = f"{due} in one second, last of {plan.size}"
    figures.append(Figure(name, 1e3 * max(late), "ms"))
    return [*figures, *idle(plan.size // SHARES[0], min(IDLE, plan.size / 1000))]


# --- late ---------------------------------------------------------------------------


def lateness(size: int, due: int, seconds: int) -> list[float]:
    """Give by how many seconds each was late."""
    with tempfile.TemporaryDirectory() as folder:
        return trio.run(keep, Path(folder) / DATABASE, size, due, seconds)


async def keep(path: Path, size: int, due: int, seconds: int) -> list[float]:
    """Write all that are far away, start, and write those that will be due."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        store = await SqliteStore.open(SqliteFile(path))
        stack.push_async_callback(store.aclose)
        far = clock.wall() // 1 + MONTH
        await write(store, "far", [far + n for n in range(size - due)])
        # Why a guess: what is due in the meantime would be late from the start.
        first = clock.wall() // 1 + SOON + size / 10_000
        await write(store, "due", [first + n * seconds // due for n in range(due)])
        system = await stack.enter_async_context(open_system())
        router = Router(clock, due)
        system.spawn(router, name=names.ROUTER)
        scheduler = Scheduler(services_of(store, clock), frozenset({CONNECTOR}))
        system.spawn(scheduler, name=names.SCHEDULER)
        with trio.fail_after(PATIENCE):
            await router.has_all.wait()
        return router.late


async def write(store: Store, name: str, dues: Sequence[float]) -> None:
    """Store an appointment for each of these times."""
    for first in range(0, len(dues), TOGETHER):
        entries = tuple(
            as_entry(f"{name}{number:06}", "person:http/zoe", made(due), 7, 0)
            for number, due in enumerate(dues[first : first + TOGETHER], first)
        )
        await store.commit(Commit(at=SystemClock().wall(), entries=entries))


def made(due: float) -> Appointment:
    """Make something that is to be done every day from a time on."""
    return Appointment(
        kind="task",
        agent=AGENT,
        address=Address(CONNECTOR, "room"),
        sender_id="zoe",
        text="see what is new, and say it in a sentence",
        repeat="daily",
        anchor=due,
        next_due=due,
    )


def services_of(store: Store, clock: SystemClock) -> Services:
    """Give the scheduler what it needs."""
    return Services(
        store=store,
        clock=clock,
        ids=IdSource(clock),
        metrics=LineMetrics(Metrics()),
        in_force=InForce(Furnishing(LimitsConfig(), SessionConfig())),
    )


# --- idle ---------------------------------------------------------------------------


def idle(size: int, seconds: float) -> list[Figure]:
    """Watch a server that has nothing to do.

    Raises:
        RuntimeError: it has written something.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        trio.run(fill, home / DATABASE, size)
        with served(folder=home) as server:
            sleep(SETTLES)
            before, used = written(home), processor_seconds(server.process)
            begin = now()
            sleep(seconds)
            used = processor_seconds(server.process) - used
            share = 100 * used / (now() - begin)
            after = written(home)
    if after != before:
        raise RuntimeError(f"a server with nothing to do wrote: {before}, {after}")
    return [Figure(f"idle processor, {size}", max(share, LEAST), "%")]


async def fill(path: Path, size: int) -> None:
    """Make a database with appointments that are a month away."""
    store = await SqliteStore.open(SqliteFile(path))
    try:
        far = SystemClock().wall() // 1 + MONTH
        await write(store, "far", [far + n for n in range(size)])
    finally:
        await store.aclose()


def written(home: Path) -> list[tuple[str, int, int]]:
    """Tell size and last change of the database's files."""
    # Not the index of the log: readers write into that.
    found = [home / DATABASE, home / f"{DATABASE}-wal"]
    return [(x.name, x.stat().st_size, x.stat().st_mtime_ns) for x in found]


BENCHMARK = Benchmark(
    name="schedule",
    about="how late 1,000 appointments begin, of up to 100,000; 1,000 at rest",
    full=Plan(100_000, 1),
    quick=Plan(1_000, 1),
    measure=measure,
    warms_up=False,
)
