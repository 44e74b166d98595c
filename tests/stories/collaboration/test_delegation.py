"""Agents hand work on in the open, and every exchange ends, whatever they hand on."""

from __future__ import annotations

from collections.abc import Callable

import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.delegation.handing import NOT_HANDED_ON
from actors.messages.deliveries import Delivery, Owed
from actors.messages.inbound import Attachment, ModelRequest
from runtime.testing import seeded_order
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    heard,
    open_company,
    until,
)
from tests.fakes.media import PNG
from tests.support.tiers import examples

Clock = trio.testing.MockClock

AGENTS = ("anna", "ben", "carl")


def trio_of_agents(talk: Callable[[ModelRequest], str | Says]) -> Cast:
    """Three agents, each of whom may ask the other two."""
    agents = {
        name: AgentConfig(delegates=tuple(a for a in AGENTS if a != name))
        for name in AGENTS
    }
    return Cast(agents=agents, model=FakeModel(talk))


def tag(agent: str, task: str) -> str:
    return f"[DELEGATE:{agent}] {task} [/DELEGATE]"


def endings(deliveries: list[Delivery]) -> list[bool]:
    """Tell after each answer whether the exchange is over."""
    owed = Owed()
    return [owed.count(delivery) for delivery in deliveries]


def ends_with_the_last(deliveries: list[Delivery]) -> bool:
    return endings(deliveries) == [False] * (len(deliveries) - 1) + [True]


async def test_a_delegate_is_told_which_files_it_does_not_get(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str:
        if request.agent == "anna":
            return f"Ben knows. {tag('ben', 'what is on it?')}"
        return f"for me: {heard(request)}"

    cast = trio_of_agents(talk)
    cat = Attachment(kind="image", name="cat.png", media_type="image/png", content=PNG)
    async with open_company(autojump_clock, cast):
        cast.platform.write("look", attachments=(cat,))
        await at_rest(cast)
    told = NOT_HANDED_ON.format(files="cat.png")
    assert cast.platform.said()[-1] == f"ben: for me: what is on it?\n\n{told}"


async def test_a_delegate_answers_in_the_same_chat_under_its_own_name(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str:
        if request.agent == "anna":
            return f"Ben knows. {tag('ben', 'the time')}"
        return f"for {request.lines[-1].name}: {heard(request)}"

    cast = trio_of_agents(talk)
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("what time is it?")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: Ben knows.", "ben: for anna: the time"]
    assert {each.correlation_id for each in cast.platform.deliveries} == {inbound.id}
    assert [each.is_root for each in cast.platform.deliveries] == [True, False]
    asked = [each.reply_to for each in cast.platform.deliveries]
    assert asked == [inbound.platform_id] * 2
    assert ends_with_the_last(cast.platform.deliveries)


async def test_a_tool_call_hands_on_as_well(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return f"done: {heard(request)}"
        if request.lines[-1].role == "tool":
            return f"Well. ({heard(request)})"
        return Says(calls=(call("delegate", agent="ben", task="look"),))

    cast = trio_of_agents(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("look it up")
        await at_rest(cast)
    first, second = cast.platform.said()
    assert first == "anna: Well. (Handed to ben, who will answer in this chat.)"
    assert second == "ben: done: look"
    assert ends_with_the_last(cast.platform.deliveries)


async def test_an_agent_that_only_hands_on_says_what(autojump_clock: Clock) -> None:
    cast = trio_of_agents(lambda r: tag("ben", "look") if r.agent == "anna" else "done")
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: @ben look", "ben: done"]


async def test_ping_pong_ends_with_a_notice(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str:
        other = "ben" if request.agent == "anna" else "anna"
        return f"your turn {tag(other, 'again')}"

    cast = trio_of_agents(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("play")
        await at_rest(cast)
    said = cast.platform.said()
    assert said[:-1] == [f"{name}: your turn" for name in ("anna", "ben") * 2] + [
        "anna: your turn"
    ]
    assert "reached the limit of 4 hops" in said[-1]
    assert ends_with_the_last(cast.platform.deliveries)


async def test_who_cannot_be_asked_is_said_and_counted(autojump_clock: Clock) -> None:
    text = "hm " + "".join(tag(each, "x") for each in ("nobody", "anna", "carl"))
    cast = trio_of_agents(lambda _: text)
    cast.agents["anna"] = AgentConfig(delegates=("ben",))
    async with open_company(autojump_clock, cast):
        cast.platform.write("ask around")
        await at_rest(cast)
    said = "\n".join(cast.platform.said())
    assert said.startswith("anna: hm\n")
    assert "there is no agent 'nobody'" in said
    assert "anna cannot delegate to itself" in said
    assert "anna may not ask carl, only ben" in said
    assert ends_with_the_last(cast.platform.deliveries)


async def test_an_answer_of_nothing_but_a_bad_delegation_is_a_notice(
    autojump_clock: Clock,
) -> None:
    cast = trio_of_agents(lambda _: "[DELEGATE:ben] never closed")
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
    (said,) = cast.platform.said()
    assert said.startswith(": A delegation was not passed on: it was not closed")
    assert ends_with_the_last(cast.platform.deliveries)


async def test_words_of_an_agent_are_no_command(autojump_clock: Clock) -> None:
    cast = trio_of_agents(
        lambda r: tag("ben", "/stop") if r.agent == "anna" else "I go on"
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("stop ben")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: @ben /stop", "ben: I go on"]


async def test_what_is_handed_on_is_stored_with_the_answer(
    autojump_clock: Clock,
) -> None:
    cast = trio_of_agents(
        lambda r: (
            f"ok {tag('ben', 'x')}" if r.agent == "anna" else Says("done", after=9)
        )
    )
    rows = cast.store._rows
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await until(lambda: rows.outbox)
        accepted = [row.state for row in rows.inbox.values()]
    assert accepted == ["replied", "running"]
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == ["anna: ok", "ben: done"]
    assert ends_with_the_last(cast.platform.deliveries)


async def test_two_who_are_mentioned_both_answer(
    order: int, autojump_clock: Clock
) -> None:
    cast = trio_of_agents(
        lambda r: Says(f"yes {r.agent}", after=[0, 0.5][(r.agent == "ben") ^ order % 2])
    )
    cast.platform = Platform(is_direct=False)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna @ben hello")
        await at_rest(cast)
    assert sorted(cast.platform.said()) == ["anna: yes anna", "ben: yes ben"]
    assert ends_with_the_last(cast.platform.deliveries)
    assert await cast.inbox() == {"replied": 2}


async def test_two_who_are_mentioned_both_answer_after_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = trio_of_agents(lambda r: Says(f"yes {r.agent}", after=5))
    cast.platform = Platform(is_direct=False)
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna @ben hello")
        await until(lambda: cast.model.running == 2)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert sorted(cast.platform.said()) == ["anna: yes anna", "ben: yes ben"]
    assert ends_with_the_last(cast.platform.deliveries)


async def test_a_stopped_delegate_still_ends_the_exchange(
    autojump_clock: Clock,
) -> None:
    cast = trio_of_agents(
        lambda r: (
            f"ok {tag('ben', 'x')}" if r.agent == "anna" else Says("late", after=60)
        )
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await until(lambda: len(cast.model.requests) == 2)
        stop = cast.platform.write("@ben please")  # waits behind the task
        cast.platform.write("/stop @ben")
        await at_rest(cast)
    own = [d for d in cast.platform.deliveries if d.correlation_id == "fake-1"]
    assert stop.id == "fake-2"
    assert ends_with_the_last(own)
    assert cast.platform.said()[-1] == ": Stopped."


@settings(max_examples=examples(60))
@given(
    asks=st.fixed_dictionaries(
        {
            name: st.lists(st.sampled_from([*AGENTS, "nobody"]), max_size=5)
            for name in AGENTS
        }
    ),
    by_tool=st.sets(st.sampled_from(AGENTS)),
    hops=st.integers(0, 6),
    most=st.integers(0, 12),
    waiting=st.integers(0, 3),
    seed=st.integers(0, 19),
)
def test_any_graph_of_delegations_ends_within_its_bounds(
    asks: dict[str, list[str]],
    by_tool: set[str],
    hops: int,
    most: int,
    waiting: int,
    seed: int,
) -> None:
    cast = trio_of_agents(
        lambda r: hand_on(r, asks[r.agent], by_tool=r.agent in by_tool)
    )
    cast.limits = LimitsConfig(max_hops=hops, max_delegations=most, max_waiting=waiting)
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(ask_once, cast, clock, clock=clock)
    turns = [r for r in cast.model.requests if r.lines[-1].role == "user"]
    assert len(turns) <= 1 + most
    assert ends_with_the_last(cast.platform.deliveries)
    assert all(each.text.strip() for each in cast.platform.deliveries)


def hand_on(request: ModelRequest, targets: list[str], *, by_tool: bool) -> str | Says:
    if not by_tool:
        return "ok " + "".join(tag(each, "x") for each in targets)
    if request.lines[-1].role == "tool" or not targets:
        return "ok"
    return Says(
        calls=tuple(
            call("delegate", number, agent=each, task="x")
            for number, each in enumerate(targets)
        )
    )


async def ask_once(cast: Cast, clock: Clock) -> None:
    async with open_company(clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
