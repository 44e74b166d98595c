"""Proves that what an idle actor passes on at once is in order, and fails it alone."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any, ClassVar

import trio
import trio.testing
from hypothesis import given, strategies as st

from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.supervision.child import ChildSpec
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from runtime.supervision.supervisor import RenewChild, Supervisor
from runtime.system import open_system
from runtime.testing import CrashError, Reports, open_test_system, wait_settled
from tests.support.keyed_bed import open_bed
from tests.support.puppet import Puppet, do, virtual


class Doorway(Puppet):
    """Passes words on to the actor `hall`; says of all whether it was at once."""

    passes_on: ClassVar[bool] = True

    def pass_on(self, message: Any) -> bool:
        if message == "trip":
            raise CrashError("to order")
        if not isinstance(message, str):
            return False
        self.log.append(f"{message} at once")
        self.tell("hall", message)
        return True


def passing(message: Keyed) -> Any:
    """Make a message of what a puppet is to tell the bed."""
    return do(lambda me: me.tell("bed", message))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=25),
    st.sets(st.integers(0, 25)),
)
def test_who_is_told_by_key_hears_each_sender_in_order(
    told: list[tuple[str, str]], pauses: set[int]
) -> None:
    async def run() -> None:
        async with open_bed() as bed:
            sent: dict[tuple[str, str], list[int]] = {}
            senders = {name: bed.system.spawn(Puppet(), name=name) for name in "ab"}
            for number, (sender, key) in enumerate(told):
                sent.setdefault((sender, key), []).append(number)
                message = Keyed(key, f"{sender} {number}")
                if number % 3 == 2:  # by its ref, too: this comes by the mailbox
                    bed.ref.tell(message)
                    sent[sender, key].pop()
                else:
                    senders[sender].tell(passing(message))
                if number in pauses:
                    await trio.testing.wait_all_tasks_blocked()
            await wait_settled(bed.system)
            assert not bed.lost()
            for (sender, key), numbers in sent.items():
                words = [line.split() for line in bed.log]
                heard = [
                    int(word[2])
                    for word in words
                    if word[:2] == [key, sender] and int(word[2]) % 3 != 2
                ]
                assert heard == numbers

    # In time that jumps: whoever waits in vain is found at once, not each for 10 s.
    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_an_idle_one_passes_on_in_its_senders_turn(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        seen: list[Any] = []
        hall = Puppet()

        def say(me: Actor) -> None:
            me.tell("door", "one")
            seen.extend(door.log)
            me.tell("door", 2)  # what it does not pass on waits in its mailbox
            me.tell("door", "three")  # and so does what comes behind
            seen.extend(door.log)

        door = Doorway()
        system.spawn(hall, name="hall")
        system.spawn(door, name="door")
        system.spawn(Puppet(), name="guest").tell(say)
        await wait_settled(system)
        assert seen == ["start", "one at once"] * 2
        assert door.log == ["start", "one at once", 2, "three"]
        assert hall.log == ["start", "one"]


async def test_a_child_passes_on_what_is_for_its_key(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        seen: list[Any] = []
        hall, door = Puppet(), Doorway()

        def say(me: Actor) -> None:
            me.tell("doors", Keyed("front", "two"))
            seen.extend(door.log)
            me.tell("doors", Keyed("front", 3))  # it does not pass that on
            me.tell("doors", Keyed("front", "four"))  # nor what comes behind
            seen.extend(door.log)

        system.spawn(hall, name="hall")
        system.spawn(KeyedSupervisor(lambda _: door, KeyedConfig()), name="doors")
        guest = system.spawn(Puppet(), name="guest")
        guest.tell(do(lambda me: me.tell("doors", Keyed("front", "one"))))  # wakes it
        await wait_settled(system)
        guest.tell(say)
        await wait_settled(system)
        assert seen == ["start", "one", "two at once"] * 2
        assert door.log == ["start", "one", "two at once", 3, "four"]
        assert hall.log == ["start", "two"]


async def test_what_fails_it_there_fails_it_alone_and_comes_again_by_the_mailbox(
    autojump_clock: trio.testing.MockClock,
) -> None:
    log: list[Any] = []
    reports = Reports()
    async with virtual(autojump_clock, reports) as system:
        root = system.spawn(Supervisor())
        await root.ask(RenewChild(ChildSpec(name="door", start=lambda: Doorway(log))))
        (name,) = [each.name for each in system.actors() if each.name.endswith("door")]
        guest = Puppet()
        system.spawn(guest, name="guest").tell(do(lambda me: me.tell(name, "trip")))
        await wait_settled(system)
        assert log == ["start", "failure", "start", "trip"]
        assert guest.log == ["start"]
        assert reports.of("actor failed")


async def test_what_it_tells_itself_meanwhile_waits() -> None:
    class Echo(Doorway):
        def pass_on(self, message: Any) -> bool:
            self.log.append(f"{message} begins")
            self.tell(self.actor_ref, f"{message} again")
            self.log.append(f"{message} ends")
            return True

    async with open_test_system() as system:
        echo = Echo()
        system.spawn(echo, name="echo")
        guest = system.spawn(Puppet(), name="guest")
        guest.tell(do(lambda me: me.tell("echo", "hello")))
        await wait_settled(system)
        assert echo.log == ["start", "hello begins", "hello ends", "hello again"]


async def test_who_does_not_say_whether_it_passed_on_fails_and_is_told_how() -> None:
    class Mute(Doorway):
        def pass_on(self, message: Any) -> Any:
            self.log.append(message)

    reports = Reports()
    async with open_test_system(reports) as system:
        system.spawn(Mute(), name="mute")
        guest = Puppet()
        system.spawn(guest, name="guest").tell(do(lambda me: me.tell("mute", "hello")))
        await wait_settled(system)
        assert guest.log == ["start"]
        assert system.find("mute") is None
    (told,) = reports.of("actor failed")
    assert "Mute.pass_on must return True or False, not None" in str(told["error"])


async def test_who_waits_for_room_is_not_overtaken_by_what_is_passed_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Narrow(Doorway):
        mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1, overflow="wait")

    async with virtual(autojump_clock) as system:
        door = Narrow()
        ref = system.spawn(door, name="door")
        guest = system.spawn(Puppet(), name="guest")
        ref.tell(do(lambda me: me.stash()))  # there is no more room
        await wait_settled(system)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.send, 1)
            await trio.testing.wait_all_tasks_blocked()
            assert not await guest.ask(do(lambda me: me.tell("door", "two")))
            assert door.log == ["start"]
            nursery.cancel_scope.cancel()


class Relay(Doorway):
    """Passes a word on to the next one, as long as there is one."""

    def __init__(self, number: int, log: list[Any]) -> None:
        super().__init__(log)
        self.number = number

    def pass_on(self, message: Any) -> bool:
        self.tell(f"relay {self.number + 1}", message)
        self.log.append(message)
        return True

    on_receive = pass_on


async def test_a_long_way_of_such_actors_is_gone_in_order_and_fails_nobody(
    autojump_clock: trio.testing.MockClock,
) -> None:
    def say(me: Actor) -> None:
        for number in range(3):
            me.tell("relay 0", number)

    reports = Reports()
    async with virtual(autojump_clock, reports) as system:
        logs: list[list[Any]] = [[] for _ in range(400)]
        for number, log in enumerate(logs):
            system.spawn(Relay(number, log), name=f"relay {number}")
        system.spawn(Puppet(), name="guest").tell(say)
        await wait_settled(system)
    assert all(log == ["start", 0, 1, 2, "stop"] for log in logs)
    assert not reports.of("actor failed")


async def test_what_is_passed_on_counts_for_the_turn(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Counter(Doorway):
        passed = 0

        def pass_on(self, message: Any) -> bool:
            del message
            self.passed += 1
            return True

    def say(me: Actor) -> None:
        for _ in range(100):
            me.tell("door", "one")

    async with virtual(autojump_clock) as system:
        door, seen = Counter(), [0]
        system.spawn(door, name="door")
        guest = system.spawn(Puppet(), name="guest")
        for _ in range(250):
            guest.tell(say)
        while door.passed < 25_000:
            await trio.lowlevel.checkpoint()
            seen.append(door.passed)
        most = max(after - before for before, after in itertools.pairwise(seen))
        # With the batches under way; two, for trio has no order of tasks.
        assert most <= 2 * (2048 + 64 * 100)


class Marker:
    """Lives as long as the handler that made it."""


async def test_the_collector_frees_a_sender_that_holds_the_ref_of_who_failed_there(
    autojump_clock: trio.testing.MockClock,
) -> None:
    alive: weakref.WeakSet[Marker] = weakref.WeakSet()
    async with open_system(report=lambda _event, _fields: None) as system:
        assert autojump_clock.autojump_threshold == 0
        system.spawn(Doorway(), name="door")

        def say(me: Actor) -> None:
            mark = Marker()
            alive.add(mark)
            door = system.find("door")
            assert door is not None
            assert me.tell(door, "trip")

        guest = system.spawn(Puppet(), name="guest")
        guest.tell(say)
        await wait_settled(system)
        assert system.find("door") is None
        gc.collect()
        assert not alive
        assert guest.is_alive()
