"""What is said in a group belongs to the group, or to its member: one rule for all."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import trio
import trio.testing

from actors.config.agents import UNLESS_TOLD, AgentConfig
from actors.config.sessions import CompactionConfig, SessionConfig
from actors.messages.inbound import ModelRequest
from tests.fakes.company.company import (
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    heard,
    open_company,
)
from tests.fakes.company.minded import Minded
from tests.fakes.models.summing import task_of

Clock = trio.testing.MockClock

GROUP, MEMBER = "chat:group/room/", "chat:group/room//zoe"
EVES = "chat:group/room//eve"
PRIVATE = "person:group/zoe"
ANNA = AgentConfig(
    tools=("save_memory",), autonomy="full", markers=(*UNLESS_TOLD, "purge")
)
ALL = ["by mark", "by tool", "by flush", "by summary"]


def talk(request: ModelRequest) -> str | Says:
    """Note one thing in each way there is."""
    match task_of(request), heard(request).split()[-1]:
        case "facts", _:
            return "[MEMORY:sticky] by flush [/MEMORY]"
        case "summary", _:
            return "by summary"
        case _, "mark":
            return "[MEMORY:sticky] by mark [/MEMORY]"
        case _, "tool" if request.lines[-1].role == "user":
            return Says(calls=(call("save_memory", text="by tool"),))
        case _, "purge":
            return "PURGE_FACTS"
        case _:
            return "yes"


def make_cast(scope: Literal["chat", "sender"], *, is_direct: bool = False) -> Minded:
    cast = Minded(
        model=FakeModel(talk),
        agents={"anna": ANNA},
        platform=Platform("group", is_direct=is_direct),
        sessions=SessionConfig(session_scope=scope, expiry="idle", idle_minutes=5.0),
        compaction=CompactionConfig(flush_after=0),
        owners=("group/olga",),
    )
    cast.platform.new_id = cast.ids.new
    cast.equip()
    return cast


async def write(cast: Minded, *texts: str, **how: Any) -> str:
    for text in texts:
        cast.platform.write(f"@anna {text}", **how)
        await at_rest(cast)
    return cast.platform.deliveries[-1].text


async def all_ways(cast: Minded) -> None:
    """Have something noted by a mark, by a tool, and when the conversation is over."""
    await write(cast, "this by mark", "that by tool")
    await trio.sleep(600)
    await write(cast, "hello")


@pytest.mark.parametrize(
    ("scope", "is_direct", "belongs"),
    [
        ("chat", False, GROUP),
        ("chat", True, PRIVATE),
        ("sender", True, PRIVATE),
        ("sender", False, MEMBER),
    ],
)
async def test_all_that_is_noted_belongs_to_one_scope(
    scope: Literal["chat", "sender"],
    belongs: str,
    autojump_clock: Clock,
    *,
    is_direct: bool,
) -> None:
    cast = make_cast(scope, is_direct=is_direct)
    async with open_company(autojump_clock, cast) as system:
        cast.system = system
        await all_ways(cast)
    assert set(ALL) <= set(await cast.known(belongs))
    others = {GROUP, MEMBER, PRIVATE} - {belongs}
    assert await cast.known(*others) == []


async def test_a_member_is_reminded_of_it_there_and_nobody_else(
    autojump_clock: Clock,
) -> None:
    cast = make_cast("sender")
    async with open_company(autojump_clock, cast) as system:
        cast.system = system
        await all_ways(cast)
        told = cast.model.requests[-1].system
        assert all(each in told for each in ("by mark", "by flush", "by summary"))
        await write(cast, "hello", sender="eve")
        await write(cast, "hello", chat="another")
        others = cast.model.requests[-2:]
    assert not [each for each in others if "by mark" in each.system]


async def test_after_a_restart_it_is_known_that_others_read_along(
    autojump_clock: Clock,
) -> None:
    cast = make_cast("sender")
    async with open_company(autojump_clock, cast):
        await write(cast, "hello", "and so on")
    cast.restart()
    async with open_company(autojump_clock, cast):
        await trio.sleep(600)
        await write(cast, "hello")
    assert await cast.known(MEMBER) == ["by flush", "by summary", "by summary"]
    assert await cast.known(PRIVATE, GROUP) == []


async def test_a_member_sees_and_forgets_what_is_theirs(autojump_clock: Clock) -> None:
    cast = make_cast("sender")
    async with open_company(autojump_clock, cast):
        await write(cast, "this by mark")
        await write(cast, "that by mark", sender="eve")
        await write(cast, "purge")
        assert await cast.known(MEMBER) == []
        assert await cast.known(EVES) == ["by mark"]
        cast.platform.write("/memory@anna", sender="eve")
        await at_rest(cast)
        shown = cast.platform.deliveries[-1].text.splitlines()[-1]
        assert shown.endswith(": by mark")
        name = shown.partition(":")[0]
        cast.platform.write(f"/memory@anna forget {name}", sender="eve")
        await at_rest(cast)
    assert await cast.known(EVES) == []
