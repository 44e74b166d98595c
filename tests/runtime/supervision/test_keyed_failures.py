"""Proves that a key's failures stay its own, up to its being given up."""

from __future__ import annotations

import pykka
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.actor.messages import KILLED, ChildEnded, Keyed
from runtime.actor.ref import cell_of
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor, KeyGivenUp, StopKey
from runtime.testing import Reports
from tests.support.keyed_bed import STEADY, Bed, Sleeper, Ways, open_bed

BRIEF = KeyedConfig(intensity=1, period=5.0, backoff=STEADY)


async def until_given_up(bed: Bed, key: str) -> str:
    """Break a key until it is given up; tell when."""
    while not bed.heard.received:
        bed.tell(key, "break")
        await trio.sleep(0.25)
    (heard,) = bed.heard.received
    assert heard == KeyGivenUp(key, "BrokenError")
    return f"{trio.current_time():g}"


async def test_a_child_that_failed_is_started_again_and_loses_no_message(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", "break", "x")
        bed.tell("bob", "y")
        await trio.sleep(1)
        # The message that breaks it comes again, and is poison the third time.
        assert [line for line in bed.log if line.startswith("ann")] == [
            "ann up",
            "ann break",
            "ann up",
            "ann break",
            "ann up 0.1",
            "ann break 0.1",
            "ann up 0.3",
            "ann x 0.3",
        ]
        assert bed.born["bob"] == 1
        assert bed.lost() == [("poison", "break")]


async def test_restarts_are_counted_and_reported(autojump_clock: MockClock) -> None:
    del autojump_clock
    reports = Reports()
    async with open_bed(reports=reports) as bed:
        bed.tell("ann", "x")
        await trio.sleep(1)
        bed.child("ann").kill()
        await trio.sleep(1)
        assert bed.system.statistics().restarts == {("Sleeper", "killed"): 1}
        assert len(reports.of("actor restarts")) == 1
        (child,) = [each for each in bed.system.actors() if each.name == "bed/ann"]
        assert child.restarts == 1


async def test_a_key_that_fails_too_often_is_given_up_and_others_go_on(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(BRIEF) as bed:
        bed.tell("bob", "x")
        bed.tell("ann", "break", "y")
        await trio.sleep(1)
        assert bed.heard.received == [KeyGivenUp("ann", "BrokenError")]
        assert bed.awake() == "bob"
        assert bed.lost() == [("failed", "break"), ("failed", "y")]
        assert await bed.ask("ann", "z") == "z, of course"


async def test_old_failures_of_a_key_are_forgotten(autojump_clock: MockClock) -> None:
    del autojump_clock
    async with open_bed(BRIEF) as bed:
        bed.tell("ann", "x")
        for _ in range(3):
            await trio.sleep(5.5)
            bed.child("ann").kill()
        await trio.sleep(1)
        assert bed.heard.received == []
        assert bed.awake() == "ann"


async def test_who_fails_is_forgotten_at_once_when_that_is_wanted(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    config = KeyedConfig(is_permanent=False)
    async with open_bed(config) as bed:
        assert await until_given_up(bed, "ann") == "0.25"
        assert bed.born["ann"] == 1


async def test_whoever_should_hear_of_it_may_be_gone(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    config = KeyedConfig(is_permanent=False)
    async with open_bed(config) as bed:
        await bed.heard.actor_ref.stop()
        bed.tell("ann", "break")
        await trio.sleep(1)
        assert bed.lost()[-1] == ("stopped", KeyGivenUp("ann", "BrokenError"))
        assert await bed.ask("ann", "x") == "x, of course"


async def test_nobody_need_hear_of_it_and_news_of_strangers_are_no_news(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    config = KeyedConfig(is_permanent=False)
    async with open_bed(config) as bed:
        actor = KeyedSupervisor(lambda key: Sleeper(bed, key), config)
        other = bed.system.spawn(actor, name="other")
        other.tell(ChildEnded("other/nobody", 0, KILLED))
        other.tell(Keyed("ann", "break"))
        await trio.sleep(1)
        assert bed.lost() == [("failed", "break")]
        assert await other.ask(Keyed("ann", "x")) == "x, of course"


@pytest.mark.parametrize("start", ["fail", "late-fail", "unborn"])
async def test_a_start_that_fails_is_tried_again_until_the_key_is_given_up(
    start: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    reports = Reports()
    async with open_bed(BRIEF, Ways(start=start), reports) as bed:
        with pytest.raises(pykka.ActorDeadError):
            await bed.ask("ann", "x")
        assert bed.born["ann"] == 2
        assert len(reports.of("actor failed")) == 2
        assert len(reports.of("key given up")) == 1
        assert bed.lost() == [("failed", "x")]
        assert bed.awake() == ""


@pytest.mark.parametrize(("start", "seconds"), [("hang", 4.1), ("deaf", 14.1)])
async def test_a_start_that_takes_too_long_has_failed(
    start: str, seconds: float, autojump_clock: MockClock
) -> None:
    del autojump_clock
    config = KeyedConfig(intensity=2, start_timeout=2.0, backoff=STEADY)
    ways = Ways(start=start)
    async with open_bed(config, ways) as bed:
        bed.tell("ann", "x")
        await trio.sleep(seconds - 0.05)
        assert bed.born["ann"] == 2
        ways.start = "slow"
        assert await bed.ask("ann", "y") == "y, of course"
        assert trio.current_time() == pytest.approx(seconds + 1)
        assert bed.awake() == "ann"


async def test_the_limit_of_a_start_left_behind_does_not_touch_the_next(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    ways = Ways(start="deaf")
    async with open_bed(KeyedConfig(start_timeout=8.0), ways) as bed:
        bed.tell("ann", "x")
        await trio.sleep(1)
        bed.child("ann").kill()
        ways.start = "ok"
        await trio.sleep(20)
        assert bed.log == ["ann up 6", "ann x 6"]
        assert bed.awake() == "ann"


async def test_a_start_that_succeeds_at_last_handles_what_waited(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    ways = Ways(start="fail")
    async with open_bed(ways=ways) as bed:
        bed.tell("ann", "x")
        await trio.sleep(0.05)
        ways.start = "ok"
        assert await bed.ask("ann", "y") == "y, of course"
        assert bed.log == ["ann up 0.1", "ann x 0.1", "ann y 0.1"]


@pytest.mark.parametrize("start", ["decline", "late-decline"])
async def test_a_child_that_declines_to_start_is_no_failure(
    start: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    reports = Reports()
    async with open_bed(BRIEF, Ways(start=start), reports) as bed:
        with pytest.raises(pykka.ActorDeadError):
            await bed.ask("ann", "x")
        assert (bed.born["ann"], bed.awake()) == (1, "")
        assert bed.lost() == [("stopped", "x")]
        assert (reports.all, bed.heard.received) == ([], [])


async def test_a_key_can_be_stopped_while_it_waits_for_its_restart(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    ways = Ways(start="fail")
    async with open_bed(ways=ways) as bed:
        bed.tell("ann", "x")
        await trio.sleep(0.05)
        assert await bed.ref.ask(StopKey("ann")) is True
        ways.start = "ok"
        assert await bed.ask("ann", "y") == "y, of course"
        await trio.sleep(1)
        assert bed.log == ["ann up 0.05", "ann y 0.05"]


@pytest.mark.parametrize("is_told_again", [True, False])
async def test_one_stopped_by_its_ref_while_it_waits_is_forgotten(
    *, is_told_again: bool, autojump_clock: MockClock
) -> None:
    del autojump_clock
    ways = Ways(start="fail")
    async with open_bed(ways=ways) as bed:
        bed.tell("ann", "x")
        await trio.sleep(0.05)
        bed.child("ann").stop()
        if is_told_again:
            bed.tell("ann", "y")
        await trio.sleep(0.01)
        ways.start = "ok"
        await trio.sleep(1)
        actor = cell_of(bed.ref).actor
        assert isinstance(actor, KeyedSupervisor)
        assert len(actor._children) == is_told_again
        # The new child fails once, by itself; the old one's wait is not its wait.
        assert bed.log == (["ann up 0.15", "ann y 0.15"] if is_told_again else [])
        assert bed.lost() == [("stopped", "x")]


async def test_a_wait_that_is_over_leaves_a_running_successor_alone(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", "break")
        await trio.sleep(0.05)
        bed.child("ann").stop()
        bed.tell("ann", "y")
        await trio.sleep(1)
        assert bed.log[-2:] == ["ann up 0.05", "ann y 0.05"]


async def test_all_end_together_with_their_supervisor(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(ways=Ways(stop="slow")) as bed:
        for key in ("ann", "bob", "cid"):
            bed.tell(key, "x")
        await trio.sleep(1)
        await bed.ref.stop()
        assert sorted(bed.log)[1::3] == ["ann up", "bob up", "cid up"]
        assert sorted(bed.log)[0::3] == ["ann down 2", "bob down 2", "cid down 2"]


async def test_those_who_take_too_long_to_stop_are_killed(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    config = KeyedConfig(shutdown=3.0)
    async with open_bed(config, Ways(stop="hang")) as bed:
        bed.tell("ann", "x")
        bed.tell("bob", 60.0)
        await trio.sleep(1)
        await bed.ref.stop()
        assert (trio.current_time(), bed.awake()) == (4, "")


async def test_killed_it_takes_all_along_whatever_they_do(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    ways = Ways()
    async with open_bed(ways=ways) as bed:
        bed.tell("ann", "x")
        bed.tell("bob", 60.0)
        await trio.sleep(1)
        ways.start = "hang"
        bed.tell("cid", "y")
        await trio.sleep(1)
        ways.start = "fail"
        bed.tell("dan", "z")
        await trio.testing.wait_all_tasks_blocked()
        bed.ref.kill()
        await trio.sleep(1)
        assert bed.awake() == ""
        assert sorted(bed.lost(), key=str) == [
            ("killed", "y"),
            ("killed", 60.0),
            ("stopped", "z"),
        ]
