"""Agents of a group hear each other where one calls the other, and it always ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.config.limits import LimitsConfig
from actors.config.routes import GroupConfig
from actors.messages.deliveries import Owed
from actors.messages.inbound import ModelRequest
from runtime.testing import seeded_order
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)
from tests.support.tiers import examples

Clock = trio.testing.MockClock
Talk = Callable[[ModelRequest], str | Says]

AGENTS = ("anna", "ben", "carl")


def group(talk: Talk, *, is_direct: bool = False, **config: Any) -> Cast:
    """Three agents in a group where they hear each other."""
    given_: dict[str, Any] = {"visible": True, **config}
    return Cast(
        agents={name: AgentConfig() for name in AGENTS},
        model=FakeModel(talk),
        platform=Platform(is_direct=is_direct),
        collaboration=CollaborationConfig(**given_),
    )


def ping_pong(request: ModelRequest) -> str:
    """Call the other for ever."""
    return f"over to you, @{'ben' if request.agent == 'anna' else 'anna'}"


def visible(cast: Cast) -> dict[str, float]:
    """Give what became of agents' calls, by the word."""
    lines = cast.metrics.render().decode().splitlines()
    found: dict[str, float] = {}
    for line in lines:
        if line.startswith("callboard_collaboration_total") and 'way="visible"' in line:
            outcome = line.split('outcome="')[1].split('"')[0]
            found[outcome] = found.get(outcome, 0) + float(line.split()[-1])
    return found


async def test_who_is_called_answers_in_the_group(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str:
        if request.agent == "anna":
            return "It may rain. @ben what next?"
        assert request.lines[-1].text.count("what next?") == 1
        return f"ben heard: {request.lines[-1].text.splitlines()[-1]}"

    cast = group(talk)
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("@anna the weather?")
        await at_rest(cast)
    assert cast.platform.said() == [
        "anna: It may rain. @ben what next?",
        "ben: ben heard: [anna]: It may rain. @ben what next?",
    ]
    assert {each.correlation_id for each in cast.platform.deliveries} == {inbound.id}
    (asked,) = (each for each in cast.model.requests if each.agent == "ben")
    assert "everybody here reads what you answer" in asked.system


async def test_who_answers_nothing_in_groups_is_called_in_vain(
    autojump_clock: Clock,
) -> None:
    cast = group(ping_pong)
    cast.agents["ben"] = AgentConfig(groups=GroupConfig(activation="never"))
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna the weather?")
        await at_rest(cast)
        assert cast.platform.said() == ["anna: over to you, @ben"]


async def test_what_was_said_stays_in_the_session_of_who_answered(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str:
        if request.agent == "anna":
            return "@ben, will it rain?"
        return f"{len(request.lines)} lines"

    cast = group(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna the weather?")
        await at_rest(cast)
        cast.platform.write("@ben so?")
        await at_rest(cast)
    assert cast.platform.said()[1:] == ["ben: 1 lines", "ben: 3 lines"]


async def test_they_take_turns_up_to_the_limit_and_then_are_silent(
    autojump_clock: Clock,
) -> None:
    cast = group(ping_pong, visible_max_turns=3)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna play")
        await at_rest(cast)
    said = [each.partition(":")[0] for each in cast.platform.said()]
    assert said == ["anna", "ben", "anna", "ben"]
    assert visible(cast) == {"ok": 3, "visible_max_turns": 1}


async def test_in_a_row_they_are_stopped_by_the_pair_until_they_were_quiet(
    autojump_clock: Clock,
) -> None:
    cast = group(ping_pong, visible_max_turns=4, max_rounds=4, cooldown=30.0)
    async with open_company(autojump_clock, cast):
        counts: list[int] = []
        for pause in (0, 0, 31):
            await trio.sleep(pause)
            before = len(cast.model.requests)
            cast.platform.write("@anna play")
            await at_rest(cast)
            counts.append(len(cast.model.requests) - before)
    assert counts == [5, 3, 5]  # 3 counted, then the one that is left, then anew
    assert visible(cast) == {"ok": 10, "visible_max_turns": 2, "max_rounds": 1}
    assert all(each.agent for each in cast.platform.deliveries)


async def test_it_is_over_when_one_is_done(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str:
        if request.agent == "anna" and len(request.lines) > 1:
            return "thank you, @ben\n[DONE]"
        return ping_pong(request)

    cast = group(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna play")
        await at_rest(cast)
    assert cast.platform.said()[-1] == "anna: thank you, @ben"
    assert visible(cast) == {"ok": 2}


async def test_off_in_private_and_where_nobody_is_there_nobody_hears(
    autojump_clock: Clock,
) -> None:
    for cast in (
        group(ping_pong, visible=False),
        group(ping_pong, enabled=False),
        group(ping_pong, is_direct=True),
        group(ping_pong, visible=False, visible_chats=("fake/other",)),
    ):
        async with open_company(autojump_clock, cast):
            cast.platform.write("@anna play")
            await at_rest(cast)
        assert len(cast.model.requests) == 1
        assert visible(cast) == {}


async def test_the_words_of_people_and_code_call_nobody(autojump_clock: Clock) -> None:
    cast = group(lambda r: f"> {heard(r)} @ben\n```\n@carl\n```\nwell")
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna tell @ben")  # ben hears it himself
        await at_rest(cast)
    assert [each.agent for each in cast.model.requests].count("carl") == 0
    assert visible(cast) == {}


async def test_a_turn_in_the_open_has_no_marks_and_hands_nothing_on(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str:
        if request.agent == "anna":
            return "@ben?"
        return "yes [DELEGATE:carl] do it [/DELEGATE]"

    cast = group(talk)
    cast.agents["ben"] = AgentConfig(delegates=("carl",))
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna play")
        await at_rest(cast)
    assert {each.agent for each in cast.model.requests} == {"anna", "ben"}
    offered = [each.tools for each in cast.model.requests if each.agent == "ben"]
    assert offered == [()]


async def test_a_stop_ends_what_they_say_to_each_other(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> Says:
        return Says(ping_pong(request), after=5)

    cast = group(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna play")
        await until(lambda: len(cast.model.requests) == 2)
        cast.platform.write("/stop @anna")
        await at_rest(cast)
    assert len(cast.model.requests) == 2


async def test_a_restart_goes_on_where_they_were(autojump_clock: Clock) -> None:
    cast = group(lambda r: Says(ping_pong(r), after=5), visible_max_turns=3)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna play")
        await until(lambda: len(cast.platform.deliveries) == 2)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    said = [each.partition(":")[0] for each in cast.platform.said()]
    assert said == ["anna", "ben", "anna", "ben"]


@settings(max_examples=examples(40))
@given(
    calls=st.fixed_dictionaries(
        {name: st.lists(st.sampled_from(AGENTS), max_size=4) for name in AGENTS}
    ),
    turns=st.integers(1, 6),
    rounds=st.integers(0, 6),
    most=st.integers(0, 12),
    seed=st.integers(0, 19),
)
def test_whoever_calls_whom_it_ends_within_its_bounds(
    calls: dict[str, list[str]], turns: int, rounds: int, most: int, seed: int
) -> None:
    def talk(request: ModelRequest) -> str:
        return "so " + " ".join(f"@{each}" for each in calls[request.agent])

    cast = group(talk, visible_max_turns=turns, max_rounds=rounds)
    cast.limits = LimitsConfig(max_delegations=most)
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(ask_once, cast, clock, clock=clock)
    assert len(cast.model.requests) <= 1 + min(most, turns)
    assert all(each.agent for each in cast.platform.deliveries)
    owed = Owed()
    endings = [owed.count(each) for each in cast.platform.deliveries]
    assert endings == [False] * (len(endings) - 1) + [True]


async def test_all_who_hear_a_message_share_what_it_may_cause(
    autojump_clock: Clock,
) -> None:
    everybody = " ".join(f"@{each}" for each in AGENTS)
    cast = group(lambda _: f"so {everybody}", visible_max_turns=32, max_rounds=99)
    cast.limits = LimitsConfig(max_delegations=6, max_hops=99, max_waiting=99)
    async with open_company(autojump_clock, cast):
        cast.platform.write(f"{everybody} go")
        await at_rest(cast)
    assert len(cast.model.requests) <= len(AGENTS) + 6


async def test_one_message_causes_so_many_turns_in_the_open_in_breadth_too(
    autojump_clock: Clock,
) -> None:
    everybody = " ".join(f"@{each}" for each in AGENTS)
    cast = group(lambda _: f"so {everybody}", visible_max_turns=4, max_rounds=99)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna go")
        await at_rest(cast)
    assert len(cast.model.requests) <= 1 + 4
    assert visible(cast)["ok"] <= 4


async def ask_once(cast: Cast, clock: Clock) -> None:
    async with open_company(clock, cast):
        cast.platform.write("@anna go")
        await at_rest(cast)
