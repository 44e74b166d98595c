"""Proves what operators may rely on when they read or change a store from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from runtime.errors import MisuseError, SequenceConflictError
from runtime.postgresql.database import PostgresqlDatabase
from runtime.sqlite.database import SqliteDatabase
from runtime.store.database import DROPPED, OldestOpen, Totals
from runtime.store.port import Store
from runtime.store.rows import (
    BY_HAND,
    Claim,
    Commit,
    Defer,
    Entry,
    Receipt,
    ReceivedState,
    SendAttempt,
    Settle,
    SettledState,
    StoredDelivery,
    StoredMessage,
)
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.store.memory_database import MemoryDatabase
from tests.support.store.engines import Engine, PostgresqlEngine
from tests.support.store.rows import (
    NOW,
    accepting,
    enqueueing,
    events,
    heard,
    noting,
    summing_up,
)

Outside = SqliteDatabase | MemoryDatabase | PostgresqlDatabase

LATER = NOW + 100
PAGE = 1000
"""Rows that SQLite's engine reads at once."""


@pytest.fixture
def database(store: Store, engine: Engine, tmp_path: Path) -> Outside:
    if isinstance(store, MemoryStore):
        return MemoryDatabase(store)
    if isinstance(engine, PostgresqlEngine):
        return PostgresqlDatabase(engine.server)
    return SqliteDatabase(tmp_path / "callboard.db")


@pytest.fixture
async def queue(store: Store, database: Outside) -> Outside:
    """Give a database with a message and a delivery, whose changes nobody has seen."""
    await store.commit(accepting("m1"))
    await store.commit(enqueueing("d1", correlation_id="m1"))
    await store.changes_outside()
    return database


async def message(store: Store) -> StoredMessage:
    answered = await store.answered("cli", "m1")
    assert answered is not None
    return answered.message


async def delivery(store: Store) -> StoredDelivery:
    answered = await store.answered("cli", "m1")
    assert answered is not None
    return answered.deliveries[0]


def settling_it(row: StoredMessage) -> Commit:
    """Settle a message, as those who drop it do."""
    return Commit(at=LATER, settles=(Settle(row.id, "dropped", DROPPED),))


async def settle(store: Store, state: SettledState) -> None:
    await store.commit(
        Commit(at=NOW, claims=(Claim("m1", 3),), settles=(Settle("m1", state, "why"),))
    )


async def test_messages_are_listed_by_state_and_order(
    store: Store, database: Outside
) -> None:
    await store.commit(accepting("m1", "m2", "m3", "m4"))
    await store.commit(
        Commit(
            at=NOW,
            claims=(Claim("m2", 1),),
            settles=(Settle("m3", "dead"), Settle("m4", "replied")),
        )
    )
    with database.inspect() as rows:
        newest_first = rows.messages()
        oldest_first = rows.messages(newest_first=False, limit=2)
        being_done = rows.messages(("accepted", "running"))
        dead = rows.messages(["dead"])
        behind = rows.messages(past=newest_first[1].number)
    assert [row.id for row in newest_first] == ["m4", "m3", "m2", "m1"]
    assert [row.id for row in oldest_first] == ["m1", "m2"]
    assert [row.id for row in being_done] == ["m2", "m1"]
    assert [row.id for row in dead] == ["m3"]
    assert [row.id for row in behind] == ["m2", "m1"]


async def test_deliveries_are_listed_besides_some_receipts(
    store: Store, database: Outside
) -> None:
    await store.commit(enqueueing("d1", "d2", "d3"))
    receipts = (Receipt("d1", "dead", "gone: a*"), Receipt("d2", "dead", "a*b"))
    await store.commit(Commit(at=NOW, receipts=receipts))
    with database.inspect() as rows:
        dead = rows.deliveries(["dead"])
        besides = rows.deliveries(["dead"], besides=("gone", "b"))
        assert [row.id for row in dead] == ["d2", "d1"]
        assert [row.id for row in besides] == ["d2"]
        assert rows.deliveries(["dead"], besides=("gone", "a*"), limit=9) == ()
        assert rows.count_deliveries(["dead"], ["gone"]) == 1
        assert rows.count_deliveries() == 3


async def test_who_looks_live_sees_what_is_written_meanwhile(
    store: Store, database: Outside
) -> None:
    with database.inspect(live=True) as rows:
        assert rows.messages() == ()
        await store.commit(accepting("m1"))
        await store.commit(enqueueing("d1", "d2"))
        await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "sent"),)))
        assert rows.messages() == await store.unsettled()
        assert rows.deliveries(["pending"]) == await store.undelivered()
        assert rows.counts() == await store.counts()
    assert not await store.changes_outside()


async def test_the_oldest_open_rows_are_those_that_are_not_settled(
    store: Store, database: Outside
) -> None:
    await store.commit(accepting("m1"))
    with database.inspect() as rows:
        assert rows.oldest_open() == OldestOpen(NOW, 0.0)
    late = (msgspec.structs.replace(heard("m2"), at=LATER),)
    await store.commit(Commit(at=LATER, accepts=late))
    await store.commit(enqueueing("d1", at=LATER))
    with database.inspect() as rows:
        assert rows.oldest_open() == OldestOpen(NOW, LATER)
    settle = (Settle("m1", "replied"),)
    sent = (Receipt("d1", "sent"),)
    await store.commit(Commit(at=LATER, settles=settle, receipts=sent))
    with database.inspect() as rows:
        assert rows.oldest_open() == OldestOpen(LATER, 0.0)


async def test_what_is_written_meanwhile_is_not_seen_otherwise(
    store: Store, database: Outside
) -> None:
    await store.commit(accepting("m1"))
    with database.inspect() as rows:
        await store.commit(accepting("m2"))
        await store.commit(enqueueing("d1"))
        assert rows.totals() == Totals(1, 0, 0, {})
    records = (noting("x"), noting("y"), noting("x", kind="usage"))
    await store.commit(Commit(at=NOW, records=records))
    with database.inspect() as rows:
        assert rows.totals() == Totals(2, 1, 0, {"audit": 2, "usage": 1})


async def test_a_row_is_found_by_the_beginning_of_its_id(
    store: Store, database: Outside
) -> None:
    await store.commit(accepting("01AB", "01AC", "01ACX", "02"))
    await store.commit(enqueueing("01AB:0", "01AB:1"))
    with database.inspect() as rows:
        assert rows.message("01AB").id == "01AB"
        assert rows.message("01AC").id == "01AC", "an id goes before a beginning"
        assert rows.message("02").id == "02"
        assert rows.delivery("01AB:1").id == "01AB:1"
        with pytest.raises(MisuseError, match=r"'01': 01AB, 01AC, 01ACX; give more"):
            rows.message("01")
        with pytest.raises(MisuseError, match="no message has an id"):
            rows.message("03")
        with pytest.raises(MisuseError, match="no delivery has an id"):
            rows.delivery("01AB:2")
        with pytest.raises(MisuseError, match="give the id"):
            rows.message("")


async def test_of_many_rows_that_an_id_may_mean_a_few_are_named(
    store: Store, database: Outside
) -> None:
    await store.commit(accepting(*(f"m{number}" for number in range(9))))
    with database.inspect() as rows, pytest.raises(MisuseError) as told:
        rows.message("m")
    assert "m0, m1, m2, m3, m4, …; give more" in str(told.value)


async def test_deliveries_are_given_by_what_they_belong_to(
    store: Store, database: Outside
) -> None:
    await store.commit(enqueueing("d1", "d2", correlation_id="m1"))
    await store.commit(enqueueing("d3", correlation_id="m2"))
    with database.inspect() as rows:
        assert [row.id for row in rows.deliveries_of("m1")] == ["d1", "d2"]


async def test_events_of_a_stream_and_those_below_come_as_they_happened(
    store: Store, database: Outside
) -> None:
    for at, stream in enumerate(("a/b", "a", "ab", "a/c", "a-b", "a/b")):
        expected = len(await store.read(stream))
        await store.commit(Commit(at=NOW + at, appends=(events(stream, expected),)))
    with database.inspect() as rows:
        found = [(row.number, row.event.stream) for row in rows.events("a")]
        assert found == [(1, "a/b"), (2, "a"), (4, "a/c"), (6, "a/b")]
        assert [row.number for row in rows.events("a", 2, 1)] == [4]
        assert [row.event.sequence for row in rows.events("a/b")] == [1, 2]
        assert [row.number for row in rows.events_before("a", limit=2)] == [4, 6]
        assert [row.number for row in rows.events_before("a", 4, 1)] == [2]


async def test_the_journal_comes_stream_by_stream_over_all_pages(
    store: Store, database: Outside
) -> None:
    streams = {"b": 3, "a": PAGE, "a/x": 2}
    for stream, many in streams.items():
        await store.commit(Commit(at=NOW, appends=(events(stream, 0, many),)))
    with database.inspect() as rows:
        given = [(event.stream, event.sequence) for event in rows.journal()]
    assert given == [
        (stream, number + 1)
        for stream in sorted(streams)
        for number in range(streams[stream])
    ]


async def test_streams_are_found_by_how_they_end(
    store: Store, database: Outside
) -> None:
    for stream in ("a/m1", "b/m1", "m1/a", "a/m12"):
        await store.commit(Commit(at=NOW, appends=(events(stream, 0),)))
    with database.inspect() as rows:
        assert sorted(rows.streams_ending("/m1")) == ["a/m1", "b/m1"]
        assert len(rows.streams_ending("/m1", 1)) == 1
        assert rows.streams_ending("/m3") == ()


async def test_records_come_newest_first_by_their_time(
    store: Store, database: Outside
) -> None:
    for at in (3.0, 1.0, 2.0):
        await store.commit(Commit(at=at, records=(noting(f"at {at}"),)))
    many = tuple(noting(f"{number}") for number in range(PAGE))
    await store.commit(Commit(at=0.5, records=many))
    with database.inspect() as rows:
        found = list(rows.records("audit"))
        late = [row.id for row in rows.records("audit", since=2.0)]
        past = rows.records("audit", past=(found[1].at, found[1].number))
        assert next(past).id == "at 1.0"
        assert rows.record("audit", "at 1.0") == found[2]
        assert rows.record("audit", "at 9") is None
    names = [row.id for row in found]
    assert names[:3] == ["at 3.0", "at 2.0", "at 1.0"]
    assert names[3:] == [f"{number}" for number in reversed(range(PAGE))]
    assert late == names[:2]


async def test_entries_and_snapshots_are_given_as_the_store_gives_them(
    store: Store, database: Outside
) -> None:
    entries = tuple(
        Entry(kind="person", id=name, owner=owner, part=7, body=b"{}")
        for name, owner in (("b", "x"), ("a", "y"), ("c", "x"))
    )
    commit = Commit(at=NOW, snapshots=(summing_up("a", 1),), entries=entries)
    await store.commit(commit)
    with database.inspect() as rows:
        assert rows.snapshot("a") == await store.snapshot("a")
        assert tuple(rows.entries("person")) == await store.entries("person")
        assert [row.id for row in rows.entries("person", "x")] == ["b", "c"]
        assert list(rows.entries("room")) == []


async def test_senseless_questions_are_refused(store: Store, database: Outside) -> None:
    assert store.healthy
    with database.inspect() as rows:
        for call in (
            lambda: rows.messages(limit=0),
            lambda: rows.deliveries(limit=10**6),
            lambda: rows.events("half \ud83d"),
            lambda: rows.message("half \ud83d"),
            lambda: rows.streams_ending("x", 0),
            lambda: rows.streams_ending("\ud83d"),
        ):
            with pytest.raises(MisuseError):
                call()


async def test_a_dead_message_is_tried_again_by_a_running_server(
    store: Store, queue: Outside
) -> None:
    await settle(store, "dead")
    result = queue.retry_message("m", LATER)
    assert (result.has_changed, result.text) == (True, "message m1 is tried again")
    assert await store.changes_outside()
    (row,) = await store.unsettled()
    assert (row.state, row.attempts, row.due_at) == ("accepted", 3, 0.0)
    assert (row.settled_at, row.reason) == (0.0, BY_HAND)
    await store.commit(Commit(at=LATER, claims=(Claim("m1", 1),)))


async def test_a_message_that_waits_for_its_time_is_tried_at_once(
    store: Store, queue: Outside
) -> None:
    await store.commit(Commit(at=NOW, defers=(Defer("m1", 2, LATER, "busy"),)))
    assert queue.retry_message("m1", NOW).has_changed
    row = await message(store)
    assert (row.due_at, row.attempts) == (0.0, 2)
    result = queue.retry_message("m1", NOW)
    assert not result.has_changed
    assert "waiting for its turn already" in result.text


@pytest.mark.parametrize("state", ["replied", "dropped", "cancelled"])
async def test_what_has_ended_well_is_not_tried_again(
    store: Store, queue: Outside, state: SettledState
) -> None:
    await settle(store, state)
    before = await message(store)
    result = queue.retry_message("m1", LATER)
    assert (result.has_changed, f"m1 is {state}" in result.text) == (False, True)
    assert await message(store) == before
    assert not await store.changes_outside()


@pytest.mark.parametrize("is_dead", [True, False])
async def test_a_message_nobody_works_on_is_dropped(
    store: Store, queue: Outside, *, is_dead: bool
) -> None:
    if is_dead:
        await settle(store, "dead")
    assert queue.drop_message("m1", LATER, settling_it).has_changed
    row = await message(store)
    assert (row.state, row.reason, row.settled_at) == ("dropped", "by hand", LATER)
    assert await store.changes_outside()


async def test_a_running_message_is_left_alone(store: Store, queue: Outside) -> None:
    await store.commit(Commit(at=NOW, claims=(Claim("m1", 1),)))
    dropped = queue.drop_message("m1", LATER, settling_it)
    for result in (dropped, queue.retry_message("m1", LATER)):
        assert not result.has_changed
        assert "m1 is running" in result.text
    assert "/stop" in dropped.text
    assert (await message(store)).state == "running"


async def test_what_was_running_when_the_last_process_ended_is_dropped(
    engine: Engine, store: Store, queue: Outside
) -> None:
    await store.commit(Commit(at=NOW, claims=(Claim("m1", 1),)))
    await store.aclose()
    assert queue.drop_message("m1", LATER, settling_it).has_changed
    again = await engine.reopen(store)
    row = await message(again)
    await again.aclose()
    assert (row.state, row.reason) == ("dropped", "by hand")


@pytest.mark.parametrize("state", ["dead", "unknown"])
async def test_a_delivery_that_failed_is_sent_again(
    store: Store, queue: Outside, state: ReceivedState
) -> None:
    receipt = Receipt("d1", state, "gone", attempts=5)
    await store.commit(Commit(at=NOW, receipts=(receipt,)))
    assert queue.retry_delivery("d1").has_changed
    row = await delivery(store)
    assert (row.state, row.attempts, row.receipt) == ("pending", 5, BY_HAND)
    assert row.settled_at == 0.0
    assert [row.id for row in await store.undelivered("cli")] == ["d1"]


async def test_a_delivery_on_its_way_is_left_alone(
    store: Store, queue: Outside
) -> None:
    assert "already" in queue.retry_delivery("d1").text
    await store.commit(Commit(at=NOW, send_attempts=(SendAttempt("d1", 1),)))
    for result in (queue.retry_delivery("d1"), queue.drop_delivery("d1", LATER)):
        assert not result.has_changed
        assert "being sent" in result.text
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "sent"),)))
    for result in (queue.retry_delivery("d1"), queue.drop_delivery("d1", LATER)):
        assert not result.has_changed
        assert "d1 is sent" in result.text
    assert (await delivery(store)).state == "sent"


async def test_a_delivery_that_waits_is_dropped(store: Store, queue: Outside) -> None:
    assert queue.drop_delivery("d1", LATER).has_changed
    row = await delivery(store)
    assert (row.state, row.receipt, row.settled_at) == ("dead", "by hand", LATER)


async def test_people_are_told_what_may_be_sent_in_spite_of_a_drop(
    store: Store, queue: Outside
) -> None:
    waiting = queue.drop_delivery("d1", LATER)
    assert waiting.text.endswith("it is not sent, unless that was under way")
    assert queue.retry_delivery("d1").has_changed
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "unknown", "gone"),)))
    in_doubt = queue.drop_delivery("d1", LATER)
    assert in_doubt.text.endswith("it is not sent again")


async def test_an_id_that_is_unknown_or_unclear_changes_nothing(
    store: Store, queue: Outside
) -> None:
    await store.commit(accepting("m2"))
    with pytest.raises(MisuseError, match="more than one message"):
        queue.drop_message("m", LATER, settling_it)
    with pytest.raises(MisuseError, match="no delivery"):
        queue.drop_delivery("d2", LATER)
    assert len(await store.unsettled()) == 2
    assert not await store.changes_outside()


async def test_units_are_written_all_or_none(store: Store, database: Outside) -> None:
    unseen = Entry(kind="person", id="sam", part=7, body=b"{}", expected=0)
    await store.changes_outside()
    assert database.write(iter([accepting("m1"), accepting("m2")])) == 2
    assert await store.changes_outside()

    def cut_off() -> Iterator[Commit]:
        yield accepting("m3")
        raise ValueError("the file ends here")

    with pytest.raises(ValueError, match="ends here"):
        database.write(cut_off())
    assert database.write((Commit(at=NOW, entries=(unseen,)),)) == 1
    with pytest.raises(SequenceConflictError):
        database.write((accepting("m4"), Commit(at=NOW, entries=(unseen,))))
    assert [row.id for row in await store.unsettled()] == ["m1", "m2"]
