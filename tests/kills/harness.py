"""Lets people talk to a server that is killed again and again, then looks."""

from __future__ import annotations

import random  # noqa: TID251  only those with a seed are used
import signal
from pathlib import Path

import msgspec
import trio

from tests.kills import points
from tests.kills.people import Conversation, Said
from tests.kills.platform import Platform
from tests.kills.provider import Provider, open_provider
from tests.kills.servers import KILLED, Life, Server, Servers
from tests.kills.verdict import Verdict, judge
from tests.processes.running import PATIENCE, rows

CHATS = 4
LONGEST = 0.4
"""Seconds that a process lives after it was ready, when it dies at any moment."""

POINT_WITHIN = 5.0
"""Seconds in which a process comes to a named point; it is killed anyhow then."""

UNSETTLED = """SELECT 1 FROM inbox WHERE settled_at IS NULL
    UNION ALL SELECT 1 FROM outbox WHERE settled_at IS NULL"""


class Report(msgspec.Struct):
    """What came of many kills."""

    kills: int = 0
    at_points: dict[str, int] = {}
    """How many died exactly there."""

    missed: dict[str, int] = {}
    """How many were killed because they did not come there."""

    restarts: list[float] = []
    """Seconds from the start of each process after a kill until it was ready."""

    said: list[Said] = []
    """What people wrote; of one database only."""

    lives: list[Life] = []
    """The processes; of one database only."""

    verdict: Verdict = msgspec.field(default_factory=Verdict)


def plan(kills: int, dice: random.Random) -> list[str]:
    """Choose where each process dies: half of them at named points, all in turn."""
    named = [points.NAMED[number % len(points.NAMED)] for number in range(kills // 2)]
    others = [
        points.STARTING if dice.random() < 0.2 else points.ANY
        for _ in range(kills - len(named))
    ]
    chosen = named + others
    dice.shuffle(chosen)
    return chosen


async def kill_many(folder: Path, chosen: list[str], dice: random.Random) -> Report:
    """Kill as many processes as there are points, on one database, and judge.

    Args:
        folder: a new one.
        chosen: where each process is to die.
        dice: choose the moments.
    """
    report = Report(at_points={}, missed={}, restarts=[])
    async with open_provider() as provider, trio.open_nursery() as nursery:
        servers = Servers(folder, provider.base_url)
        people = [Conversation(f"chat{n}", servers) for n in range(CHATS)]
        for conversation in people:
            nursery.start_soon(conversation.talk)
        for point in chosen:
            killing = Killing(servers, provider, point, dice)
            is_there = await killing.run(nursery)
            counts = report.at_points if is_there else report.missed
            counts[point] = counts.get(point, 0) + 1
        is_at_rest = await come_to_rest(servers, people, nursery)
        nursery.cancel_scope.cancel()
    report.kills = len(chosen)
    # The first process starts on no database, after nobody's death.
    report.restarts = [
        life.ready_after for life in servers.lives[1:] if life.ready_after
    ]
    report.said = [message for each in people for message in each.said]
    report.lives = servers.lives
    report.verdict = judge(folder, report.said, report.lives)
    if not is_at_rest:
        report.verdict.faults.append(f"not at rest {PATIENCE:g} s after the last start")
    if "Traceback" in servers.log:
        report.verdict.faults.append(f"a traceback in {folder / 'stderr'}")
    return report


async def come_to_rest(
    servers: Servers, people: list[Conversation], nursery: trio.Nursery
) -> bool:
    """Start a process that nobody kills; tells whether it did all there was to do."""
    server = await servers.start(nursery)
    assert await servers.wait_ready(server), servers.log[-2000:]
    for conversation in people:
        conversation.end()
    with trio.move_on_after(PATIENCE) as patience:
        while not all(each.is_done for one in people for each in one.said):
            await server.wait_gone(0.02)
        while rows(servers.folder, UNSETTLED):
            await server.wait_gone(0.02)
    server.process.send_signal(signal.SIGTERM)
    assert await server.wait_gone(PATIENCE)
    assert server.process.returncode == 0, servers.log[-2000:]
    return not patience.cancelled_caught


class Killing:
    """One process, from its start to its violent end.

    Args:
        servers: where it is started.
        provider: the model of some points, or the platform.
        point: where it dies.
        dice: choose the moment.
    """

    def __init__(
        self,
        servers: Servers,
        provider: Provider | Platform,
        point: str,
        dice: random.Random,
    ) -> None:
        self._servers = servers
        self._provider = provider
        self._point = point
        self._dice = dice

    async def run(self, nursery: trio.Nursery) -> bool:
        """Start it and see it die; tells whether it was at its point."""
        number = self._dice.randint(1, 4)
        server = await self._servers.start(nursery, self._point, number)
        self._provider.arm(self._point, number, server.kill)
        if self._point == points.STARTING:
            # Chosen: a start takes about half a second, on a busy machine more.
            if not await server.wait_gone(self._dice.uniform(0.0, 0.8)):
                server.kill()
            is_there = True
        else:
            await self._servers.wait_ready(server)
            is_there = await self._end(server)
        await server.gone.wait()
        self._provider.arm("", 0, int)
        assert server.process.returncode == KILLED, self._servers.log[-2000:]
        return is_there

    async def _end(self, server: Server) -> bool:
        """Kill it at any moment, or wait until it has killed itself."""
        if self._point == points.ANY:
            if not await server.wait_gone(self._dice.uniform(0.0, LONGEST)):
                server.kill()
            return True
        if self._point == points.SHUTDOWN:
            await server.wait_gone(self._dice.uniform(0.0, LONGEST))
            server.process.send_signal(signal.SIGTERM)
        is_there = await server.wait_gone(POINT_WITHIN)
        if not is_there:
            server.kill()
        return is_there
