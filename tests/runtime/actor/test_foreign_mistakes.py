"""Proves that a mistake of a foreign thread is its own, and ends nobody else."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.actor.mailbox import MailboxConfig
from runtime.actor.ref import ActorRef
from runtime.actor.reply import Reply
from runtime.errors import MisuseError
from runtime.supervision.child import ChildSpec
from runtime.supervision.keyed import KeyedConfig
from runtime.supervision.restarts import Backoff, RestartWindow
from runtime.system import SystemConfig, open_system
from runtime.testing import Probe, Reports, wait_settled
from tests.support.puppet import Puppet, virtual

WRONG: list[Any] = [float("nan"), "5", 10**400, 10**5000, b"", [1]]


class Weightless:
    """A message whose weight cannot be told."""

    @property
    def weight(self) -> int:
        raise ZeroDivisionError


def ask_wrongly(ref: ActorRef, timeout: Any) -> None:
    with pytest.raises(MisuseError):
        ref.ask("x", timeout=timeout, block=False)


@pytest.mark.parametrize("seconds", WRONG, ids=type)
async def test_a_wrong_timeout_is_refused_before_anything_is_sent(
    seconds: Any,
) -> None:
    async with open_system() as system:
        probe = Probe()
        ref = system.spawn(probe)
        ask_wrongly(ref, seconds)
        await trio.to_thread.run_sync(ask_wrongly, ref, seconds)
        assert await ref.ask("right", timeout=5) is None
        assert probe.received == ["right"]


def stop_wrongly(ref: ActorRef, timeout: Any) -> None:
    for block in (True, False):
        with pytest.raises(MisuseError, match="a stop needs"):
            ref.stop(timeout=timeout, block=block)
    with pytest.raises(MisuseError, match="waiting needs"):
        Reply().get(timeout=timeout)


@pytest.mark.parametrize("seconds", WRONG, ids=type)
async def test_a_wrong_time_is_refused_wherever_one_is_given(seconds: Any) -> None:
    def set_timers(me: Puppet) -> None:
        for act in (me.after, me.every):
            with pytest.raises(MisuseError, match="a timer needs"):
                act(seconds, "tick")

    async with open_system() as system:
        ref = system.spawn(Puppet())
        await trio.to_thread.run_sync(stop_wrongly, ref, seconds)
        with pytest.raises(MisuseError, match="a stop needs"):
            ref.stop(timeout=seconds)
        assert await ref.ask(set_timers) is None
        assert not system.statistics().timers
        assert ref.is_alive()
    with pytest.raises(MisuseError, match="deadline must be None or 0"):
        type("Hasty", (Puppet,), {"deadline": seconds})
    with pytest.raises(MisuseError, match="ask_timeout must be"):
        async with open_system(SystemConfig(ask_timeout=seconds)):
            pass
    for make in (
        lambda: ChildSpec(name="child", start=Puppet, shutdown=seconds),
        lambda: KeyedConfig(idle_after=seconds),
        lambda: RestartWindow(1, seconds),
        lambda: Backoff(first=seconds),
    ):
        with pytest.raises(ValueError, match="must be"):
            make()


async def test_what_cannot_be_weighed_weighs_nothing() -> None:
    async with open_system() as system:
        probe = Probe()
        ref = system.spawn(probe, mailbox=MailboxConfig(capacity=2, max_bytes=10))
        for message in (Weightless(), Weightless()):
            await trio.to_thread.run_sync(ref.tell, message)
        await probe.wait_count(2)
        await ref.stop()
        system.dead_letters.add("nobody", "stopped", Weightless())


async def test_only_an_error_can_crash_an_actor(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref, wrong = system.spawn(Probe()), "no error"
        with pytest.raises(MisuseError):
            ref.crash(wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert ref.is_alive()


async def test_a_foreign_call_that_fails_is_reported() -> None:
    reports = Reports()
    async with open_system(report=reports) as system:
        ref = system.spawn(Probe())
        call = partial(divmod, 1, 0)
        dispatcher, cell = system.kernel.dispatcher, ref._cell
        await trio.to_thread.run_sync(dispatcher.call_soon, cell, call)
        assert await ref.ask("still there?") is None
        await wait_settled(system)
    (report,) = reports.of("a call from another thread failed")
    assert isinstance(report["error"], ZeroDivisionError)
