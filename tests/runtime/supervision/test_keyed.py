"""Proves that actors addressed by key wake, sleep and fail one by one."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from pykka import ActorDeadError
from trio.testing import MockClock

from runtime.actor.messages import Keyed
from runtime.errors import InterruptedActorError, MailboxFullError
from runtime.supervision.keyed import (
    InterruptKey,
    KeyedConfig,
    KeyedSupervisor,
    StopKey,
    ToAwake,
)
from runtime.testing import CrashError, Reports
from tests.support.keyed_bed import STEADY, BrokenError, Ways, open_bed
from tests.support.puppet import Puppet, do, virtual

SMALL = KeyedConfig(most=2, backoff=STEADY)
STUBBORN = KeyedConfig(intensity=1, period=5.0, backoff=STEADY)


async def test_the_first_message_wakes_a_child_and_the_next_find_it_awake(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", 1, 2)
        bed.tell("bob", 3)
        bed.tell("ann", 4)
        await trio.testing.wait_all_tasks_blocked()
        assert [line for line in bed.log if line.startswith("ann")] == [
            "ann up",
            "ann 1",
            "ann 2",
            "ann 4",
        ]
        assert bed.awake() == "ann bob"


async def test_the_answer_to_an_ask_comes_from_the_child() -> None:
    async with open_bed() as bed:
        assert await bed.ask("ann", "tea") == "tea, of course"
        with pytest.raises(BrokenError):
            await bed.ask("ann", "break")
        assert await bed.ask("ann", "milk") == "milk, of course"
        assert bed.born["ann"] == 1
        assert not bed.lost()


async def test_an_idle_child_sleeps_and_the_next_message_wakes_another(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", "x")
        await trio.sleep(6)
        bed.tell("ann", "y")
        await trio.sleep(9)
        assert bed.awake() == "ann"
        await trio.sleep(6)
        assert bed.awake() == ""
        bed.tell("ann", "z")
        await trio.sleep(1)
        assert bed.log == [
            "ann up",
            "ann x",
            "ann y 6",
            "ann down 16",
            "ann up 21",
            "ann z 21",
        ]


async def test_nobody_is_looked_for_while_nobody_is_awake(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        assert len(bed.system.kernel.timers) == 0
        for _ in range(2):
            bed.tell("ann", "x")
            await trio.sleep(5)
            assert len(bed.system.kernel.timers) == 1
            await trio.sleep(10)
            assert bed.awake() == ""
            assert len(bed.system.kernel.timers) == 0


async def test_children_that_fall_idle_one_by_one_all_sleep_in_time(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    names = [f"child{number}" for number in range(30)]
    async with open_bed() as bed:
        for name in names:
            bed.tell(name, "x")
            await trio.sleep(0.5)
        await trio.sleep(12.5)
        assert bed.awake() == ""
        log = dict(line.split(" down ") for line in bed.log if " down " in line)
        ends = [float(log[name]) - 0.5 * n for n, name in enumerate(names)]
        assert 10 <= min(ends) <= max(ends) <= 12.5
        sweeps = {log[name] for name in names}
        assert len(sweeps) <= 8, "a quarter of the idle time lies between two"


async def test_what_comes_while_a_child_falls_asleep_is_for_the_next(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(ways=Ways(stop="slow")) as bed:
        bed.tell("ann", "x")
        await trio.sleep(10.5)
        bed.tell("ann", "y", "z")
        answer = await bed.ask("ann", "q")
        assert answer == "q, of course"
        assert bed.log[2:] == [
            "ann down 11",
            "ann up 11",
            "ann y 11",
            "ann z 11",
            "ann q 11",
        ]
        assert not bed.lost()


async def test_a_busy_child_is_left_awake(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", 45.0)
        await trio.sleep(44)
        assert bed.awake() == "ann"
        await trio.sleep(10)
        assert bed.log == ["ann up", "ann 45.0", "ann down 50"]


async def test_a_child_that_may_not_sleep_stays_awake_until_it_may(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    ways = Ways(is_sleepy=False)
    async with open_bed(ways=ways) as bed:
        bed.tell("ann", "x")
        await trio.sleep(60)
        assert bed.awake() == "ann"
        ways.is_sleepy = True
        await trio.sleep(10)
        assert bed.awake() == ""


async def test_a_child_that_has_set_a_message_aside_does_not_sleep(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", "keep")
        await trio.sleep(60)
        assert bed.awake() == "ann"
        assert not bed.lost()


async def test_without_an_idle_time_nobody_sleeps(autojump_clock: MockClock) -> None:
    del autojump_clock
    async with open_bed(KeyedConfig()) as bed:
        bed.tell("ann", "x")
        await trio.sleep(80_000)
        assert bed.awake() == "ann"


async def test_too_many_children_send_the_one_idle_longest_to_sleep(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(SMALL) as bed:
        for key in ("ann", "bob", "ann", "cid"):
            bed.tell(key, "x")
            await trio.sleep(1)
        assert bed.awake() == "ann cid"
        assert "bob down 3" in bed.log


async def test_a_busy_child_is_passed_over_when_one_must_sleep(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(SMALL) as bed:
        bed.tell("ann", 60.0)
        bed.tell("bob", "x")
        await trio.sleep(1)
        bed.tell("cid", "x")
        await trio.sleep(1)
        assert bed.awake() == "ann cid"


async def test_a_key_is_refused_when_all_are_busy_and_the_asker_told(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(SMALL) as bed:
        for key in ("ann", "bob", "cid"):
            bed.tell(key, 60.0)
        await trio.sleep(1)
        bed.tell("dan", "x")
        with pytest.raises(MailboxFullError):
            await bed.ask("dan", "y")
        assert bed.awake() == "ann bob cid"
        assert bed.lost() == [("mailbox_full", "x"), ("mailbox_full", "y")]
        assert await bed.ask("ann", "z") == "z, of course"


async def test_a_full_mailbox_makes_dead_letters_and_tells_the_asker(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", 60.0)
        await trio.sleep(1)
        bed.tell("ann", *range(51))
        with pytest.raises(MailboxFullError):
            await bed.ask("ann", "y")
        assert bed.lost() == [("mailbox_full", 50), ("mailbox_full", "y")]


async def test_a_slow_start_keeps_what_comes_meanwhile(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(ways=Ways(start="slow")) as bed:
        bed.tell("ann", "x", "y")
        await trio.sleep(0.5)
        assert await bed.ask("ann", "z") == "z, of course"
        assert bed.log == ["ann up 1", "ann x 1", "ann y 1", "ann z 1"]


async def test_interrupting_a_key_cancels_its_handler_only(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        reply = bed.asked("ann", 60.0)
        bed.tell("ann", "x")
        await trio.sleep(1)
        bed.ref.tell(InterruptKey("ann"))
        bed.ref.tell(InterruptKey("nobody"))
        with pytest.raises(InterruptedActorError):
            await reply
        await trio.sleep(1)
        assert bed.log == ["ann up", "ann 60.0", "ann 60.0 interrupted 1", "ann x 1"]


async def test_what_may_not_wake_is_heard_by_who_is_awake_alone(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", "x")
        for key in ("ann", "bob"):
            bed.ref.tell(Keyed(key, "y", may_wake=False))
        assert await bed.ref.ask(Keyed("bob", "z", may_wake=False)) is False
        assert await bed.ref.ask(Keyed("ann", "z", may_wake=False)) == "z, of course"
        assert bed.log == ["ann up", "ann x", "ann y", "ann z"]
        assert bed.awake() == "ann"
        assert bed.lost() == []


async def test_stopping_a_key_gives_up_what_waits_and_says_when_it_is_done(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed(ways=Ways(stop="slow")) as bed:
        bed.tell("ann", 5.0)
        await trio.sleep(1)
        bed.tell("ann", "x")
        assert await bed.ref.ask(StopKey("ann")) is True
        assert trio.current_time() == 6
        assert await bed.ref.ask(StopKey("ann")) is False
        assert bed.lost() == [("stopped", "x")]
        assert await bed.ask("ann", "y") == "y, of course"


async def test_a_child_that_leaves_by_itself_is_woken_by_what_waits(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", "leave", "x")
        await trio.testing.wait_all_tasks_blocked()
        assert bed.log == ["ann up", "ann leave", "ann down", "ann up", "ann x"]
        bed.tell("ann", "leave")
        await trio.testing.wait_all_tasks_blocked()
        assert bed.awake() == ""


async def test_a_message_it_does_not_know_is_refused_and_harms_nobody() -> None:
    async with open_bed() as bed:
        bed.tell("ann", "x")
        bed.ref.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert bed.lost() == [("not_understood", "nonsense")]
        assert bed.awake() == "ann"


@pytest.mark.parametrize("settings", [{"idle_after": 0.0}, {"most": 0}])
def test_settings_without_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        KeyedConfig(**settings)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_all_who_are_awake_are_told_and_nobody_is_woken(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_bed() as bed:
        bed.tell("ann", "x")
        bed.tell("bob", "x")
        bed.ref.tell(StopKey("bob"))
        bed.ref.tell(ToAwake("y"))
        assert await bed.ask("ann", "z") == "z, of course"
        assert [each for each in bed.log if "y" in each] == ["ann y"]
        assert bed.awake() == "ann"


async def test_who_waits_for_a_timer_is_not_put_to_sleep(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        config = KeyedConfig(idle_after=0.1)
        keyed = system.spawn(KeyedSupervisor(lambda _key: Puppet(log), config))
        set_timer = do(lambda me: me.after(0.3, "rang"))
        keyed.tell(Keyed("a", set_timer))
        await trio.sleep(0.29)
        assert log == ["start"]
        await trio.sleep(1)
        assert log == ["start", "rang", "stop"]


class Restless(Puppet):
    """Fails while it is put to sleep."""

    def on_stop(self) -> None:
        super().on_stop()
        raise CrashError("to order")


async def test_who_fails_to_fall_asleep_sleeps_all_the_same(
    autojump_clock: MockClock,
) -> None:
    reports, log = Reports(), list[Any]()
    async with virtual(autojump_clock, reports) as system:
        config = KeyedConfig(idle_after=0.1)
        keyed = system.spawn(KeyedSupervisor(lambda _key: Restless(log), config))
        for _ in range(5):
            keyed.tell(Keyed("a", "word"))
            await trio.sleep(1)
        assert log == ["start", "word", "stop"] * 5
        assert len(reports.of("actor failed")) == 5
        assert reports.of("key given up") == []


async def test_a_key_does_not_take_anothers_name(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        keyed = system.spawn(
            KeyedSupervisor(lambda _key: Puppet(log), KeyedConfig()), name="k"
        )
        other = system.spawn(Puppet(), name="k/x")
        with pytest.raises(ActorDeadError, match="no_such_actor"):
            await keyed.ask(Keyed("x", "word"))
        assert log == []
        assert system.find("k/x") is other
        await other.stop()
        assert await keyed.ask(Keyed("x", "word")) == "word"
