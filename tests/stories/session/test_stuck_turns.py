"""A turn that does not get on is warned of, then ended; its people are told."""

from __future__ import annotations

from functools import partial
from typing import get_args

import pytest
import trio
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.config.sessions import BufferingConfig, WatchdogConfig
from actors.messages.busy_policies import BusyPolicy
from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.ports import Speak
from actors.session.watchdog import CheckTurnEnded
from runtime.system import ActorSystem
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    heard,
    open_company,
    until,
)

Clock = trio.testing.MockClock

WATCH = WatchdogConfig(
    quiet_after=0.0, long_after=30.0, stalled_after=60.0, stuck_after=100.0
)
TIMED_OUT = ": ⚠️ Request timed out. Please try again."
POLICIES: tuple[BusyPolicy, ...] = get_args(BusyPolicy)


def talk(request: ModelRequest) -> Says:
    """Never answer what says so."""
    words = heard(request)
    return Says(f"to {words}", after=9_999.0 if "never" in words else 0.0)


def paces(cast: Cast) -> dict[str, int]:
    """Give how often turns entered each pace."""
    found: dict[str, int] = {}
    for line in cast.metrics.render().decode().splitlines():
        if line.startswith("callboard_turn_paces_total{"):
            labels, _, count = line.rpartition(" ")
            found[labels.partition('pace="')[2].partition('"')[0]] = int(float(count))
    return found


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_stuck_turn_ends_and_the_next_one_begins(
    policy: BusyPolicy, autojump_clock: Clock
) -> None:
    busy = BufferingConfig(policy=policy)
    cast = Cast(model=FakeModel(talk), watchdog=WATCH, buffering=busy)
    cast.platform.is_direct = False
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna never")
        cast.platform.write("@anna hello", sender="yan")
        began = trio.current_time()
        await at_rest(cast)
        assert 100 <= trio.current_time() - began < 101
        assert cast.platform.said()[0] == TIMED_OUT
        assert cast.platform.said()[1].startswith("anna: to ")
        await trio.sleep(30)
    assert paces(cast) == {
        "long-running": 1,
        "stalled": 1,
        "stuck": 1,
        "recovered": 1,
    }
    assert len(cast.model.cancelled) == 1
    assert await cast.inbox() == {"replied": 2}


async def test_who_goes_on_speaking_is_never_stalled(autojump_clock: Clock) -> None:
    pieces = tuple("abcdefgh")
    slow = Says("abcdefgh", pieces=pieces, pause=30.0)
    cast = Cast(model=FakeModel(lambda _: slow), watchdog=WATCH)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: abcdefgh"]
    assert paces(cast) == {"long-running": 1}


async def test_a_turn_that_stalled_may_go_on(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(lambda _: Says("so", after=80.0)), watchdog=WATCH)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: so"]
    assert paces(cast) == {"long-running": 1, "stalled": 1, "running": 1}


def is_asked(cast: Cast, number: int) -> bool:
    """Whether so many questions for leave were shown, all but the last answered."""
    return len(cast.platform.said()) >= 2 * number - 1


class Nap:
    """A tool that sleeps."""

    spec = ToolSpec("nap", "", b"{}", effect="run", is_own_words=True)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:  # noqa: ARG002
        await trio.sleep(55.0)
        return ToolResult("slept")


async def test_the_end_of_a_tool_counts_and_so_does_waiting_for_people(
    autojump_clock: Clock,
) -> None:
    def work(request: ModelRequest) -> Says:
        done = sum(line.role == "tool" for line in request.lines)
        return Says(calls=(call("nap", done),)) if done < 3 else Says("rested")

    cast = Cast(
        agents={"anna": AgentConfig(tools=("nap",))},
        model=FakeModel(work),
        tools=(Nap(),),
        watchdog=WATCH,
        approvers=("fake/zoe",),
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("sleep")
        for number in range(1, 4):
            await until(partial(is_asked, cast, number))
            await trio.sleep(90.0)  # it waits for leave meanwhile
            cast.platform.write("/approve")
        await at_rest(cast)
    assert cast.platform.said()[-1] == "anna: rested"
    assert "stalled" not in paces(cast)


class Deaf(FakeModel):
    """A model that cannot be cancelled for a minute."""

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        if "never" in heard(request):
            with trio.CancelScope(shield=True):
                await trio.sleep(160.0)
        return await super().answer(request, speak)


async def test_a_turn_that_cannot_be_cancelled_is_an_error_and_harms_nobody(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=Deaf(lambda r: f"to {heard(r)}"), watchdog=WATCH)
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("never")
        cast.platform.write("hello")
        await at_rest(cast)
        await trio.sleep(12.0)
        assert paces(cast)["unrecovered"] == 1
        assert len(turns_of(system)) == 1
        await trio.sleep(10.0)
        assert turns_of(system) == []
        assert trio.current_time() < 160.0  # it is not over even now
        assert paces(cast)["recovered"] == 1
        await trio.sleep(100.0)
        cast.platform.write("still there?")
        await at_rest(cast)
    assert cast.platform.said() == [
        TIMED_OUT,
        "anna: to hello",
        "anna: to still there?",
    ]


async def test_a_turn_that_cannot_even_be_killed_has_its_agent_restarted(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(talk), watchdog=WATCH)
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("one")
        await at_rest(cast)
        cast.platform.write("slow, then never")
        await until(lambda: cast.model.running)
        session = system.find(f"{names.sessions('anna')}/anna/fake/room//zoe")
        (turn,) = turns_of(system)
        assert session is not None
        session.tell(CheckTurnEnded(turn.rpartition("/")[2], "kill"))
        await until(lambda: len(cast.model.requests) == 3)
        assert paces(cast)["unrecovered"] == 1
        assert turn not in turns_of(system)
        assert [heard(each) for each in cast.model.requests][1:] == [
            "slow, then never"
        ] * 2
        cast.platform.write("/stop")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: to one", ": (stopped)", ": Stopped."]


def turns_of(system: ActorSystem) -> list[str]:
    """Name the turns that run."""
    return [each for each in system.kernel.names if f"{names.turns('anna')}/" in each]


async def test_status_tells_the_policy_what_waits_and_that_it_stalls(
    autojump_clock: Clock,
) -> None:
    busy = BufferingConfig(policy="followup")
    cast = Cast(model=FakeModel(talk), watchdog=WATCH, buffering=busy)
    async with open_company(autojump_clock, cast):
        cast.platform.write("never")
        cast.platform.write("and this?")
        await trio.sleep(70.0)
        cast.platform.write("/status")
        await until(cast.platform.said)
        lines = cast.platform.said()[0].splitlines()
        cast.platform.write("/stop")
        await at_rest(cast)
    assert lines[-3:] == [
        "Waiting behind the present answer: 1",
        "The present answer has stalled: nothing has come for a while.",
        "What comes meanwhile is answered together afterwards.",
    ]


async def test_an_owner_stops_everybody_and_nobody_else_does(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(talk), approvers=("fake/boss",))
    cast.platform.is_direct = False
    async with open_company(autojump_clock, cast):
        cast.platform.write("@anna never")
        cast.platform.write("@anna never, too", sender="yan")
        await until(lambda: cast.model.running)
        cast.platform.write("/stop@anna all")
        await until(cast.platform.said)
        assert cast.platform.said()[0].startswith(": /stop all is for those who run")
        assert cast.model.running
        cast.platform.write("/stop@anna all", sender="boss")
        await at_rest(cast)
    assert cast.platform.said()[1:] == [": (stopped)"] * 2 + [": Stopped."]
    assert await cast.inbox() == {"cancelled": 2, "replied": 2}
