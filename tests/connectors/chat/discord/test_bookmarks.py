"""How far a bot has read survives a restart, whatever stands in its row."""

from __future__ import annotations

from actors.people.rows import part_of
from connectors.chat.accounts import ConnectorShelf
from connectors.chat.discord.listener import KIND, BotPlace, StoredDiscordBookmarks
from runtime.clock import SystemClock
from runtime.store.rows import Commit, Entry
from tests.fakes.store.in_memory import MemoryStore


async def test_a_place_is_found_again_under_its_connector_and_agent() -> None:
    store = MemoryStore()
    bookmarks = StoredDiscordBookmarks(ConnectorShelf(store, SystemClock(), "discord"))
    assert await bookmarks.read("anna") == BotPlace()
    place = BotPlace(after=1 << 62, user="5", side=("7", "8"))
    await bookmarks.write("anna", place)
    assert await bookmarks.read("anna") == place
    assert await bookmarks.read("ben") == BotPlace()
    other = StoredDiscordBookmarks(ConnectorShelf(store, SystemClock(), "second"))
    assert await other.read("anna") == BotPlace()


async def test_a_row_that_makes_no_sense_begins_anew() -> None:
    store = MemoryStore()
    known = "discord/anna"
    entry = Entry(
        kind=KIND, id=known, owner="discord", part=part_of(known), body=b"\xff{"
    )
    await store.commit(Commit(at=1.0, entries=(entry,)))
    bookmarks = StoredDiscordBookmarks(ConnectorShelf(store, SystemClock(), "discord"))
    assert await bookmarks.read("anna") == BotPlace()
