"""What belongs to other parts is done a moment later where other nodes own them."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors import names
from actors.people.owners import TellOwners
from tests.fakes.company.company import FakeModel, at_rest, open_company
from tests.fakes.company.guarded import Guarded
from tests.fakes.company.hirers import CARL, Hirers, saying
from tests.fakes.store.in_memory import MemoryStore
from tests.stories.hooks.test_webhooks_out import Ear
from tests.stories.memory.test_remembered import Rememberers, kept
from tests.stories.people.test_strangers import make_cast

Clock = trio.testing.MockClock

MOMENT = 5.0
"""Seconds: longer than the keeper waits between two looks."""


@pytest.fixture(autouse=True)
def few_looks() -> None:
    """Have the keeper look as often as ever: it stores what is handed over."""


class LateStore(MemoryStore):
    """Stores nothing that is handed over until it looks for it, as another node would.

    So each part is another node's, and no commit reaches further than one.
    """

    def __init__(self) -> None:
        super().__init__(parts=())
        self.came: set[str] = set()

    async def take_over(self, limit: int = 1000) -> frozenset[str]:
        self.parts = None
        try:
            came = await super().take_over(limit)
        finally:
            self.parts = ()
        self.came |= came
        return came


async def write(cast: Guarded | Hirers, text: str, sender: str) -> list[str]:
    chat = f"with-{sender}"
    before = len(cast.platform.said(chat))
    cast.platform.write(text, sender=sender, chat=chat)
    await at_rest(cast)
    await trio.sleep(MOMENT)
    return cast.platform.said(chat)[before:]


async def test_a_stranger_is_let_in_a_moment_later(autojump_clock: Clock) -> None:
    store = LateStore()
    cast = make_cast(store=store)
    async with open_company(autojump_clock, cast):
        [told] = await write(cast, "hello", "eve")
        code = next(word for word in told.split() if word.count("-") == 1)
        await write(cast, f"/pair approve {code}", "boss")
        assert "have been let in" in cast.platform.said("with-eve")[-1]
        [said] = await write(cast, "hello again", "eve")
    assert said.endswith("anna heard hello again")
    assert {"audit", "outbox"} <= store.came


async def test_owners_are_told_once_in_each_of_their_chats(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(store=LateStore())
    cast.owners = ("fake/boss", "fake/chief")
    async with open_company(autojump_clock, cast) as system:
        for sender in ("boss", "chief"):
            await write(cast, "hello", sender)
        owners = system.find(names.OWNERS)
        assert owners is not None
        owners.tell(TellOwners("the disk is nearly full"))
        await trio.sleep(MOMENT)
    for sender in ("boss", "chief"):
        told = cast.platform.said(f"with-{sender}")
        assert sum("nearly full" in each for each in told) == 1


async def test_a_fact_about_a_person_is_remembered_a_moment_later(
    autojump_clock: Clock,
) -> None:
    store = LateStore()
    cast = Rememberers(store=store)
    async with open_company(autojump_clock, cast):
        cast.platform.write("please remember what I like")
        await at_rest(cast)
        await trio.sleep(MOMENT)
        (fact,) = await kept(cast)
    assert "green tea" in fact.text
    assert "fact" in store.came


async def test_an_agent_that_was_made_works_a_moment_later(
    autojump_clock: Clock,
) -> None:
    store, ear = LateStore(), Ear()
    cast = Hirers(model=FakeModel(saying(hire=CARL)), store=store)
    ear.of(cast)
    async with open_company(autojump_clock, cast):
        await write(cast, "hire somebody", "zoe")
        said = await write(cast, "@carl hello", "zoe")
    assert any("carl" in each for each in said)
    assert {"agent", "webhook_due"} <= store.came
    assert "agent.created" in ear.types
