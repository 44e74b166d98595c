"""Proves that what is handed over to another part is stored once, by its owner."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
import trio

from runtime.errors import MisuseError
from runtime.nodes.rows import Fence
from runtime.postgresql.database import PostgresqlDatabase
from runtime.postgresql.server import PostgresqlOptions, PostgresqlServer
from runtime.postgresql.store import PostgresqlStore
from runtime.store.copying import TABLES
from runtime.store.port import Store
from runtime.store.rows import (
    Accept,
    AnyRow,
    Commit,
    Enqueue,
    Entry,
    Handover,
    Record,
    Settle,
    kinds_of,
)
from tests.fakes.store.in_memory import MemoryStore
from tests.support.store.engines import make_engine
from tests.support.store.postgresql import emptied, shared_process
from tests.support.store.rows import NOW, accepting, remembering

HERE, THERE = 7, 9
SAID = Enqueue(
    delivery_id="d",
    connector="cli",
    chat="other",
    correlation_id="m",
    part=THERE,
    body=b"{}",
)
GUEST = Entry(kind="guest", id="g", owner="cli", part=THERE, body=b"{}", expected=0)
TOLD = Record(kind="audit", id="a", owner="", part=THERE, body=b"{}")
NOTED = msgspec.structs.replace(remembering("f"), part=THERE)
GIVEN = Commit(
    at=NOW, deliveries=(SAID,), entries=(GUEST,), records=(TOLD,), facts=(NOTED,)
)


def handing(rows: Commit = GIVEN, key: str = "m/1", **own: object) -> Commit:
    handed = Handover(part=THERE, source=HERE, key=key, rows=rows)
    return msgspec.structs.replace(Commit(at=NOW), handovers=(handed,), **own)


async def everything(store: Store) -> list[str]:
    """Name what of the handed rows is there."""
    found = [row.id for row in await store.undelivered()]
    found += [row.id for row in await store.records("audit")]
    found += [row.id for row in await store.entries("guest")]
    counted = await store.facts.counts("bot")
    return found + ["f"] * sum(counted.values())


ALL = ["d", "a", "g", "f"]


async def test_one_process_stores_it_with_what_caused_it(
    store: Store,
) -> None:
    await store.commit(accepting("m"))
    done = await store.commit(handing(settles=(Settle("m", "replied"),)))
    assert done.waiting == ()
    assert await everything(store) == ALL
    assert await store.take_over() == frozenset()


@pytest.mark.parametrize(
    "rows",
    [
        Commit(at=NOW, deliveries=(msgspec.structs.replace(SAID, part=HERE),)),
        Commit(at=NOW, facts=(remembering("f"),)),
        Commit(at=NOW, settles=(Settle("m", "replied"),)),
        handing(),
    ],
)
async def test_only_new_rows_of_one_part_are_handed_over(
    store: Store, rows: Commit
) -> None:
    with pytest.raises(MisuseError):
        await store.commit(handing(rows))
    with pytest.raises(MisuseError):
        await store.commit(handing(key=""))


async def test_a_unit_that_cannot_be_stored_hands_nothing_over(store: Store) -> None:
    with pytest.raises(MisuseError):
        await store.commit(handing(settles=(Settle("never", "replied"),)))
    assert await everything(store) == []


class TwoNodes:
    """Two stores on the same rows, each with a part of its own."""

    def __init__(self, here: MemoryStore | PostgresqlStore, there: Store) -> None:
        self.here = here
        self.there = there

    def give_all(self) -> None:
        """Have the first node own all parts."""
        self.here.parts = None


async def node(name: str, part: int) -> PostgresqlStore:
    """Open the store of one node, which was known before."""
    server = PostgresqlServer(shared_process().dsn("callboard"))
    with server.connect("tests") as db:
        db.execute("INSERT INTO writer VALUES (%s, 0, 0)", (name,))
    seat = Fence(name, 0, 0)
    options = PostgresqlOptions(
        seat=seat, concerns_others=lambda commit: kinds_of(commit) & {"guest"}
    )
    store = await PostgresqlStore.open(
        PostgresqlServer(shared_process().dsn("callboard"), options), epoch=3
    )
    store.parts = frozenset({part})
    return store


@pytest.fixture(params=["memory", "postgresql"])
async def nodes(request: pytest.FixtureRequest) -> AsyncGenerator[TwoNodes]:
    if request.param == "memory":
        here = MemoryStore(epoch=3, parts={HERE})
        yield TwoNodes(here, MemoryStore(epoch=3, parts={THERE}, beside=here))
        return
    emptied()
    first, second = await node("one", HERE), await node("two", THERE)
    yield TwoNodes(first, second)
    await first.aclose()
    await second.aclose()


async def test_it_waits_for_the_owner_of_its_part_who_stores_it_once(
    nodes: TwoNodes,
) -> None:
    done = await nodes.here.commit(handing())
    assert done.waiting == (THERE,)
    assert await everything(nodes.here) == []
    assert await nodes.here.take_over() == frozenset()
    assert await nodes.there.take_over() == kinds_of(GIVEN)
    assert await everything(nodes.here) == ALL
    assert await nodes.there.take_over() == frozenset()


async def test_a_cause_hands_over_once_however_often_it_is_told(
    nodes: TwoNodes,
) -> None:
    await nodes.here.commit(handing())
    await nodes.here.commit(handing())
    assert await nodes.there.take_over()
    await nodes.here.commit(handing())  # its delivery is known by then
    assert await nodes.there.take_over() == frozenset()
    assert await everything(nodes.here) == ALL


async def test_what_cannot_be_stored_any_more_holds_nothing_up(
    nodes: TwoNodes,
) -> None:
    await nodes.there.commit(Commit(at=NOW, entries=(GUEST,)))
    await nodes.here.commit(handing())
    later = Commit(at=NOW, records=(TOLD,))
    await nodes.here.commit(handing(later, "m/2"))
    assert await nodes.there.take_over() == {"audit"}
    assert await everything(nodes.here) == ["a", "g"]


async def test_who_gets_the_part_gets_what_waits_for_it(nodes: TwoNodes) -> None:
    await nodes.here.commit(handing())
    nodes.give_all()
    assert await nodes.here.take_over() == kinds_of(GIVEN)
    assert await nodes.there.take_over() == frozenset()


async def test_nodes_are_told_what_kinds_of_rows_another_one_changed(
    nodes: TwoNodes,
) -> None:
    await nodes.here.changes_outside()
    await nodes.there.changes_outside()
    await nodes.there.commit(Commit(at=NOW, entries=(GUEST,)))
    assert await nodes.here.changes_outside() == {"guest"}
    assert await nodes.here.changes_outside() == frozenset()
    assert await nodes.there.changes_outside() == frozenset()


async def test_what_waits_is_copied_and_forgotten_with_the_rest() -> None:
    emptied()
    first = await node("one", HERE)
    await first.commit(handing())
    await first.aclose()
    database = PostgresqlDatabase(PostgresqlServer(shared_process().dsn("callboard")))

    def forget(row: AnyRow) -> bytes | None:
        return None if row.table == "outbox" else row.body

    removed = await trio.to_thread.run_sync(database.rewrite, forget)
    assert removed == 1
    with database.read_whole() as rows:
        (entries,) = [each for each in TABLES if each.name == "entry"]
        assert [row[1] for row in rows.rows(entries)] == ["g"]


async def test_a_message_may_be_handed_over(tmp_path: Path) -> None:
    store = await make_engine("sqlite", tmp_path).open()
    row = Accept(
        id="n",
        connector="cli",
        platform_id="n",
        part=THERE,
        stream="s",
        body=b"{}",
        at=NOW,
    )
    await store.commit(handing(Commit(at=NOW, accepts=(row,))))
    assert [each.id for each in await store.unsettled()] == ["n"]
    await store.aclose()
