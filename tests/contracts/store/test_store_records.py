"""Proves that every store keeps snapshots and records, and forgets when told."""

from __future__ import annotations

import pytest

from runtime.errors import DuplicateError, MisuseError
from runtime.store.port import Store
from runtime.store.rows import MAX_ROWS, Commit, StoredRecord, StoredSnapshot
from tests.support.store.engines import Engine
from tests.support.store.rows import NOW, accepting, heard, noting, summing_up


async def names(store: Store, kind: str = "audit", owner: str | None = None) -> str:
    """Give the ids of records as they are listed, as one text."""
    return "".join(row.id for row in await store.records(kind, owner))


async def test_a_snapshot_comes_back_whole(store: Store) -> None:
    assert await store.snapshot("a") is None
    await store.commit(Commit(at=NOW, snapshots=(summing_up("a", 4, b"\x00"),)))
    assert await store.snapshot("a") == StoredSnapshot("a", 4, 1, b"\x00", 7, 3, NOW)
    assert await store.snapshot("b") is None


async def test_an_older_snapshot_never_replaces_a_newer_one(store: Store) -> None:
    for sequence in (4, 9, 7):
        body = str(sequence).encode()
        await store.commit(Commit(at=NOW, snapshots=(summing_up("a", sequence, body),)))
    await store.commit(Commit(at=NOW, snapshots=(summing_up("b", 1, b"1"),)))
    newest = await store.snapshot("a")
    assert newest is not None
    assert (newest.sequence, newest.body) == (9, b"9")


async def test_a_snapshot_of_the_same_event_is_made_anew(store: Store) -> None:
    for at, body in ((NOW, b"old shape"), (NOW + 1, b"new shape")):
        await store.commit(Commit(at=at, snapshots=(summing_up("a", 4, body),)))
    newest = await store.snapshot("a")
    assert newest is not None
    assert (newest.body, newest.at) == (b"new shape", NOW + 1)


async def test_a_record_comes_back_whole(store: Store) -> None:
    await store.commit(Commit(at=NOW, records=(noting("x", owner="anna"),)))
    assert await store.records("audit") == (
        StoredRecord(1, "audit", "x", "anna", 7, 3, b"{}", NOW),
    )
    assert await store.records("fact") == ()


async def since(store: Store, at: float, number: int = 0, limit: int = 1000) -> str:
    """Give the ids of records from a time on, as one text."""
    found = await store.records_since("audit", at, number, limit)
    return "".join(row.id for row in found)


async def test_records_since_a_time_come_in_the_order_of_their_times(
    store: Store,
) -> None:
    for at, ids in ((NOW, "ab"), (NOW + 2, "c"), (NOW + 1, "de"), (NOW - 1, "f")):
        rows = tuple(noting(name) for name in ids)
        await store.commit(Commit(at=at, records=rows))
    await store.commit(Commit(at=NOW, records=(noting("x", kind="fact"),)))
    assert await since(store, 0.0) == "fabdec"
    assert await since(store, NOW) == "abdec"
    assert await since(store, NOW + 2) == "c"
    assert await since(store, NOW + 3) == ""


async def test_records_since_a_time_are_read_on_page_by_page(store: Store) -> None:
    for at in (NOW, NOW + 1):
        rows = tuple(noting(f"{at - NOW:.0f}{letter}") for letter in "abc")
        await store.commit(Commit(at=at, records=rows))
    found, after = "", (NOW, 0)
    while page := await store.records_since("audit", *after, limit=2):
        found += "".join(row.id for row in page)
        after = (page[-1].at, page[-1].number)
    assert found == "0a0b0c1a1b1c"


@pytest.mark.parametrize("limit", [0, MAX_ROWS + 1])
async def test_records_since_a_time_are_read_in_bounded_pages(
    limit: int, store: Store
) -> None:
    with pytest.raises(MisuseError):
        await store.records_since("audit", 0.0, limit=limit)


async def test_a_record_replaces_the_one_of_its_kind_and_id(store: Store) -> None:
    await store.commit(Commit(at=NOW, records=(noting("x"), noting("y"))))
    await store.commit(Commit(at=NOW, records=(noting("x", kind="fact"),)))
    again = noting("x", owner="ben", body=b"[]")
    await store.commit(Commit(at=NOW + 1, records=(again,)))
    assert await names(store) == "xy"
    newest, oldest = await store.records("audit")
    assert newest == StoredRecord(4, "audit", "x", "ben", 7, 3, b"[]", NOW + 1)
    assert oldest.number == 2
    assert await names(store, "fact") == "x"


async def test_records_are_listed_by_owner_those_written_last_first(
    store: Store,
) -> None:
    rows = [noting(name, owner="anna" if name in "ace" else "ben") for name in "abcdef"]
    await store.commit(Commit(at=NOW, records=tuple(rows)))
    assert await names(store) == "fedcba"
    assert await names(store, owner="anna") == "eca"
    assert await names(store, owner="") == ""


async def test_records_are_paged_by_the_number_of_the_last_row(store: Store) -> None:
    rows = tuple(noting(name, owner="anna") for name in "abcdefg")
    await store.commit(Commit(at=NOW, records=rows))
    for owner in (None, "anna"):
        seen, before = "", 0
        while page := await store.records("audit", owner, before, 3):
            seen += "".join(row.id for row in page)
            before = page[-1].number
        assert seen == "gfedcba"


async def test_pruning_forgets_only_old_records_of_the_kind(store: Store) -> None:
    for number, name in enumerate("abcde"):
        await store.commit(Commit(at=NOW + number, records=(noting(name),)))
    await store.commit(Commit(at=NOW, records=(noting("z", kind="fact"),)))
    await store.commit(Commit(at=NOW + 9, records=(noting("a"),)))
    assert await store.prune_records("audit", NOW + 4, 2) == 2
    assert await store.prune_records("audit", NOW + 4, 2) == 1
    assert await store.prune_records("audit", NOW + 4, 2) == 0
    assert await names(store) == "ae"
    assert await names(store, "fact") == "z"


async def test_the_number_of_a_pruned_record_is_never_given_again(
    store: Store,
) -> None:
    await store.commit(Commit(at=NOW, records=(noting("a"), noting("b"))))
    assert await store.prune_records("audit", NOW + 1) == 2
    await store.commit(Commit(at=NOW, records=(noting("c"),)))
    assert [row.number for row in await store.records("audit")] == [3]


async def test_a_commit_that_fails_leaves_snapshots_and_records_alone(
    store: Store,
) -> None:
    await store.commit(
        Commit(
            at=NOW,
            accepts=(heard("m1"),),
            snapshots=(summing_up("a", 1, b"1"),),
            records=(noting("x"),),
        )
    )
    with pytest.raises(DuplicateError):
        await store.commit(accepting("m1"))
    with pytest.raises(MisuseError):
        await store.commit(
            Commit(
                at=NOW + 1,
                snapshots=(summing_up("a", 2, b"2"), summing_up("b", 1, b"1")),
                records=(noting("x", body=b"[]"), noting("y"), noting("\ud83d")),
            )
        )
    snapshot = await store.snapshot("a")
    assert snapshot is not None
    assert snapshot.body == b"1"
    assert await store.snapshot("b") is None
    assert [(row.id, row.body) for row in await store.records("audit")] == [
        ("x", b"{}")
    ]


async def test_a_name_with_half_a_character_is_refused(store: Store) -> None:
    half = "half \ud83d"
    for call in (
        lambda: store.snapshot(half),
        lambda: store.records(half),
        lambda: store.records("audit", half),
        lambda: store.prune_records(half, NOW),
        lambda: store.answered(half, "p"),
        lambda: store.answered("cli", half),
        lambda: store.messages([("cli", "p"), (half, "p")]),
        lambda: store.messages([("cli", half)]),
    ):
        with pytest.raises(MisuseError, match="half a character"):
            await call()


async def test_what_was_noted_is_there_after_a_restart(engine: Engine) -> None:
    first = await engine.open()
    await first.commit(
        Commit(at=NOW, snapshots=(summing_up("a", 1, b"1"),), records=(noting("x"),))
    )
    second = await engine.reopen(first)
    assert await second.snapshot("a") == StoredSnapshot("a", 1, 1, b"1", 7, 3, NOW)
    await second.commit(Commit(at=NOW, records=(noting("y"),)))
    assert [row.number for row in await second.records("audit")] == [2, 1]
    await second.aclose()


async def test_own_commits_are_no_change_from_outside(store: Store) -> None:
    assert not await store.changes_outside()
    await store.commit(accepting("m1"))
    await store.prune(NOW)
    assert not await store.changes_outside()
