"""Proves that every store keeps its rows as `runtime.store.Store` promises."""

from __future__ import annotations

import msgspec
import pytest
import trio

from runtime.errors import (
    DeliveryKnownError,
    DuplicateError,
    MisuseError,
    SequenceConflictError,
)
from runtime.store.port import Store
from runtime.store.rows import (
    Commit,
    Committed,
    MessageKey,
    Receipt,
    Settle,
    StoredEvent,
)
from tests.support.store.engines import (
    names_undelivered,
    names_unsettled,
)
from tests.support.store.rows import (
    NOW,
    accepting,
    enqueueing,
    events,
    heard,
    saying,
    settling,
    stored,
    stored_delivery,
    turn,
)


async def test_a_commit_gives_back_the_numbers_of_its_rows(store: Store) -> None:
    await store.commit(Commit(at=NOW, accepts=(heard("m1"),)))
    committed = await store.commit(
        Commit(
            at=NOW,
            accepts=(heard("m2"), heard("m3")),
            appends=(events("a", 0, 3), events("b", 0), events("a", 3)),
            deliveries=(saying("d1"),),
        )
    )
    assert committed == Committed((2, 3), (3, 1, 4), (1,))


async def test_rows_come_back_whole(store: Store) -> None:
    await store.commit(
        Commit(
            at=NOW + 1,
            accepts=(heard("m1", platform_id="p1"),),
            appends=(events("a", 0, body=b"\x00\xff"),),
            deliveries=(saying("d1"),),
        )
    )
    assert await store.unsettled() == (stored(1, "m1", platform_id="p1", body=b"'m1'"),)
    assert await store.read("a") == (
        StoredEvent("a", 1, "kind0", b"\x00\xff", 7, 3, NOW + 1),
    )
    assert await store.undelivered() == (
        stored_delivery(1, "d1", body=b"'d1'", at=NOW + 1),
    )


async def test_messages_are_listed_in_the_order_of_acceptance(store: Store) -> None:
    await store.commit(accepting("m2", "m1"))
    await store.commit(accepting("m4"))
    await store.commit(accepting("m3"))
    await store.commit(settling("m1"))
    assert await names_unsettled(store) == ["m2", "m4", "m3"]
    assert await store.unsettled_keys() == tuple(
        MessageKey(row.number, row.id, row.connector, row.platform_id, row.part)
        for row in await store.unsettled()
    )


async def test_listings_are_paged_by_the_number_of_the_last_row(store: Store) -> None:
    names = [f"x{number}" for number in range(7)]
    await store.commit(accepting(*names))
    await store.commit(enqueueing(*names))
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 7),)))
    for after in (0, 3, 6, 7, 99):
        rest = names[after:][:3]
        assert [row.id for row in await store.unsettled(after, 3)] == rest
        assert [key.id for key in await store.unsettled_keys(after, 3)] == rest
        assert [row.id for row in await store.undelivered(None, after, 3)] == rest
        assert [row.sequence for row in await store.read("a", after, 3)] == [
            number for number in range(after + 1, after + 4) if number <= 7
        ]


async def test_a_platform_message_is_accepted_once(store: Store) -> None:
    await store.commit(Commit(at=NOW, accepts=(heard("m1", platform_id="p"),)))
    with pytest.raises(DuplicateError, match="cli/p"):
        await store.commit(Commit(at=NOW, accepts=(heard("m2", platform_id="p"),)))
    with pytest.raises(DuplicateError, match="m1"):
        await store.commit(Commit(at=NOW, accepts=(heard("m1", platform_id="q"),)))
    await store.commit(
        Commit(at=NOW, accepts=(heard("m3", connector="web", platform_id="p"),))
    )
    assert await names_unsettled(store) == ["m1", "m3"]


async def test_a_settled_message_is_still_a_duplicate(store: Store) -> None:
    await store.commit(accepting("m1"))
    await store.commit(settling("m1"))
    with pytest.raises(DuplicateError):
        await store.commit(accepting("m1"))


@pytest.mark.parametrize("expected", [0, 1, 3])
async def test_a_writer_that_has_not_seen_the_last_event_is_refused(
    store: Store, expected: int
) -> None:
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 2),)))
    with pytest.raises(SequenceConflictError, match="ends at 2"):
        await store.commit(Commit(at=NOW, appends=(events("a", expected),)))
    assert len(await store.read("a")) == 2


async def test_an_append_without_events_checks_only(store: Store) -> None:
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 2),)))
    committed = await store.commit(Commit(at=NOW, appends=(events("a", 2, 0),)))
    assert committed.sequences == (2,)
    with pytest.raises(SequenceConflictError):
        await store.commit(Commit(at=NOW, appends=(events("a", 1, 0),)))


@pytest.mark.parametrize(
    ("spoiler", "error"),
    [
        (Commit(at=NOW, accepts=(heard("old"),)), DuplicateError),
        (Commit(at=NOW, appends=(events("a", 7),)), SequenceConflictError),
        (Commit(at=NOW, deliveries=(saying("old"),)), DuplicateError),
        (Commit(at=NOW, settles=(Settle("none", "dead"),)), MisuseError),
        (Commit(at=NOW, receipts=(Receipt("none", "dead"),)), MisuseError),
    ],
)
async def test_a_commit_that_fails_writes_nothing(
    store: Store, spoiler: Commit, error: type[Exception]
) -> None:
    first = Commit(at=NOW, accepts=(heard("old"),), deliveries=(saying("old"),))
    await store.commit(first)
    with pytest.raises(error):
        await store.commit(
            Commit(
                at=NOW,
                accepts=(heard("new"), *spoiler.accepts),
                appends=(events("a", 0, 2), *spoiler.appends),
                deliveries=(saying("new"), *spoiler.deliveries),
                settles=(Settle("old", "dead"), *spoiler.settles),
                receipts=(Receipt("old", "sent"), *spoiler.receipts),
            )
        )
    assert await names_unsettled(store) == ["old"]
    assert await names_undelivered(store) == ["old"]
    assert await store.read("a") == ()
    assert store.healthy


async def test_a_known_delivery_is_told_from_a_settled_message(store: Store) -> None:
    await store.commit(accepting("m1"))
    await store.commit(enqueueing("d1"))
    again = msgspec.structs.replace(settling("m1"), deliveries=(saying("d1"),))
    with pytest.raises(DeliveryKnownError, match="d1"):
        await store.commit(again)
    await store.commit(settling("m1"))
    with pytest.raises(DuplicateError, match="replied already") as told:
        await store.commit(again)
    assert not isinstance(told.value, DeliveryKnownError)


async def test_nothing_is_said_beside_a_message_that_is_settled(store: Store) -> None:
    await store.commit(accepting("m1"))
    for number, beside in enumerate(("", "m1", "unheard of")):
        said = msgspec.structs.replace(saying(f"d{number}"), beside=beside)
        await store.commit(Commit(at=NOW, deliveries=(said,)))
    again = msgspec.structs.replace(saying("d1"), beside="m1")
    with pytest.raises(DeliveryKnownError, match="d1"):
        await store.commit(Commit(at=NOW, deliveries=(again,)))
    await store.commit(Commit(at=NOW, settles=(Settle("m1", "dead", "of disk"),)))
    late = msgspec.structs.replace(saying("late"), beside="m1")
    with pytest.raises(DuplicateError, match="'m1' is dead already") as told:
        await store.commit(Commit(at=NOW, deliveries=(saying("other"), late)))
    assert not isinstance(told.value, DeliveryKnownError)
    assert await names_undelivered(store) == ["d0", "d1", "d2"]


async def test_a_message_can_be_accepted_and_settled_at_once(store: Store) -> None:
    await store.commit(turn(0, "a"))
    assert await names_unsettled(store) == []
    assert await names_undelivered(store) == []
    counts = await store.counts()
    assert counts.inbox.get("replied") == 1
    assert counts.outbox.get("sent") == 1


async def test_the_first_terminal_state_stays(store: Store) -> None:
    await store.commit(accepting("m1"))
    await store.commit(enqueueing("d1"))
    await store.commit(Commit(at=NOW, settles=(Settle("m1", "cancelled", "/stop"),)))
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "unknown"),)))
    with pytest.raises(DuplicateError, match="cancelled already"):
        await store.commit(settling("m1"))
    with pytest.raises(DuplicateError, match="unknown already"):
        await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "sent"),)))
    counts = await store.counts()
    assert counts.inbox.get("cancelled") == 1
    assert counts.outbox.get("unknown") == 1


async def test_deliveries_keep_their_order_in_each_chat(store: Store) -> None:
    rows = (
        saying("d1", connector="web", chat="a"),
        saying("d2", connector="cli", chat="a"),
        saying("d3", connector="web", chat="b"),
        saying("d4", connector="web", chat="a"),
    )
    await store.commit(Commit(at=NOW, deliveries=rows))
    assert await names_undelivered(store) == ["d1", "d2", "d3", "d4"]
    assert [row.id for row in await store.undelivered("web", 1)] == ["d3", "d4"]
    assert await store.undelivered("mail") == ()
    await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "dead"),)))
    assert [row.id for row in await store.undelivered("web")] == ["d3", "d4"]


async def test_a_commit_that_fails_leaves_its_neighbours_alone(store: Store) -> None:
    await store.commit(accepting("taken"))
    refused: list[str] = []

    async def write(number: int) -> None:
        try:
            await store.commit(
                accepting(f"m{number}", *(["taken"] if number % 3 == 0 else []))
            )
        except DuplicateError:
            refused.append(f"m{number}")

    async with trio.open_nursery() as nursery:
        for number in range(60):
            nursery.start_soon(write, number)
    stored = await names_unsettled(store)
    assert len(refused) == 20
    assert set(stored) == {"taken", *(f"m{n}" for n in range(60))} - set(refused)


async def test_of_two_writers_at_one_position_one_wins(store: Store) -> None:
    outcomes: list[str] = []

    async def write(stream: str) -> None:
        try:
            await store.commit(Commit(at=NOW, appends=(events(stream, 0),)))
            outcomes.append(stream)
        except SequenceConflictError:
            outcomes.append("refused")

    async with trio.open_nursery() as nursery:
        for stream in ("a", "b", "c") * 4:
            nursery.start_soon(write, stream)
    assert sorted(outcomes) == ["a", "b", "c"] + ["refused"] * 9


async def test_one_task_commits_in_its_own_order(store: Store) -> None:
    async def talk(stream: str) -> None:
        for number in range(20):
            await store.commit(turn(number, stream))
            assert len(await store.read(stream)) == number + 1

    async with trio.open_nursery() as nursery:
        for stream in ("a", "b", "c"):
            nursery.start_soon(talk, stream)
    for stream in ("a", "b", "c"):
        sequences = [event.sequence for event in await store.read(stream)]
        assert sequences == list(range(1, 21))


async def test_what_was_received_is_in_exactly_one_state(store: Store) -> None:
    names = [f"m{number}" for number in range(10)]
    await store.commit(accepting(*names))
    settles = (
        Settle("m0", "replied"),
        Settle("m1", "replied"),
        Settle("m2", "dropped", "flood"),
        Settle("m3", "cancelled"),
        Settle("m4", "dead", "poison"),
    )
    await store.commit(Commit(at=NOW, settles=settles))
    counts = await store.counts()
    assert {state: rows for state, rows in counts.inbox.items() if rows} == {
        "accepted": 5,
        "replied": 2,
        "dropped": 1,
        "cancelled": 1,
        "dead": 1,
    }
    assert sum(counts.inbox.values()) == len(names)
    assert sum(counts.outbox.values()) == 0
