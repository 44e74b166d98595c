"""Heartbeats are as the settings say, also if somebody changes one in that moment."""

from __future__ import annotations

import msgspec
import trio
import trio.testing

from actors.journal.parts import entries_of
from actors.schedule.rows import KIND
from runtime.errors import SequenceConflictError
from runtime.store.rows import Commit, Committed
from tests.fakes.company.arranging import kept
from tests.fakes.company.beating import Listed, beating
from tests.fakes.company.company import open_company
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock


class Overtaken(MemoryStore):
    """A disk on which another program once is first to write an appointment."""

    def __init__(self, before: MemoryStore) -> None:
        super().__init__()
        self._rows = before.reopened()._rows
        self.is_overtaken = False

    async def commit(self, commit: Commit) -> Committed:
        is_about = any(each.kind == KIND for each in entries_of(commit))
        if is_about and not self.is_overtaken:
            self.is_overtaken = True
            raise SequenceConflictError("another writer was first; read it again")
        return await super().commit(commit)


async def test_what_the_settings_say_is_not_lost_when_a_row_changes_meanwhile(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed())
    cast.agents["ben"] = cast.agents["anna"]
    async with open_company(autojump_clock, cast):
        assert len(await kept(cast)) == 2
    anna = cast.agents.pop("ben")
    beat = msgspec.structs.replace(anna.heartbeat, every=60)
    cast.agents["anna"] = msgspec.structs.replace(anna, heartbeat=beat)
    cast.store = disk = Overtaken(cast.store)
    async with open_company(autojump_clock, cast):
        await trio.sleep(10)
        assert disk.is_overtaken
        assert [it.repeat for it in (await kept(cast)).values()] == ["beat 60"]
