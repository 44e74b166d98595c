"""Whoever writes from several accounts is remembered by all of them, and alone."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.messages.inbound import ModelRequest
from actors.people.identity import MOST_ALIASES
from tests.fakes.company.company import (
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    open_company,
)
from tests.fakes.company.minded import Minded

Clock = trio.testing.MockClock

TOOLS = ("memory_search", "save_memory")
NUTS = "[MEMORY:sticky] allergic to nuts [/MEMORY]"


def seek(request: ModelRequest) -> str | Says:
    """Do what the last line says: `note`, `save`, `find`, or nothing."""
    last = request.lines[-1]
    if last.role == "tool":
        return f"it says {last.text}"
    if "note" in last.text:
        return f"yes {NUTS}"
    if "save" in last.text:
        return Says(calls=(call("save_memory", text="walnuts are nuts"),))
    if "find" in last.text:
        return Says(calls=(call("memory_search", query="nuts"),))
    return "yes"


def make_cast(others: int = 1) -> Minded:
    anna = AgentConfig(tools=TOOLS, autonomy="full")
    return Minded(
        agents={"anna": anna},
        model=FakeModel(seek),
        others=tuple(Platform(f"other{number}") for number in range(others)),
        approvers=("fake/zoe",),
        owners=("fake/zoe",),
    )


async def write(cast: Minded, text: str, number: int = -1, **how: Any) -> str:
    """Write something; give the last answer there."""
    platform = cast.platform if number < 0 else cast.others[number]
    platform.write(text, **how)
    await at_rest(cast)
    return platform.deliveries[-1].text


async def link_all(cast: Minded) -> None:
    for number, platform in enumerate(cast.others):
        await write(cast, "hi", number)
        await write(cast, f"/link fake/zoe {platform.name}/zoe")


async def test_tools_know_whoever_writes_by_all_accounts(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    cast.equip()
    async with open_company(autojump_clock, cast) as system:
        cast.system = system
        await write(cast, "note")
        assert "allergic" not in await write(cast, "find", 0)
        await link_all(cast)
        assert "allergic" in await write(cast, "find", 0)
        await write(cast, "save", 0)
        assert await cast.known("person:fake/zoe") == [
            "allergic to nuts",
            "walnuts are nuts",
        ]
        assert "walnuts" in await write(cast, "find")
        assert "Nothing" in await write(cast, "find", 0, sender="eve")


async def test_as_many_accounts_as_one_may_have_are_all_remembered(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(MOST_ALIASES)
    cast.equip()
    async with open_company(autojump_clock, cast) as system:
        cast.system = system
        for number in range(-1, MOST_ALIASES):
            await write(cast, "note", number)
        await link_all(cast)
        await write(cast, "hello")
        assert "allergic to nuts" in cast.model.requests[-1].system
        assert "allergic" in await write(cast, "find", MOST_ALIASES - 1)
        assert "Forgotten: 8" in await write(cast, "/forget facts")
        await write(cast, "hello")
        assert "allergic to nuts" not in cast.model.requests[-1].system
