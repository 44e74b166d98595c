"""Proves that strangers' objects, threads and classes end nobody but whose they are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed, weight_of
from runtime.actor.ref import ActorRef
from runtime.errors import DeclineStart, KernelError, MisuseError, StartError
from runtime.supervision.child import ChildSpec
from runtime.supervision.keyed import (
    InterruptKey,
    KeyedConfig,
    KeyedSupervisor,
    KeyGivenUp,
    StopKey,
)
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import StartChild, Supervisor
from runtime.system import ActorSystem, open_system
from runtime.testing import CrashError, Probe, open_test_system
from tests.support.puppet import Puppet, crash, do, supervise, virtual


class OddError(BaseException):
    """What no `except Exception` catches."""


class Unhashable(type):
    """The class of classes that have no hash."""

    def __eq__(cls, other: object) -> bool:
        return cls is other

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


class OfNoHash(metaclass=Unhashable):
    """A message whose class cannot be looked up."""


class Unbound:
    """A message as a proxy is that stands for nothing yet."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise RuntimeError("stands for nothing")


class Endless(str):
    """A text that has no length."""

    __slots__ = ()

    def __len__(self) -> int:
        raise RuntimeError("no end in sight")


class Unweighed:
    """A message whose weight ends programs."""

    @property
    def weight(self) -> int:
        raise OddError


class MuteError(Exception):
    """An error that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class MuteOddError(OddError):
    """No `Exception`, and without a text."""

    __str__ = __repr__ = MuteError.__str__


def stash_and_crash(me: Actor, _message: object) -> None:
    me.stash()
    raise CrashError("to order")


STRANGERS = [OfNoHash, Unbound, Endless, Unweighed]
WAYS: list[Callable[[Actor, object], object]] = [
    lambda _me, _message: None,
    lambda me, _message: crash(me),
    stash_and_crash,
    lambda me, message: me.tell("nobody", message),
    lambda me, _message: me.stop(),
]


@pytest.mark.parametrize("bounds", [MailboxConfig(), MailboxConfig(max_bytes=100)])
@pytest.mark.parametrize("way", WAYS)
async def test_whatever_a_message_is_it_is_handled_or_given_up(
    way: Any, bounds: MailboxConfig, autojump_clock: MockClock
) -> None:
    handled: list[object] = []

    class Recipient(Puppet):
        mailbox: ClassVar[MailboxConfig] = bounds

        def on_receive(self, message: object) -> None:
            handled.append(message)
            way(self, message)

    keeper = Puppet()
    for make in STRANGERS:
        async with virtual(autojump_clock) as system:
            system.spawn(keeper := Puppet())
            (ref,) = await supervise(system, Recipient, intensity=100)
            handled.clear()
            for message in (first := make(), make()):
                ref.tell(message)
            await trio.sleep(100)
            assert handled[0] is first
            assert system.root is not None
            assert system.root.is_alive()
            system.actors()
        assert keeper.log == ["start", "stop"]


@pytest.mark.parametrize("make", STRANGERS)
async def test_whatever_a_message_is_it_may_be_asked(
    make: Any, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        message = make()
        assert await ref.ask(message) is message


def test_a_weight_is_a_number_that_is_not_below_nothing() -> None:
    for wrong in (-1, float("nan"), float("inf"), None, "much"):
        message = type("Message", (), {"weight": wrong})()
        assert weight_of(message) == 0
    assert [weight_of(each()) for each in STRANGERS] == [0, 0, 0, 0]


async def test_an_error_without_a_text_fails_its_actor_only(
    autojump_clock: MockClock,
) -> None:
    def fail(me: Puppet) -> None:
        if me.log.count("start") == 1:
            raise MuteError

    log: list[Any] = []
    async with virtual(autojump_clock) as system:
        ref, other = await supervise(system, lambda: Puppet(log), Puppet)
        ref.tell(fail)
        await trio.testing.wait_all_tasks_blocked()
        assert [each.last_end for each in system.actors()].count("MuteError: MuteError")
        assert await ref.ask("goes on") == "goes on"
        assert await other.ask("untouched") == "untouched"
        assert log.count("start") == 2


async def test_a_base_exception_without_a_text_fails_its_actor_only(
    autojump_clock: MockClock,
) -> None:
    def fail(_me: Actor) -> NoReturn:
        raise MuteOddError

    async with virtual(autojump_clock) as system:
        other = system.spawn(Puppet())
        with pytest.raises(KernelError, match="no Exception: MuteOddError"):
            await system.spawn(Puppet()).ask(fail)
        assert await other.ask("x") == "x"


async def test_a_start_that_fails_without_a_text_is_a_failed_start(
    autojump_clock: MockClock,
) -> None:
    class Mute(Puppet):
        def on_start(self) -> None:
            raise MuteError

    async with virtual(autojump_clock) as system:
        with pytest.raises(StartError, match="did not start: MuteError"):
            await supervise(system, Mute)


async def test_a_root_that_fails_without_a_text_ends_the_wait(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        root = await system.start_root(Supervisor())
        root.crash(MuteError())
        with pytest.raises(KernelError, match="root supervisor failed: MuteError"):
            await system.wait_ended()


@pytest.mark.parametrize("kind", [OddError, GeneratorExit, SystemExit])
async def test_what_tells_the_operator_or_observes_ends_nobody_out_of_order(
    kind: type[BaseException], autojump_clock: MockClock
) -> None:
    def refuse(*_given: object) -> None:
        raise kind

    keeper = Puppet()

    async def live() -> None:
        async with open_system(report=refuse) as system:
            assert autojump_clock.autojump_threshold == 0
            system.dead_letters.observe(refuse)
            system.spawn(keeper)
            failing = system.spawn(Puppet())
            failing.tell(crash)
            failing.tell("lost")
            await trio.sleep(1)
            assert not failing.is_alive()
            assert kind is not SystemExit

    if kind is SystemExit:
        with pytest.raises(SystemExit):
            await live()
    else:
        await live()
    assert keeper.log == ["start", "stop"]


def told(key: str) -> Keyed:
    return Keyed(key, "x")


@pytest.mark.parametrize("make", [told, StopKey, InterruptKey])
@pytest.mark.parametrize("key", [["a"], None, 7])
async def test_a_key_that_is_none_is_refused_and_harms_nobody(
    key: Any, make: Any, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        keys = system.spawn(KeyedSupervisor(lambda _key: Puppet(), KeyedConfig()))
        assert await keys.ask(Keyed("ann", "x")) == "x"
        ann = system.find(f"{keys.name}/ann")
        teller = system.spawn(Puppet())
        assert await teller.ask(do(lambda me: me.tell(keys, make(key))))
        keys.tell(make(key))
        with pytest.raises(MisuseError, match="does not handle"):
            await keys.ask(make(key))
        assert system.find(f"{keys.name}/ann") is ann
        assert await keys.ask(Keyed("ann", "y")) == "y"
        assert system.dead_letters.counts == {"not_understood": 2}


@dataclass(frozen=True)
class Frozen(Actor):
    """An actor that lets nobody set what the kernel must."""


async def test_a_key_whose_actor_cannot_be_started_is_given_up_and_its_asker_told(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        owner = Probe()
        keyed = KeyedSupervisor(
            lambda _key: Frozen(), KeyedConfig(), system.spawn(owner)
        )
        with pytest.raises(Exception, match="ended before handling"):
            await system.spawn(keyed).ask(Keyed("ann", "x"), timeout=1000)
        assert owner.received == [KeyGivenUp("ann", "FrozenInstanceError")]


@pytest.mark.parametrize(
    ("name", "wrong"), [("mailbox", 5), ("poison_after", "3"), ("poison_after", None)]
)
def test_settings_of_a_class_that_are_none_are_refused_with_it(
    name: str, wrong: object
) -> None:
    with pytest.raises(MisuseError, match=f"Hasty.{name} must be a "):
        type("Hasty", (Actor,), {name: wrong})


async def test_only_who_starts_can_decline_to(autojump_clock: MockClock) -> None:
    """What a handler raises is a failure, whatever it is; P15, P21."""
    born: list[str] = []

    class Odd(Puppet):
        def on_start(self) -> None:
            born.append(self.actor_urn)

        def on_receive(self, message: object) -> object:
            if message == "decline" and len(born) == 1:
                raise DeclineStart
            return message

    async with virtual(autojump_clock) as system:
        backoff = Backoff(jitter=0.0)
        keys = system.spawn(
            KeyedSupervisor(lambda _key: Odd(), KeyedConfig(backoff=backoff))
        )
        keys.tell(Keyed("ann", "decline"))
        assert await keys.ask(Keyed("ann", "waited")) == "waited"
        assert len(born) == 2
        assert not system.dead_letters.last()


async def leave_nursery_open(_me: Actor) -> None:
    nursery = await trio.open_nursery().__aenter__()
    nursery.start_soon(trio.sleep, 50)


async def leave_shielded_nursery_open(_me: Actor) -> None:
    nursery = await trio.open_nursery().__aenter__()
    nursery.cancel_scope.shield = True  # trio itself would let it go on
    nursery.start_soon(trio.sleep, 50)


async def leave_scope_open(_me: Actor) -> None:
    trio.CancelScope().__enter__()


async def wait_for_asyncio(_me: Actor) -> None:
    class Foreign:
        def __await__(self) -> Any:
            yield None

    await Foreign()


@pytest.mark.parametrize(
    "act",
    [
        leave_nursery_open,
        leave_shielded_nursery_open,
        leave_scope_open,
        wait_for_asyncio,
    ],
)
async def test_what_a_handler_leaves_open_ends_only_its_actor(
    act: Any, autojump_clock: MockClock
) -> None:
    keeper = Puppet()
    async with virtual(autojump_clock) as system:
        system.spawn(keeper)
        ref = system.spawn(Puppet())
        tasks = trio.lowlevel.current_statistics().tasks_living
        with pytest.raises((RuntimeError, TypeError)):
            await ref.ask(act)
        assert await ref.ask("goes on") == "goes on"
        ref.tell(act)
        await trio.sleep(1)
        assert not ref.is_alive()
        # Nothing that it had opened goes on.
        assert trio.lowlevel.current_statistics().tasks_living == tasks
    assert keeper.log == ["start", "stop"]


async def test_a_hook_that_leaves_a_nursery_open_ends_its_actor_all_the_same(
    autojump_clock: MockClock,
) -> None:
    class Open(Puppet):
        async def on_stop(self) -> None:
            await leave_nursery_open(self)

    keeper = Puppet()
    async with virtual(autojump_clock) as system:
        system.spawn(keeper)
        assert await system.spawn(Open()).stop()
    assert keeper.log == ["start", "stop"]


class OtherLoop:
    """Another thread with a loop and a system of its own, in which one actor lives."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, int]] = []
        self.is_open, self.may_end = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=trio.run, args=(self.live,))
        self.ref: ActorRef

    async def live(self) -> None:
        other = self

        class Listener(Actor):
            def on_receive(self, message: object) -> None:
                other.heard.append((message, threading.get_ident()))

        async with open_test_system() as system:
            self.ref = system.spawn(Listener())
            self.is_open.set()
            await trio.to_thread.run_sync(self.may_end.wait)


async def test_an_actor_of_another_threads_system_is_told_on_its_thread() -> None:
    other = OtherLoop()
    other.thread.start()
    try:
        await trio.to_thread.run_sync(other.is_open.wait)
        async with open_test_system() as system:
            await use_from_here(system, other)
    finally:
        other.may_end.set()
        await trio.to_thread.run_sync(other.thread.join)
    assert other.heard == [("x", other.thread.ident), ("asked", other.thread.ident)]


async def use_from_here(system: ActorSystem, other: OtherLoop) -> None:
    puppet = system.spawn(Puppet())
    assert await puppet.ask(do(lambda me: me.tell(other.ref, "x")))
    await other.ref.ask("asked", block=False)
    with pytest.raises(MisuseError, match="use `tell`"):
        await other.ref.send("y")
    with pytest.raises(MisuseError, match="another thread's"):
        await puppet.ask(do(lambda me: me.watch(other.ref)))


async def test_what_another_system_does_not_take_is_a_dead_letter_here() -> None:
    async with open_test_system() as system:
        async with open_test_system() as other:
            ref = other.spawn(Puppet())
        puppet = system.spawn(Puppet())
        assert not await puppet.ask(do(lambda me: me.tell(ref, "late")))
        assert system.dead_letters.counts == {"stopped": 1}


async def test_a_stranger_that_does_not_start_is_the_askers_affair(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        root = await system.start_root(Supervisor())
        with pytest.raises(Exception, match="cannot assign"):
            await root.ask(StartChild(ChildSpec(name="frozen", start=Frozen)))
        assert root.is_alive()
