"""Proves that every store keeps entries as they were last said, and forgets them."""

from __future__ import annotations

import pytest

from runtime.errors import MisuseError, SequenceConflictError
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, StoredEntry
from tests.support.store.engines import Engine
from tests.support.store.rows import NOW, noting


def saying(
    name: str, body: bytes | None = b"{}", *, owner: str = "", expected: int | None = 0
) -> Entry:
    return Entry(
        kind="person", id=name, owner=owner, part=7, body=body, expected=expected
    )


async def put(store: Store, *entries: Entry, at: float = NOW) -> None:
    await store.commit(Commit(at=at, entries=entries))


async def names(store: Store, owner: str | None = None, after: str = "") -> str:
    return "".join(row.id for row in await store.entries("person", owner, after))


async def test_an_entry_comes_back_whole(store: Store) -> None:
    await put(store, saying("x", b"1", owner="o"))
    stored = StoredEntry("person", "x", "o", 7, 3, 1, b"1", NOW)
    assert await store.entry("person", "x") == stored
    assert await store.entry("fact", "x") is None
    assert await store.entry("person", "y") is None


async def test_each_change_makes_a_new_version(store: Store) -> None:
    for version, body in enumerate((b"a", b"b", b"c")):
        await put(store, saying("x", body, expected=version), at=NOW + version)
    found = await store.entry("person", "x")
    assert found is not None
    assert (found.version, found.body, found.at) == (3, b"c", NOW + 2)


async def test_of_two_who_read_the_same_version_one_may_write(store: Store) -> None:
    await put(store, saying("x", b"a"))
    await put(store, saying("x", b"b", expected=1))
    with pytest.raises(SequenceConflictError):
        await put(store, saying("x", b"c", expected=1))
    found = await store.entry("person", "x")
    assert found is not None
    assert found.body == b"b"


async def test_who_expects_nothing_writes_whatever_the_version(store: Store) -> None:
    await put(store, saying("x", b"a", expected=None))
    await put(store, saying("x", b"b", expected=None))
    found = await store.entry("person", "x")
    assert found is not None
    assert (found.version, found.body) == (2, b"b")


async def test_a_forgotten_entry_is_gone(store: Store) -> None:
    await put(store, saying("x"))
    await put(store, saying("x", None, expected=1))
    assert await store.entry("person", "x") is None
    await put(store, saying("x", None, expected=0))  # nothing is there to be forgotten
    await put(store, saying("x", b"new", expected=0))
    assert await names(store) == "x"


async def test_entries_are_listed_by_owner_in_the_order_of_their_ids(
    store: Store,
) -> None:
    await put(store, saying("c", owner="1"), saying("a", owner="1"), saying("b"))
    assert await names(store) == "abc"
    assert await names(store, owner="1") == "ac"
    assert await names(store, owner="2") == ""
    assert await names(store, after="a") == "bc"
    assert [row.id for row in await store.entries("person", limit=2)] == ["a", "b"]


async def test_a_commit_that_fails_leaves_entries_alone(store: Store) -> None:
    await put(store, saying("x", b"old"), saying("y"))
    gone = saying("y", None, expected=None)
    wrong = saying("z", expected=5)
    with pytest.raises(SequenceConflictError):
        await put(store, saying("x", b"new", expected=1), gone, wrong)
    found = await store.entry("person", "x")
    assert found is not None
    assert found.body == b"old"
    assert await names(store) == "xy"


async def test_an_entry_and_what_is_told_of_it_are_stored_together(
    store: Store,
) -> None:
    with pytest.raises(SequenceConflictError):
        await store.commit(
            Commit(at=NOW, records=(noting("r"),), entries=(saying("x", expected=1),))
        )
    assert await store.records("audit") == ()


async def test_entries_are_there_after_a_restart(engine: Engine) -> None:
    store = await engine.open()
    await put(store, saying("x", b"kept"))
    store = await engine.reopen(store)
    found = await store.entry("person", "x")
    await store.aclose()
    assert found is not None
    assert found.body == b"kept"


async def test_what_no_store_can_hold_is_refused(store: Store) -> None:
    with pytest.raises(MisuseError):
        await put(store, saying("\ud800"))
    with pytest.raises(MisuseError):
        await put(store, Entry(kind="person", id="x", part=256, body=b""))
    with pytest.raises(MisuseError):
        await store.entries("person", limit=0)
