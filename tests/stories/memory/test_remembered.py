"""What people tell an agent is stored with its answer, and recalled when it counts."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio
import trio.testing

from actors.config.memory import MemoryConfig
from actors.journal.parts import entries_of
from actors.memory.kit import MemoryKit, MemoryMetrics
from actors.messages.inbound import ModelRequest
from actors.people.rows import PERSON
from actors.services import Services
from runtime.store.facts import FactListing, StoredFact
from runtime.store.rows import Commit, Committed
from runtime.telemetry.metrics import Metrics
from tests.fakes.company.company import EPOCH, FakeModel, at_rest, heard, open_company
from tests.fakes.company.desked import Desked
from tests.fakes.company.furnished import changed
from tests.fakes.memory.memory import ZOE
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

SAVES = "Noted. [MEMORY:user_preference] Likes green tea with honey [/MEMORY]"


def talk(request: ModelRequest) -> str:
    return SAVES if "remember" in heard(request) else "Yes."


def kit() -> MemoryKit:
    return MemoryKit(MemoryConfig(), MemoryMetrics(Metrics()), None, None)


@dataclass
class Rememberers(Desked):
    """A cast whose agents remember."""

    model: FakeModel = field(default_factory=lambda: FakeModel(talk))
    memory: MemoryKit | None = field(default_factory=kit)

    @property
    def services(self) -> Services:
        return changed(super().services, memory=self.memory)


async def kept(cast: Rememberers) -> tuple[StoredFact, ...]:
    listing = FactListing(agent="anna", scopes=(ZOE,), now=EPOCH)
    return await cast.store.facts.listed(listing)


async def write(cast: Rememberers, text: str, chat: str = "room") -> None:
    cast.platform.write(text, chat=chat)
    await at_rest(cast)


async def test_what_was_of_use_is_written_down_as_such(autojump_clock: Clock) -> None:
    cast = Rememberers()
    async with open_company(autojump_clock, cast):
        await write(cast, "please remember what I like")
        (fact,) = await kept(cast)
        await trio.sleep(1000)
        await write(cast, "which green tea shall I order?", "elsewhere")
        assert fact.text in cast.model.requests[-1].system
        await trio.sleep(100)
        (used,) = await kept(cast)
    assert used.used_at >= fact.used_at + 1000


async def test_without_a_memory_people_are_told_that_nothing_is_kept(
    autojump_clock: Clock,
) -> None:
    cast = Rememberers(memory=None)
    async with open_company(autojump_clock, cast):
        await write(cast, "please remember what I like")
    told = " ".join(cast.platform.said())
    assert "nothing is remembered here" in told
    assert "again" not in told


class StuckPeople(MemoryStore):
    """Never comes back from storing a person."""

    async def commit(self, commit: Commit) -> Committed:
        if any(row.kind == PERSON for row in entries_of(commit)):
            await trio.sleep_forever()
        return await super().commit(commit)


async def test_an_answer_is_not_lost_for_marks_that_nobody_carries_out_in_time(
    autojump_clock: Clock,
) -> None:
    marks = "\n".join(f"LANG_SWITCH: {code}" for code in ("de", "es", "ko") * 4)
    cast = Rememberers(
        store=StuckPeople(), model=FakeModel(lambda _: f"Well.\n{marks}")
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast, within=60.0)
    answer, told = cast.platform.said()
    assert answer == "anna: Well."
    assert "the rest of it (nobody could do it just now; try again)" in told
