"""Proves that a model may be asked whom words are for, and nobody else waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio
import trio.testing

from actors.checking import MOST_CHECKS
from actors.config import AgentConfig
from actors.errors import ModelRefusedError
from actors.group_config import GroupConfig
from actors.records import CHECK, USAGE, UsageRecord
from actors.rules.relevance import SYSTEM
from tests.fakes.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    echo,
    open_company,
    until,
)

if TYPE_CHECKING:
    from actors.messages import ModelRequest

WANTS = GroupConfig(reply_window=5.0, relevance_check=True, broadcast_check=True)


def cast_of(says: Says, *, broadcast: bool = False) -> Cast:
    """Make a company whose model says this when it is asked whom words are for."""

    def talk(request: ModelRequest) -> str | Says:
        return says if request.system == SYSTEM else echo(request)

    wants = msgspec.structs.replace(WANTS, broadcast_check=broadcast)
    agents = {
        name: AgentConfig(groups=wants, description=f"about {name}")
        for name in ("anna", "ben")
    }
    model = FakeModel(talk)
    return Cast(agents=agents, model=model, platform=Platform(is_direct=False))


def checks(cast: Cast) -> list[ModelRequest]:
    return [each for each in cast.model.requests if each.system == SYSTEM]


async def say(cast: Cast, text: str) -> None:
    cast.platform.write(text)
    await at_rest(cast)


async def test_inside_the_window_it_answers_what_is_meant_for_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    for says, count in (("YES", 2), ("NO", 1)):
        cast = cast_of(Says(says))
        async with open_company(autojump_clock, cast):
            await say(cast, "@anna hello")
            await say(cast, "and now?")
            await say(cast, "@ben hi")
            (asked,) = checks(cast)
            rows = await cast.store.records(USAGE, "anna")
        assert len([x for x in cast.platform.said() if x.startswith("anna")]) == count
        assert asked.lines[0].text.count("- zoe:") == 2
        assert "- ben: about ben" in asked.lines[0].text
        assert "- anna: anna heard hello" in asked.lines[0].text
        (row,) = [each for each in rows if each.id.startswith(CHECK)]
        assert msgspec.json.decode(row.body, type=UsageRecord).status == "check"


async def test_what_nobody_can_say_in_time_is_answered_inside_the_window_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    no_answer = Says(error=ModelRefusedError("no"))
    for says in (Says("YES", after=60.0), no_answer, Says("hm")):
        cast = cast_of(says, broadcast=True)
        async with open_company(autojump_clock, cast):
            await say(cast, "everybody, who are you?")
            assert cast.platform.said() == []
            await say(cast, "@anna hello")
            await say(cast, "and now?")
            assert [x[:4] for x in cast.platform.said()] == ["anna", "anna"]


async def test_what_is_for_everybody_all_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("YES"), broadcast=True)
    async with open_company(autojump_clock, cast):
        await say(cast, "everybody, who are you?")
    assert sorted(x.split(":")[0] for x in cast.platform.said()) == ["anna", "ben"]


async def test_its_chat_waits_in_order_and_no_other_does(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("YES", after=3.0))
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        platform = cast.platform
        platform.write("and now?")
        platform.write("@anna then this")
        platform.write("@anna elsewhere", chat="hall")
        await until(lambda: platform.said("hall"), within=1.0)
        assert len(platform.said()) == 1
        await at_rest(cast)
    heard = [x.rpartition("\n")[2] for x in platform.said()]
    assert heard[1].endswith("and now?")
    assert heard[2].endswith("then this")


async def test_after_a_restart_it_is_asked_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("YES", after=3.0))
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        cast.platform.write("and now?")
        await until(lambda: checks(cast))
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert len(checks(cast)) == 2
    assert len(cast.platform.said()) == 2


async def test_of_too_many_at_once_the_rest_count_as_not_answered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("NO", after=3.0))
    chats = [f"room {number}" for number in range(MOST_CHECKS + 3)]
    async with open_company(autojump_clock, cast):
        for chat in chats:
            cast.platform.write("@anna hello", chat=chat)
        await at_rest(cast)
        for chat in chats:
            cast.platform.write("and now?", chat=chat)
        await at_rest(cast)
        await trio.sleep(1)
    twice = [chat for chat in chats if len(cast.platform.said(chat)) == 2]
    assert len(checks(cast)) == MOST_CHECKS
    assert len(twice) == 3


async def test_each_agent_is_asked_about_once_though_another_answers_meanwhile(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("YES", after=3.0))
    talked = cast.model.talk

    def talk(request: ModelRequest) -> str | Says:
        if request.system == SYSTEM or request.agent != "ben":
            return talked(request)
        return Says("I am ben", after=1.0)

    cast.model.talk = talk
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        cast.platform.write("@ben hi")
        cast.platform.write("and now?")  # ben's answer comes meanwhile
        await trio.sleep(60.0)
        await at_rest(cast)
    assert sorted(each.agent for each in checks(cast)) == ["anna", "ben"]


async def test_what_waits_behind_checks_is_looked_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("NO", after=4.0))
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        for number in range(25):  # the last waits longer than the router's sweep
            cast.platform.write(f"small talk {number}")
        await at_rest(cast)
        await trio.sleep(200)
    assert len(checks(cast)) == 25
