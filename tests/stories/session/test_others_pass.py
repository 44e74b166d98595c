"""In a group, whoever waits for a retry, for people or for a model holds nobody up."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from actors.config.limits import LimitsConfig
from actors.config.sessions import BufferingConfig, WatchdogConfig
from actors.errors import ModelBusyError
from actors.messages.inbound import ModelRequest
from actors.messages.state import RetryPolicy
from actors.turn.machine import ASK_LATER
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    heard,
    open_company,
)
from tests.fakes.company.shell import TIMEOUT, Office

Clock = trio.testing.MockClock

QUIET = WatchdogConfig().quiet_after
PEOPLE = ("bob", "cora", "dan", "eve")


def troubled(request: ModelRequest) -> Says:
    """Be overloaded, or say nothing, where the words say so."""
    words = heard(request)
    error = ModelBusyError("overloaded") if "busy" in words else None
    return Says(f"to {words}", after=9_999.0 if "never" in words else 1.0, error=error)


def group(**cast: Any) -> Cast:
    given: dict[str, Any] = {
        "model": FakeModel(troubled),
        "retries": RetryPolicy(attempts=2),
    }
    return Cast(platform=Platform(is_direct=False), **{**given, **cast})


def run(request: ModelRequest) -> str | Says:
    """Run what is asked for; what was overheard is not."""
    line = request.lines[-1]
    if line.role == "tool":
        return f"It says: {line.text}"
    words = heard(request)
    if words.startswith("run"):
        return Says("Wait.", calls=(call("shell", command=words),))
    return f"to {words}"


def office_of(clock: Clock, **cast: Any) -> Office:
    platform = Platform(is_direct=False)
    return Office(clock, platform=platform, model=FakeModel(run), **cast)


def write(cast: Cast, sender: str, words: str) -> None:
    cast.platform.write(f"@anna {words}", sender=sender)


async def test_who_waits_for_a_retry_holds_nobody_up(autojump_clock: Clock) -> None:
    cast = group()
    async with open_company(autojump_clock, cast):
        write(cast, "ada", "busy")
        write(cast, "ada", "after it")
        write(cast, "bob", "hello")
        await trio.sleep(20)
        assert cast.platform.said()[1:] == ["anna: to hello"]
        await at_rest(cast)
        assert trio.current_time() > 120
    waits, _, gave_up, after = cast.platform.said()
    assert "2 minutes" in waits
    assert gave_up == f": The model cannot answer now: overloaded\n\n{ASK_LATER}"
    assert after == "anna: to after it"  # in the order of its own sender


async def test_in_an_outage_each_is_told_once_and_soon(autojump_clock: Clock) -> None:
    def fail(_: ModelRequest) -> Says:
        is_over = trio.current_time() > 100
        return Says("at last", error=None if is_over else ModelBusyError("overloaded"))

    cast = group(model=FakeModel(fail))
    async with open_company(autojump_clock, cast):
        for sender in PEOPLE:
            write(cast, sender, "hello")
        await trio.sleep(60)
        told = cast.platform.said()
        assert len(told) == len(PEOPLE)
        await at_rest(cast)
        assert trio.current_time() < 180
    assert cast.platform.said() == [*told, *["anna: at last"] * len(PEOPLE)]


async def test_a_retry_that_waits_over_a_restart_holds_nobody_up(
    autojump_clock: Clock,
) -> None:
    cast = group()
    async with open_company(autojump_clock, cast):
        write(cast, "ada", "busy")
        await trio.sleep(20)
    cast.restart()
    async with open_company(autojump_clock, cast):
        write(cast, "bob", "hello")
        await trio.sleep(5)
        assert cast.platform.said()[-1] == "anna: to hello"
        await at_rest(cast)


async def test_a_model_that_says_nothing_holds_up_no_other_person(
    autojump_clock: Clock,
) -> None:
    cast = group()
    async with open_company(autojump_clock, cast):
        write(cast, "ada", "never")
        write(cast, "ada", "after it")
        write(cast, "bob", "hello")
        await trio.sleep(QUIET + 2)
        assert cast.platform.said() == ["anna: to hello"]
        await at_rest(cast)
    timed_out, after = cast.platform.said()[1:]
    assert "timed out" in timed_out
    assert after == "anna: to after it"


@pytest.mark.parametrize("word", ["approve", "deny", ""])
async def test_who_waits_for_leave_holds_up_no_other_person(
    word: str, autojump_clock: Clock
) -> None:
    office = office_of(autojump_clock, limits=LimitsConfig(max_in_flight=1))
    async with open_company(autojump_clock, office.cast):
        write(office.cast, "ada", "run ls")
        approval_id = await office.asked()
        write(office.cast, "ada", "after it")
        write(office.cast, "bob", "hello")
        await trio.sleep(1)
        assert office.said()[-1] == "anna: to hello"
        if word:
            office.platform.write(f"/{word} {approval_id}", sender="olga")
        else:
            await trio.sleep(TIMEOUT)
        await at_rest(office.cast)
    assert office.said()[-2].startswith("anna: Wait.\n\nIt says:")
    assert office.said()[-1] == "anna: to after it"
    assert office.shell.ran == (["ada call-1"] if word == "approve" else [])


async def test_two_wait_for_leave_at_once_and_each_gets_its_own(
    autojump_clock: Clock,
) -> None:
    office = office_of(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        write(office.cast, "ada", "run a")
        first = await office.asked()
        write(office.cast, "bob", "run b")
        second = await office.asked(2)
        assert first != second
        office.platform.write(f"/approve {second}", sender="olga")
        await trio.sleep(1)
        assert office.shell.ran == ["bob call-1"]
        office.platform.write(f"/approve {first}", sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == ["bob call-1", "ada call-1"]


async def test_a_stop_ends_what_was_set_aside_and_nothing_else(
    autojump_clock: Clock,
) -> None:
    office = office_of(autojump_clock)
    async with open_company(autojump_clock, office.cast):
        write(office.cast, "ada", "run a")
        await office.asked()
        write(office.cast, "bob", "run b")
        second = await office.asked(2)
        write(office.cast, "ada", "/stop")
        await trio.sleep(1)
        assert sorted(office.said()[-2:]) == [": (stopped)", ": Stopped."]
        office.platform.write(f"/approve {second}", sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == ["bob call-1"]


async def test_newer_words_interrupt_a_turn_that_was_set_aside(
    autojump_clock: Clock,
) -> None:
    cast = group(buffering=BufferingConfig(policy="interrupt", debounce=0.0))
    async with open_company(autojump_clock, cast):
        write(cast, "ada", "busy")
        await trio.sleep(20)
        write(cast, "bob", "hello")
        write(cast, "ada", "not any more")
        await at_rest(cast)
        assert trio.current_time() < 120
    assert sorted(cast.platform.said()[1:]) == [
        "anna: to hello",
        "anna: to not any more",
    ]
