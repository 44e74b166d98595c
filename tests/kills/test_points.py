"""Proves that a process dies exactly where it is told to: by what is stored then."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.kills.people import Said, say
from tests.kills.points import change_of
from tests.kills.servers import KILLED, Servers
from tests.processes.running import rows

COUNTS = """SELECT (SELECT count(*) FROM inbox),
    (SELECT count(*) FROM inbox WHERE settled_at IS NOT NULL),
    (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM outbox WHERE settled_at IS NOT NULL)"""


@pytest.mark.parametrize(
    ("point", "stored"),
    [
        ("before-accept", (0, 0, 0, 0)),
        ("before-acknowledgement", (1, 0, 0, 0)),
        ("before-reply", (1, 0, 0, 0)),
        ("before-sending", (1, 1, 1, 0)),
        ("before-receipt", (1, 1, 1, 0)),
        ("after-receipt", (1, 1, 1, 1)),
    ],
)
async def test_a_process_dies_exactly_at_its_point(
    tmp_path: Path, point: str, stored: tuple[int, ...]
) -> None:
    async with trio.open_nursery() as nursery:
        servers = Servers(tmp_path, provider_url="")
        server = await servers.start(nursery, point)
        assert await servers.wait_ready(server), servers.log
        await say(Said("chat", 0), server)
        await server.gone.wait()
    assert server.process.returncode == KILLED
    assert rows(tmp_path, COUNTS) == [stored]


@pytest.mark.parametrize(
    ("statement", "change"),
    [
        ("INSERT INTO inbox\n    (id) VALUES (?)", "accept"),
        ("UPDATE inbox SET state = 'running' WHERE id = ?", "claim"),
        ("UPDATE inbox SET state = ?,\n settled_at = ? WHERE id = ?", "settle"),
        ("UPDATE outbox SET state = 'sending' WHERE id = ?", "attempt"),
        ("UPDATE outbox SET state = ?, settled_at = ? WHERE id = ?", "receipt"),
        ("INSERT INTO journal(stream) VALUES (?)", "event"),
        ("SELECT * FROM inbox WHERE id = ?", None),
        ("INSERT INTO inbox SELECT * FROM older", None),
    ],
)
def test_statements_are_told_apart(statement: str, change: str | None) -> None:
    assert change_of(statement) == change
