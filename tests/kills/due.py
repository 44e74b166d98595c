"""Whether appointments keep their times while a server is killed again and again.

Nobody writes: all that happens is due, every second something. It dies right before a
slot is stored and right after, in the middle of a turn and before its answer is
stored, and while it starts. *Carried out twice*, or *not at all*, must be nothing.
"""

from __future__ import annotations

import random  # noqa: TID251  only those with a seed are used
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import trio

from actors.messages.inbound import Address, Inbound
from actors.schedule.appointments import Appointment
from actors.schedule.rows import as_entry
from connectors.admin.schedule import all_rows, write
from runtime.clock import SystemClock
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from tests.kills import points
from tests.kills.harness import UNSETTLED, Killing, Report
from tests.kills.provider import open_provider
from tests.kills.servers import Servers
from tests.kills.verdict import GAPS, Verdict
from tests.processes.running import PATIENCE, rows

NAMED = (
    "before-accept",
    "before-acknowledgement",
    "after-claim",
    "before-reply",
    "before-sending",
    points.MODEL_CALL,
)
"""The boundary of a slot from both sides; the turn on it; its answer, both sides."""

PERIODS = {"HEARTBEAT": 2, "TASK": 3, "CRON": 1}
ONCE = 30
"""Things that happen once, one each second."""

DATABASE = "callboard.db"
INBOX = "SELECT platform_id, state, body FROM inbox ORDER BY number"


def plan_due(kills: int, dice: random.Random) -> list[str]:
    """Choose where each process dies: mostly at named points, all in turn."""
    chosen = [NAMED[number % len(NAMED)] for number in range(kills - kills // 4)]
    others = kills - len(chosen)
    chosen += [dice.choice((points.ANY, points.STARTING)) for _ in range(others)]
    dice.shuffle(chosen)
    return chosen


async def kill_due(folder: Path, chosen: list[str], dice: random.Random) -> Report:
    """Kill as many processes as there are points, on one database, and judge."""
    report = Report(at_points={}, missed={}, restarts=[])
    await fill(folder / DATABASE)
    async with open_provider() as provider, trio.open_nursery() as nursery:
        servers = Servers(folder, provider.base_url)
        for point in chosen:
            is_there = await Killing(servers, provider, point, dice).run(nursery)
            counts = report.at_points if is_there else report.missed
            counts[point] = counts.get(point, 0) + 1
        is_at_rest = await _come_to_rest(servers, nursery)
        nursery.cancel_scope.cancel()
    report.kills = len(chosen)
    report.lives = servers.lives
    report.restarts = [x.ready_after for x in servers.lives[1:] if x.ready_after]
    report.verdict = judge_due(folder)
    if not is_at_rest:
        report.verdict.faults.append(f"not at rest {PATIENCE:g} s after the last start")
    if "Traceback" in servers.log:
        report.verdict.faults.append(f"a traceback in {folder / 'stderr'}")
    return report


async def fill(path: Path) -> None:
    """Make a database with all that will be due."""
    start = SystemClock().wall() // 1 + 1
    made = {f"ONCE{n:02}": appointment(n, "", start + n) for n in range(ONCE)}
    for number, (name, period) in enumerate(PERIODS.items()):
        it = appointment(number, f"every {period}s", start)
        made[name] = msgspec.structs.replace(it, kind=name.lower())
    entries = tuple(
        as_entry(name, "person:http/zoe", it, 7, 0) for name, it in made.items()
    )
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(Commit(at=start, entries=entries))
    await store.aclose()


def appointment(number: int, repeat: str, first: float) -> Appointment:
    """Make something that is said, or done again and again."""
    return Appointment(
        kind="reminder",
        agent="anna",
        address=Address("http", f"chat{number % 4}"),
        sender_id="zoe",
        person="http/zoe",
        text=f"word {number}",
        repeat=repeat,
        anchor=first,
        next_due=first,
    )


async def _come_to_rest(servers: Servers, nursery: trio.Nursery) -> bool:
    """Start a process that nobody kills; tells whether it did all there was to do."""
    server = await servers.start(nursery)
    assert await servers.wait_ready(server), servers.log[-2000:]
    with trio.move_on_after(PATIENCE + ONCE) as patience:
        while not pause_all(servers.folder / DATABASE):
            await server.wait_gone(0.2)
        while rows(servers.folder, UNSETTLED):
            await server.wait_gone(0.02)
    server.process.send_signal(signal.SIGTERM)
    assert await server.wait_gone(PATIENCE)
    assert server.process.returncode == 0, servers.log[-2000:]
    return not patience.cancelled_caught


def pause_all(path: Path) -> bool:
    """Let rest what repeats; tell whether all rests, or is over."""
    database = SqliteDatabase(path)
    with database.inspect() as store:
        found = [row for row in all_rows(store) if not row.it.paused]
    for row in found:
        if row.it.repeat:
            write(database, row, msgspec.structs.replace(row.it, paused="by hand"))
    return not found


COPY = ":told"


# --- what is judged -----------------------------------------------------------------


def judge_due(folder: Path) -> Verdict:
    """Look at a database at rest."""
    verdict = Verdict(faults=[])
    if rows(folder, "PRAGMA integrity_check") != [("ok",)]:
        verdict.faults.append("the database is damaged")
    verdict.faults += [f"gap in {stream}" for (stream,) in rows(folder, GAPS)]
    fired: Counter[str] = Counter()
    for slot, state, body in rows(folder, INBOX):
        if COPY in str(slot):
            continue  # what was said of it, for the conversation
        fired[str(slot).partition("@")[0]] += 1
        verdict.acknowledged += 1
        verdict.answered += state == "replied"
        verdict.faults += _of_slot(str(slot), body)
        if state != "replied":
            verdict.faults.append(f"{slot}: {state}")
    for number in range(ONCE):
        if fired[f"ONCE{number:02}"] != 1:
            verdict.lost += 1
            verdict.faults.append(f"ONCE{number:02}: {fired[f'ONCE{number:02}']} times")
    with SqliteDatabase(folder / DATABASE).inspect() as store:
        for row in all_rows(store):
            verdict.faults += _of_appointment(row.id, row.it, fired[row.id])
    return verdict


def _of_slot(slot: str, body: Any) -> list[str]:
    due = float(slot.partition("@")[2])
    began = msgspec.json.decode(body, type=Inbound).received_at
    return [f"{slot}: {due - began:.3f} s before its time"] if began < due else []


def _of_appointment(name: str, it: Appointment, fired: int) -> list[str]:
    """Count: each time that passed was carried out, or left out with a reason."""
    passed = round((it.next_due - it.anchor) / PERIODS[name])
    found = [] if it.fired == fired else [f"{name}: {it.fired} told, {fired} stored"]
    if it.fired + it.skipped != passed:
        found.append(f"{name}: {passed} passed, {it.fired + it.skipped} told of")
    if it.paused != "by hand":
        found.append(f"{name}: it rests because of {it.paused!r}")
    return found
