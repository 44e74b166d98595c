"""Conductors make agents, which work at once and are there after a restart."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors import names
from actors.agents import rows as staff_rows
from actors.agents.hired import HiredAgent
from actors.agents.messages import ListStaff, ReadStaff
from actors.agents.rows import AGENT, CHANGE
from actors.journal.parts import entries_of
from actors.messages.inbound import ModelRequest
from runtime.errors import StoreUnavailableError
from runtime.store.port import Done
from runtime.store.rows import Commit, Committed, StoredEntry
from runtime.system import ActorSystem
from tests.fakes.company.company import EPOCH, FakeModel, Says, at_rest, open_company
from tests.fakes.company.hirers import CARL, Hirers, saying
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

SHORT = "[UPDATE_AGENT:carl] prompt: You count to ten. [/UPDATE_AGENT]"


@pytest.fixture(autouse=True)
def few_looks() -> None:
    """Have the keeper look as often as ever: here, rows are changed from outside."""


def make_cast(**fields: Any) -> Hirers:
    fields.setdefault("model", FakeModel(saying(hire=CARL, change=SHORT)))
    return Hirers(**fields)


async def write(cast: Hirers, text: str, sender: str = "zoe") -> list[str]:
    """Write something; give all that is answered to it."""
    before = len(cast.platform.deliveries)
    cast.platform.write(text, sender=sender, chat=f"with-{sender}")
    await at_rest(cast)
    await trio.sleep(0.05)
    return [each.text for each in cast.platform.deliveries[before:]]


async def here(system: ActorSystem) -> list[str]:
    staff = system.find(names.STAFF)
    assert staff is not None
    found = await staff.ask(ListStaff(), timeout=5)
    return list(found.agents)


def hired(*, is_active: bool = True) -> HiredAgent:
    return HiredAgent(
        name="carl",
        prompt="You count.",
        model="scripted",
        made_by="boss",
        asked_by="fake/zoe",
        message="m",
        created_at=EPOCH,
        updated_at=EPOCH,
        is_active=is_active,
    )


async def store_agent(cast: Hirers, agent: HiredAgent, version: int = 0) -> None:
    """Write an agent's row as another program would."""
    entry = staff_rows.as_entry(AGENT, agent.name, agent, version)
    await cast.store.commit(Commit(at=EPOCH, entries=(entry,)))


async def test_an_agent_is_made_and_spoken_to_at_once(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast) as system:
        assert await write(cast, "please hire") == [
            "Done.",
            "✓ Agent created: @carl",
        ]
        assert await write(cast, "@carl hi") == ["carl heard @carl hi"]
        assert await here(system) == ["boss", "anna", "carl"]
        assert "@carl: counts things" in "".join(await write(cast, "/who"))
    told = next(x for x in cast.model.requests if x.agent == "carl").system
    assert "You count." in told
    assert "boss, another agent, set you up" in told


async def test_who_was_made_is_there_after_a_restart(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "please hire")
    cast.restart()
    async with open_company(autojump_clock, cast):
        assert await write(cast, "@carl hi") == ["carl heard @carl hi"]
        assert "there is one of this name" in (await write(cast, "please hire"))[1]


async def test_who_was_stored_and_not_started_is_there_after_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    await store_agent(cast, hired())  # the process ended right after the commit
    async with open_company(autojump_clock, cast):
        assert await write(cast, "@carl hi") == ["carl heard @carl hi"]


async def test_the_next_turn_goes_by_what_was_changed(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "please hire")
        await write(cast, "@carl hi")
        assert await write(cast, "please change") == ["✓ Agent changed: @carl"]
        await write(cast, "@carl hi")
        cast.model.talk = saying(change=SHORT.replace("ten", "six"))
        assert await write(cast, "please change") == ["✓ Agent changed: @carl"]
    told = [x.system for x in cast.model.requests if x.agent == "carl"]
    assert ["to ten" in each for each in told] == [False, True]
    rows = await cast.store.records(CHANGE, "carl")
    assert [b'"version":2' in row.body for row in rows] == [False, True, False]
    assert b'"asked_by":"fake/zoe"' in rows[0].body


async def test_work_is_handed_to_whom_the_same_answer_makes(
    autojump_clock: Clock,
) -> None:
    both = f"{CARL}\n[DELEGATE:carl] count the chairs [/DELEGATE]"
    cast = make_cast(model=FakeModel(saying(hire=both)))
    async with open_company(autojump_clock, cast):
        told = await write(cast, "please hire")
    assert told[-1] == "carl heard count the chairs"


async def test_everybody_knows_a_new_colleague(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "hello")
        await write(cast, "please hire")
        await write(cast, "hello again")
    told = [x.system for x in cast.model.requests if x.agent == "boss"]
    assert "- carl: counts things" not in told[0]
    assert "- carl: counts things" in told[-1]


async def test_a_turn_that_is_stopped_makes_nobody(autojump_clock: Clock) -> None:
    def talk(_: ModelRequest) -> Says:
        return Says(CARL, after=10.0)

    cast = make_cast(model=FakeModel(talk))
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("please hire", sender="zoe", chat="with-zoe")
        await trio.sleep(1)
        await write(cast, "/stop")
        assert await here(system) == ["boss", "anna"]
    assert await cast.store.entries(AGENT) == ()


async def test_an_agent_at_rest_finishes_and_hears_nothing_new(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> Says:
        return Says(f"{request.agent} was asked", after=90.0)

    cast = make_cast(model=FakeModel(talk))
    await store_agent(cast, hired())
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("@carl hi", sender="zoe", chat="with-zoe")
        await trio.sleep(1)
        await store_agent(cast, hired(is_active=False), version=1)
        cast.store.changed_outside = True
        await trio.sleep(5)
        assert await here(system) == ["boss", "anna"]
        # The router looks at open messages meanwhile, and leaves this where it is.
        assert await write(cast, "@carl again", "eve") == [
            "carl was asked",
            "boss was asked",
        ]
        await trio.sleep(2_000)
        assert system.find(names.agent("carl")) is None


async def test_who_comes_back_in_time_goes_on(autojump_clock: Clock) -> None:
    cast = make_cast()
    await store_agent(cast, hired())
    async with open_company(autojump_clock, cast) as system:
        for version, is_active in ((1, False), (2, True)):
            await store_agent(cast, hired(is_active=is_active), version)
            cast.store.changed_outside = True
            await trio.sleep(5)
        await trio.sleep(2_000)
        assert system.find(names.agent("carl")) is not None
        assert await write(cast, "@carl hi") == ["carl heard @carl hi"]


async def test_a_message_in_hand_stays_where_it_is_when_its_name_gets_an_agent(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> Says:
        return Says(f"{request.agent} was asked", after=90.0)

    cast = make_cast(model=FakeModel(talk))
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("@carl hi", sender="zoe", chat="with-zoe")
        await trio.sleep(1)
        await store_agent(cast, hired())
        staff = system.find(names.STAFF)
        assert staff is not None
        staff.tell(ReadStaff())
        await at_rest(cast)
    assert [each.text for each in cast.platform.deliveries] == ["boss was asked"]


async def test_the_staff_that_fails_knows_everybody_again(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast) as system:
        await write(cast, "please hire")
        staff = system.find(names.STAFF)
        assert staff is not None
        staff.kill()
        await trio.sleep(5)
        assert await here(system) == ["boss", "anna", "carl"]
        assert await write(cast, "@carl hi") == ["carl heard @carl hi"]


class Unreadable(MemoryStore):
    """Its entries cannot be read while that is said."""

    is_unreadable = False

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        if self.is_unreadable:
            raise StoreUnavailableError("the disk fails")
        return await super().entries(kind, owner, after, limit)


async def test_rows_that_cannot_be_read_now_are_read_later(
    autojump_clock: Clock,
) -> None:
    store = Unreadable()
    cast = make_cast(store=store)
    async with open_company(autojump_clock, cast) as system:
        await store_agent(cast, hired())
        store.is_unreadable = True
        staff = system.find(names.STAFF)
        assert staff is not None
        staff.tell(ReadStaff())
        await trio.sleep(3)
        assert await here(system) == ["boss", "anna"]
        store.is_unreadable = False
        await trio.sleep(3)
        assert await here(system) == ["boss", "anna", "carl"]


class UnreadableOnceStored(Unreadable):
    """Cannot be read for a while from the moment an agent was stored."""

    def submit(self, commit: Commit, done: Done) -> None:
        def stored(outcome: Committed | Exception) -> None:
            self.is_unreadable |= any(x.kind == AGENT for x in entries_of(commit))
            done(outcome)

        super().submit(commit, stored)


async def test_work_for_who_cannot_be_read_yet_waits_for_that(
    autojump_clock: Clock,
) -> None:
    both = f"{CARL}\n[DELEGATE:carl] count the chairs [/DELEGATE]"
    store = UnreadableOnceStored()
    cast = make_cast(model=FakeModel(saying(hire=both)), store=store)
    async with open_company(autojump_clock, cast):
        cast.platform.write("please hire", sender="zoe", chat="with-zoe")
        await trio.sleep(5)
        store.is_unreadable = False
        await at_rest(cast)
    said = [each.text for each in cast.platform.deliveries]
    assert said[-1] == "carl heard count the chairs"


async def test_a_stop_reaches_work_for_who_cannot_be_read_yet(
    autojump_clock: Clock,
) -> None:
    both = f"{CARL}\n[DELEGATE:carl] count the chairs [/DELEGATE]"
    store = UnreadableOnceStored()
    cast = make_cast(model=FakeModel(saying(hire=both)), store=store)
    async with open_company(autojump_clock, cast):
        cast.platform.write("please hire", sender="zoe", chat="with-zoe")
        await trio.sleep(5)
        cast.platform.write("/stop", sender="zoe", chat="with-zoe")
        await trio.sleep(1)
        store.is_unreadable = False
        await at_rest(cast)
    said = [each.text for each in cast.platform.deliveries]
    assert said[-2:] == [
        "Nothing of yours runs here. If I handed something on for you, it is stopped.",
        "(stopped)",
    ]
    assert [each.agent for each in cast.model.requests] == ["boss"]
