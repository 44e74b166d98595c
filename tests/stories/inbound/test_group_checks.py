"""Proves that a model may be asked whom words are for, and nobody else waits."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.routes import GroupConfig
from actors.errors import ModelRefusedError
from actors.inbound.relevance import MOST_AHEAD, MOST_CHECKS
from actors.journal.records import CHECK, USAGE, UsageRecord
from actors.messages.inbound import ModelRequest
from actors.rules.groups.relevance import SYSTEM
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    echo,
    open_company,
    until,
)

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


async def test_a_burst_is_asked_about_at_once_and_heard_in_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("YES", after=3.0))
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        began = trio.current_time()
        for number in range(MOST_AHEAD + 1):
            cast.platform.write(f"number {number}")
        cast.platform.write("@ben are you there?")
        await until(lambda: any(x[:3] == "ben" for x in cast.platform.said()))
        assert trio.current_time() - began < 3.5
        await at_rest(cast)
    heard = [x.rpartition("number ")[2] for x in cast.platform.said() if "number" in x]
    assert heard == [str(number) for number in range(MOST_AHEAD + 1)]
    assert len(checks(cast)) == MOST_AHEAD + 1


async def test_one_crowded_chat_leaves_questions_to_the_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("NO", after=3.0))
    chats = [f"room {number}" for number in range(MOST_CHECKS)]
    async with open_company(autojump_clock, cast):
        for chat in chats:
            cast.platform.write("@anna hello", chat=chat)
        await at_rest(cast)
        for chat in chats[:9]:
            for number in range(20):
                cast.platform.write(f"number {number}", chat=chat)
        for chat in chats[9:40]:
            cast.platform.write("and now?", chat=chat)
        await at_rest(cast)
    # Of too many, some would be answered without anybody having been asked.
    assert all(len(cast.platform.said(chat)) == 1 for chat in chats)


def slowly(request: ModelRequest) -> Says:
    says = "YES" if request.system == SYSTEM else "told"
    return Says(says, after=3.0 if says == "YES" else 60.0)


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        ("/stop", [": (stopped)", ": (stopped)"]),
        ("/stop@anna", [": (stopped)", ": Stopped."]),
    ],
)
async def test_a_stop_waits_for_no_check(
    stop: str, told: list[str], autojump_clock: trio.testing.MockClock
) -> None:
    cast = cast_of(Says("YES"))
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        cast.model.talk = slowly
        cast.platform.write("@ben a long story", sender="yan")
        cast.platform.write("@anna another", sender="yan")
        await until(lambda: cast.model.running == 2)
        for number in range(3):
            cast.platform.write(f"number {number}")
        cast.platform.write(stop, sender="yan")
        await trio.sleep(1.0)
        assert sorted(cast.platform.said()[1:]) == told
        await at_rest(cast)
    assert len(cast.platform.said()) == 3 + 3 + ("@" in stop)


@pytest.mark.parametrize("stop", ["/stop", "/stop@anna", "/stop all"])
async def test_what_its_sender_wrote_before_a_stop_does_not_begin_after_it(
    stop: str, autojump_clock: trio.testing.MockClock
) -> None:
    cast = cast_of(Says("YES"))
    cast.approvers = ("fake/zoe",)
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        cast.model.talk = slowly
        cast.platform.write("@anna a long story")
        await until(lambda: cast.model.running == 1)
        cast.platform.write("and more?")
        cast.platform.write("and this, @anna?")
        cast.platform.write(stop)
        await trio.sleep(1.0)
        assert cast.platform.said()[1:] == [": (stopped)"]
        await trio.sleep(5.0)
        assert cast.model.running == 0
        await at_rest(cast)
    stopped = [x for x in cast.platform.said() if x == ": (stopped)"]
    assert len(stopped) == 3
    assert cast.platform.said()[4:] == [": Stopped."]


async def test_nobody_but_owners_stops_others_past_a_check(
    autojump_clock: trio.testing.MockClock,
) -> None:
    cast = cast_of(Says("YES"))
    async with open_company(autojump_clock, cast):
        await say(cast, "@anna hello")
        cast.model.talk = slowly
        cast.platform.write("@ben a long story", sender="yan")
        await until(lambda: cast.model.running == 1)
        cast.platform.write("and now?")
        cast.platform.write("/stop all")
        cast.platform.write("/stop@ben all")
        await trio.sleep(10.0)
        assert "ben: told" not in cast.platform.said()
        await at_rest(cast)
    assert "ben: told" in cast.platform.said()
