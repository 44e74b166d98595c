"""Proves that what an idle actor passes on at once is in order, and fails it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from runtime.actor.messages import Keyed
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import RenewChild, Supervisor
from runtime.testing import CrashError, Reports, open_test_system, wait_settled
from tests.support.keyed_bed import open_bed
from tests.support.puppet import Puppet, do, virtual

if TYPE_CHECKING:
    from runtime.actor.actor import Actor


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

    trio.run(run)


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
