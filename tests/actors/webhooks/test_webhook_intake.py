"""Proves that each delivery is stored before it is confirmed, and done once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from actors import names
from actors.errors import OverloadedError, StoppingError
from actors.messages.inbound import Address, Inbound
from actors.protocol import Route, StopAccepting
from actors.webhooks.intake import WebhookIntake, hand_in
from actors.webhooks.messages import Trigger, Triggered
from runtime.actor.ref import ActorRef
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Settle
from runtime.system import ActorSystem
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


class Bench:
    """An intake between an edge and a router."""

    def __init__(self, system: ActorSystem, store: MemoryStore) -> None:
        self.system = system
        self.store = store
        self.router: Probe = probe(system, names.ROUTER)
        services = changed(make_services(store), redact=without_secret)
        self.intake: ActorRef = system.spawn(
            WebhookIntake(services), name=names.WEBHOOKS
        )

    async def send(self, key: str = "d1", **fields: Any) -> Triggered:
        return await hand_in(self.system.find, trigger(key, **fields))

    def heard(self) -> list[Inbound]:
        return [each.inbound for each in of_kind(self.router, Route)]


def without_secret(text: str) -> str:
    return text.replace("s3cret", "***")


def trigger(key: str = "d1", **fields: Any) -> Trigger:
    given: dict[str, Any] = {
        "webhook": "deploys",
        "key": key,
        "agents": ("anna",),
        "address": Address("fake", "room"),
        "platform": "fake",
        "text": f"tell of {key}",
        "per_minute": 10,
        "max_open": 100,
    }
    return Trigger(**{**given, **fields})


@asynccontextmanager
async def open_bench(
    clock: Clock, store: MemoryStore | None = None, fails_at: Collection[int] = ()
) -> AsyncGenerator[Bench]:
    async with virtual(clock) as system:
        yield Bench(system, store or MemoryStore(fails_at=fails_at))


async def test_it_is_stored_then_routed_and_confirmed(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock) as bench:
        told = await bench.send(text="mind the s3cret")
        (row,) = await bench.store.unsettled()
        (inbound,) = bench.heard()
    assert told == Triggered((row.id,), is_new=True)
    assert inbound.id == row.id
    assert (inbound.agent, inbound.occasion, inbound.is_direct) == (
        "anna",
        "webhook",
        False,
    )
    assert inbound.sender_id == "webhook:deploys"
    assert inbound.text == "mind the ***"


async def test_a_delivery_counts_once_however_often_it_comes(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock) as bench:
        first = await bench.send()
        again = await bench.send()
        other = await bench.send(webhook="others")
    async with open_bench(autojump_clock, bench.store.reopened()) as later:
        restarted = await later.send()
        assert later.heard() == []
    assert again == restarted == Triggered(first.ids, is_new=False)
    assert other.is_new
    assert other.ids != first.ids
    assert len(bench.heard()) == 2


async def test_the_same_delivery_twice_at_once_is_one(autojump_clock: Clock) -> None:
    told: list[Triggered] = []

    async def send(bench: Bench) -> None:
        told.append(await bench.send())

    async with open_bench(autojump_clock) as bench:
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(send, bench)
        assert len(bench.heard()) == 1
    assert len({each.ids for each in told}) == 1
    assert sum(each.is_new for each in told) == 1


async def test_all_agents_of_a_delivery_are_told_or_none(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, fails_at={1}) as bench:
        two = partial(bench.send, agents=("anna", "ben"))
        with pytest.raises(StoreUnavailableError):
            await two()
        assert bench.heard() == []
        told = await two()
        assert [each.agent for each in bench.heard()] == ["anna", "ben"]
        assert told.ids == tuple(each.id for each in bench.heard())
        assert await two() == Triggered(told.ids, is_new=False)


async def test_who_was_added_since_is_not_told_of_what_came_before(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock) as bench:
        first = await bench.send()
        again = await bench.send(agents=("anna", "ben"))
        assert again == Triggered(first.ids, is_new=False)
        assert len(bench.heard()) == 1


async def test_more_than_so_many_a_minute_come_later(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock) as bench:
        for number in range(10):
            await bench.send(f"d{number}")
        with pytest.raises(OverloadedError, match="above 10 a minute"):
            await bench.send("d10")
        assert not (await bench.send("d3")).is_new  # known ones cost nothing
        assert (await bench.send("d10", webhook="others")).is_new
        await trio.sleep(60)
        assert (await bench.send("d10")).is_new


async def test_no_more_tasks_wait_than_may(
    autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.webhooks.intake.PAGE", 2)
    async with open_bench(autojump_clock) as bench:
        few = partial(bench.send, max_open=3)
        for key in ("a", "b", "c"):
            await few(key)
        with pytest.raises(OverloadedError, match="too much of this webhook waits"):
            await few("d")
        assert (await few("d", webhook="others")).is_new
    async with open_bench(autojump_clock, bench.store.reopened()) as later:
        few = partial(later.send, max_open=3)
        with pytest.raises(OverloadedError):
            await few("d")  # it knows of those before the restart
        rows = await later.store.unsettled()
        done = tuple(Settle(row.id, "replied") for row in rows[:1])
        await later.store.commit(Commit(at=1.0, settles=done))
        await trio.sleep(5)
        assert (await few("d")).is_new


async def test_nothing_is_taken_in_once_the_door_is_closed(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock) as bench:
        bench.intake.tell(StopAccepting())
        with pytest.raises(StoppingError):
            await bench.send()
        assert await bench.store.unsettled() == ()


async def test_before_the_start_the_sender_is_told_to_come_again(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        with pytest.raises(OverloadedError, match="starting"):
            await hand_in(system.find, trigger())
