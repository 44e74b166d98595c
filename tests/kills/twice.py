"""Whether a server on a platform without ids says things twice only where it may.

*Said twice* is promised for one window alone: the process died after the platform had
the words, and before the receipt was stored. So whoever said it first is dead, had
stored no receipt, and did so for one message of a chat at most; and whoever says it
again has counted it among what was in doubt.
"""

from __future__ import annotations

import random  # noqa: TID251  only those with a seed are used
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import trio

from tests.kills import points
from tests.kills.harness import UNSETTLED, Killing, Report
from tests.kills.platform import CHATS, SAID, Platform, Saying, open_platform
from tests.kills.servers import Life, Servers
from tests.kills.verdict import Verdict, inversions
from tests.processes.running import PATIENCE, rows

NAMED = (
    SAID,
    "before-receipt",
    "before-sending",
    "before-accept",
    "before-acknowledgement",
    "before-reply",
    "after-receipt",
)

RECEIPTS = """SELECT inbox.platform_id, outbox.settled_at
    FROM outbox JOIN inbox ON inbox.id = outbox.correlation_id"""


def plan_plain(kills: int, dice: random.Random) -> list[str]:
    """Choose where each process dies: mostly at named points, all in turn."""
    chosen = [NAMED[number % len(NAMED)] for number in range(kills - kills // 5)]
    chosen += [points.ANY] * (kills - len(chosen))
    dice.shuffle(chosen)
    return chosen


async def kill_plain(folder: Path, chosen: list[str], dice: random.Random) -> Report:
    """Kill as many processes as there are points, on one database, and judge."""
    report = Report(at_points={}, missed={}, restarts=[])
    async with open_platform() as platform, trio.open_nursery() as nursery:
        servers = Servers(folder, "", platform.port)
        for point in chosen:
            is_there = await Killing(servers, platform, point, dice).run(nursery)
            counts = report.at_points if is_there else report.missed
            counts[point] = counts.get(point, 0) + 1
        is_at_rest = await _come_to_rest(servers, platform, nursery)
        nursery.cancel_scope.cancel()
    report.kills = len(chosen)
    report.lives = servers.lives
    report.restarts = [x.ready_after for x in servers.lives[1:] if x.ready_after]
    report.verdict = judge_plain(folder, platform, servers.lives)
    if not is_at_rest:
        report.verdict.faults.append(f"not at rest {PATIENCE:g} s after the last start")
    if "Traceback" in servers.log:
        report.verdict.faults.append(f"a traceback in {folder / 'stderr'}")
    return report


async def _come_to_rest(
    servers: Servers, platform: Platform, nursery: trio.Nursery
) -> bool:
    """Start a process that nobody kills; tells whether it did all there was to do."""
    server = await servers.start(nursery)
    assert await servers.wait_ready(server), servers.log[-2000:]
    platform.end()
    with trio.move_on_after(PATIENCE) as patience:
        while not platform.is_quiet or rows(servers.folder, UNSETTLED):
            await server.wait_gone(0.02)
    server.process.send_signal(signal.SIGTERM)
    assert await server.wait_gone(PATIENCE)
    assert server.process.returncode == 0, servers.log[-2000:]
    return not patience.cancelled_caught


def judge_plain(folder: Path, platform: Platform, lives: list[Life]) -> Verdict:
    """Look at what people saw, and at the database at rest."""
    verdict = Verdict(faults=[f"said to nobody: {each}" for each in platform.strange])
    verdict.acknowledged = len(platform.taken)
    first: dict[str, Saying] = {}
    for saying in platform.sayings:
        first.setdefault(saying.message.id, saying)
        if saying.text != f"you said {saying.message.text}":
            verdict.faults.append(f"{saying.message.text}: said {saying.text!r}")
    verdict.answered = len(first)
    lost = [x for x in platform.written if x.id in platform.taken - first.keys()]
    verdict.lost = len(lost)
    verdict.faults += [f"{each.text}: lost" for each in lost]
    places = {message.id: place for place, message in enumerate(platform.written)}
    for number in range(CHATS):
        order = [x for x in first.values() if x.message.chat == f"chat{number}"]
        wrong = inversions([places[each.message.id] for each in order])
        verdict.out_of_order += wrong
        if wrong:
            verdict.faults.append(f"chat{number}: out of order")
    receipts = {str(name): at for name, at in rows(folder, RECEIPTS)}
    judge_twice(receipts, platform.sayings, lives, verdict)
    return verdict


class Twice(msgspec.Struct, frozen=True):
    """Words that were said, and said again."""

    before: Saying
    again: Saying


def repeats(sayings: list[Saying]) -> list[Twice]:
    """Find what was said again, in the order in which it was."""
    found: list[tuple[int, Twice]] = []
    by_message: dict[str, list[tuple[int, Saying]]] = {}
    for place, saying in enumerate(sayings):
        by_message.setdefault(saying.message.id, []).append((place, saying))
    for same in by_message.values():
        pairs = pairwise(same)
        found += [
            (place, Twice(before, again)) for (_, before), (place, again) in pairs
        ]
    return [twice for _, twice in sorted(found, key=lambda each: each[0])]


def judge_twice(
    receipts: dict[str, object],
    sayings: list[Saying],
    lives: list[Life],
    verdict: Verdict,
) -> None:
    """Hold what was said twice against the window in which it may be.

    Args:
        receipts: when each message's receipt was stored, in Unix seconds.
        sayings: what people saw, in order.
        lives: the processes.
        verdict: where it is put down.
    """
    ended = {life.pid: life.ended for life in lives}
    in_window: Counter[tuple[int, str]] = Counter()
    by: Counter[int] = Counter()
    for twice in repeats(sayings):
        before, again, message = twice.before, twice.again, twice.again.message
        verdict.said_twice += 1
        by[again.pid] += 1
        in_window[before.pid, message.chat] += 1
        stored_at = receipts.get(message.id)
        if before.pid == again.pid:
            verdict.faults.append(f"{message.text}: said twice by one process")
        elif not isinstance(stored_at, float) or stored_at <= ended[before.pid]:
            verdict.faults.append(f"{message.text}: said again despite its receipt")
        if again.in_doubt < by[again.pid]:
            verdict.faults.append(f"{message.text}: said again and not counted")
    for (_, chat), count in in_window.items():
        if count > 1:
            verdict.faults.append(f"{chat}: {count} said again after one death")
