"""What somebody tells reaches nobody else, with the real database and its search.

Time passes as it does, for threads know no other, and is set forward only for what is
scheduled.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import cast

import apsw
import pytest
import trio
import trio.testing

from actors import names
from actors.config.memory import MemoryConfig
from actors.messages.keys import parse_key
from actors.tree import tree
from connectors.models.embedders.local import HashingEmbedder
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.store.facts import FactSearch
from runtime.testing import open_test_system, seeded_order
from tests.fakes.company.company import at_rest, bounce
from tests.fakes.company.crowd import (
    catching,
    check_figures,
    check_talk,
    check_that_it_could_fail,
    live,
    make_cast,
    place_of,
    strangers,
)
from tests.fakes.company.gossip import secrets
from tests.fakes.company.minded import Minded
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

FACTS = """SELECT home.agent, home.scope, fact.kind, fact.category, fact.key, fact.text
    FROM fact JOIN fact_scope AS home ON home.number = fact.scope"""
DELIVERIES = "SELECT connector, chat, body FROM outbox"
EVENTS = "SELECT stream, body FROM journal UNION ALL SELECT stream, body FROM snapshot"
ROWS = (
    "SELECT body FROM inbox",
    "SELECT body, owner FROM record",
    "SELECT body, owner FROM entry",
)


async def play_part(cast_: Minded, people: int, rounds: range, file: Path) -> None:
    """Live through some rounds with this database."""
    store = await SqliteStore.open(
        SqliteFile(file, options=SqliteOptions(synchronous="normal"))
    )
    cast_.store = cast("MemoryStore", store)  # nobody here asks for its rows
    cast_.equip()
    clock = cast("Clock", trio.lowlevel.current_clock())
    try:
        async with open_test_system(cast_.reports) as system:
            await system.start_root(tree(cast_.company()), names.ROOT)
            system.dead_letters.observe(partial(bounce, system))
            await live(cast_, people, rounds, system)
            clock.jump(1_300)  # what was scheduled is due
            await at_rest(cast_)
    finally:
        with trio.CancelScope(shield=True):
            await store.aclose()


def play(order: int, people: int, rounds: int, file: Path) -> Minded:
    cast_ = make_cast(
        memory=MemoryConfig(recall_timeout=60.0), embedder=HashingEmbedder(256)
    )
    half = rounds // 2
    for part in (range(half), range(half, rounds)):
        with seeded_order(order):
            trio.run(play_part, cast_, people, part, file, clock=Clock(rate=1.0))
    return cast_


@pytest.mark.parametrize(
    ("order", "people", "rounds"),
    [pytest.param(0, 50, 8, marks=pytest.mark.deep), (1, 12, 10)],
)
def test_nobody_hears_what_others_told(
    order: int, people: int, rounds: int, tmp_path: Path
) -> None:
    file = tmp_path / "callboard.db"
    with catching() as written:
        cast_ = play(order, people, rounds, file)
    check_talk(cast_)
    check_figures(cast_, written)
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    check_rows(db)
    homes = [(str(row[0]), str(row[1])) for row in set(db.execute(FACTS))]
    kinds = {str(row[2]) for row in db.execute(FACTS)}
    db.close()
    trio.run(check_searches, file, dict.fromkeys(homes))
    check_that_it_could_fail(cast_, kinds)


def place_of_scope(scope: str) -> tuple[str, int]:
    kind, _, name = scope.partition(":")
    connector, chat, *_ = name.split("/")
    assert kind == ("chat" if connector == "group" else "person")
    return place_of(connector, chat)


def check_rows(db: apsw.Connection) -> None:
    """Look at each row of the database."""
    for row in db.execute(FACTS):
        assert not strangers(repr(row), *place_of_scope(row[1]))
    for row in db.execute(DELIVERIES):
        assert not strangers(repr(row), *place_of(row[0], row[1]))
    for row in db.execute(EVENTS):
        key = parse_key("/".join(row[0].split("/")[:5]))  # a turn's steps have six
        place = place_of(key.connector, key.chat, key.sender)
        assert not strangers(repr(row), *place)
    for row in (row for sql in ROWS for row in db.execute(sql)):
        told = secrets(repr(row))
        speakers = {each.speaker for each in told}
        assert len(speakers) <= 1 or len({each.place for each in told}) == 1


async def check_searches(file: Path, homes: Iterable[tuple[str, str]]) -> None:
    """Search as each of them can, for the word that all said and for the others'."""
    found = 0
    with SqliteDatabase(file).reader() as store:
        for agent, scope in homes:
            vector = (await HashingEmbedder(256).embed(("my secret",)))[0]
            search = FactSearch(
                agent=agent,
                scopes=(scope,),
                kinds=("fact", "summary", "log"),
                words=("secret", "d", "g"),
                space=HashingEmbedder(256).space,
                vector=vector,
                now=0.0,
                limit=1_000,
            )
            for each in (await store.facts.search(search)).facts:
                found += 1
                assert each.fact.scope == scope
                assert not strangers(repr(each), *place_of_scope(scope))
    assert found > 0
