"""How far an account has read is kept in the database, each account for itself."""

from __future__ import annotations

from connectors.chat.accounts import ConnectorShelf, StoredBookmarks
from runtime.clock import SystemClock
from runtime.store.rows import Commit, Entry
from tests.fakes.store.in_memory import MemoryStore

ANNA, BEN = "@anna:example.org", "@ben:example.org"
KIND = "matrix_sync"


async def test_each_account_has_its_own_place_on_each_connector() -> None:
    store, clock = MemoryStore(), SystemClock()
    here = StoredBookmarks(ConnectorShelf(store, clock, "matrix"), KIND)
    assert await here.read(ANNA) == ""
    for token in ("s1", "s2"):
        await here.write(ANNA, token)
    await here.write(BEN, "s9")
    store = store.reopened()
    again = StoredBookmarks(ConnectorShelf(store, clock, "matrix"), KIND)
    assert (await again.read(ANNA), await again.read(BEN)) == ("s2", "s9")
    elsewhere = StoredBookmarks(ConnectorShelf(store, clock, "other"), KIND)
    assert await elsewhere.read(ANNA) == ""


async def test_a_place_that_cannot_be_read_is_none() -> None:
    store, clock = MemoryStore(), SystemClock()
    entry = Entry(kind=KIND, id=f"matrix/{ANNA}", part=0, body=b"\xff")
    await store.commit(Commit(at=1.0, entries=(entry,)))
    assert (
        await StoredBookmarks(ConnectorShelf(store, clock, "matrix"), KIND).read(ANNA)
        == ""
    )
