"""Proves that each event reaches its receiver, or is given up for a reason."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.journal.notices import (
    DEAD,
    DUE,
    Announcer,
    Happened,
    Notice,
    Subscription,
    announced,
    wake_notifiers,
)
from actors.webhooks.messages import Receiver, SendNotices, WebhookMetrics
from actors.webhooks.notifier import LONGEST_REST, SWEEP_EVERY, Notifier
from actors.webhooks.retry import PostResult, WebhookRetryPolicy
from runtime.store.rows import Commit, Entry, decoded
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Metrics
from tests.fakes.actors.neighbours import make_services
from tests.fakes.company.company import EPOCH, TrioClock
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

DAY = 86_400.0
DOWN = PostResult(503)


class Bench:
    """A notifier, and a receiver that answers to order."""

    def __init__(self, store: MemoryStore | None = None, **receiver: Any) -> None:
        self.store = store or MemoryStore()
        self.metrics = Metrics()
        announcer = Announcer((Subscription(name="ops"),))
        self.clock = TrioClock()
        self.services = changed(
            make_services(self.store), announcer=announcer, clock=self.clock
        )
        self.answers: dict[int, PostResult] = {}
        """By the event's number: what it is answered, each time; else 204."""

        self.all: PostResult | None = None
        """What all are answered, as long as it is set."""

        self.takes = 0.0
        """Seconds until an answer."""

        self.tries: list[tuple[int, float]] = []
        """Numbers of the events, and seconds since the start."""

        self.ids: list[str] = []
        self.at_once = self.most_at_once = 0
        given: dict[str, Any] = {
            "name": "ops",
            "post": self.post,
            "policy": WebhookRetryPolicy(),
            "at_once": 4,
            "most": 100,
            "keep_dead": 30 * DAY,
            "metrics": WebhookMetrics(self.metrics),
        }
        self.receiver = Receiver(**{**given, **receiver})
        self.system: ActorSystem

    async def post(self, name: str, body: bytes, traceparent: str) -> PostResult:
        assert not traceparent, "nothing is traced here"
        number: int = json.loads(body)["data"]["number"]
        self.ids.append(name)
        self.tries.append((number, round(trio.current_time(), 1)))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await trio.sleep(self.takes)
        self.at_once -= 1
        return self.all or self.answers.get(number, PostResult(204))

    async def happen(self, *numbers: int, is_told: bool = True) -> None:
        happened = [Happened("turn.finished", {"number": each}) for each in numbers]
        entries = announced(happened, self.services)
        await self.store.commit(Commit(at=self.services.clock.wall(), entries=entries))
        if is_told:
            wake_notifiers(self.system.find, entries)

    async def rows(self, kind: str) -> list[Notice]:
        found = await self.store.entries(kind)
        return [notice for row in found if (notice := decoded(row, Notice)) is not None]

    @property
    def tried(self) -> list[int]:
        return [number for number, _ in self.tries]

    def counted(self, outcome: str) -> float:
        line = f'callboard_webhooks_sent_total{{outcome="{outcome}",webhook="ops"}} '
        _, _, count = self.metrics.render().decode().partition(line)
        return float(count.partition("\n")[0] or 0)


@asynccontextmanager
async def running(clock: Clock, bench: Bench) -> AsyncGenerator[Bench]:
    async with virtual(clock) as system:
        bench.system = system
        system.spawn(
            Notifier(bench.receiver, bench.services), name=names.notifier("ops")
        )
        yield bench


async def test_what_is_taken_is_sent_at_once_and_forgotten(
    autojump_clock: Clock,
) -> None:
    async with running(autojump_clock, Bench()) as bench:
        await trio.sleep(1)
        await bench.happen(1, 2)
        await trio.sleep(1)
        assert sorted(bench.tries) == [(1, 1.0), (2, 1.0)]
        assert await bench.rows(DUE) == await bench.rows(DEAD) == []
        assert bench.counted("sent")
        await trio.sleep(DAY)
        assert len(bench.tries) == 2


async def test_of_several_nodes_one_sends(autojump_clock: Clock) -> None:
    bench = Bench()
    bench.services.duties.has_rest = False
    async with running(autojump_clock, bench):
        await bench.happen(1)
        await trio.sleep(2 * SWEEP_EVERY)
        assert bench.tried == []
        bench.services.duties.has_rest = True
        bench.system.find(names.notifier("ops")).tell(SendNotices())  # type: ignore[union-attr]
        await trio.sleep(1)
        assert bench.tried == [1]
        bench.services.duties.has_rest = False
        await bench.happen(2)
        await trio.sleep(1)
        assert bench.tried == [1]


async def test_what_an_earlier_process_left_is_sent(autojump_clock: Clock) -> None:
    bench = Bench()
    await bench.happen(1, is_told=False)
    async with running(autojump_clock, bench):
        await trio.sleep(1)
        assert bench.tried == [1]
        await bench.happen(2, is_told=False)  # whoever stored it was killed
        await trio.sleep(SWEEP_EVERY)
        assert bench.tried == [1, 2]


async def test_it_is_tried_again_under_the_same_id_ever_later(
    autojump_clock: Clock,
) -> None:
    bench = Bench()
    bench.answers[1] = PostResult(400)
    async with running(autojump_clock, bench):
        await bench.happen(1)
        await trio.sleep(3 * DAY)
        times = [at for _, at in bench.tries]
        assert len(times) == 10
        assert len(set(bench.ids)) == 1
        gaps = [b - a for a, b in pairwise(times)]
        wanted = [10, 40, 160, 640, 2560, 10_240, 21_600, 21_600, 21_600]
        for gap, want in zip(gaps, wanted, strict=True):
            assert want <= gap <= 1.2 * want + 1
        (dead,) = await bench.rows(DEAD)
    assert (dead.attempts, dead.why) == (10, "HTTP 400, at the last of 10 tries")
    assert await bench.rows(DUE) == []


async def test_one_event_that_is_refused_keeps_no_other_waiting(
    autojump_clock: Clock,
) -> None:
    bench = Bench()
    bench.answers[1] = PostResult(422)
    async with running(autojump_clock, bench):
        await bench.happen(*range(1, 21))
        await trio.sleep(5)
        assert sorted(set(bench.tried)) == list(range(1, 21))
        assert len(await bench.rows(DUE)) == 1


async def test_a_receiver_in_trouble_is_asked_seldom_until_it_is_well(
    autojump_clock: Clock,
) -> None:
    # More attempts than a day has for one event: whose turn comes often is a matter of
    # chance, and after ten it would be given up.
    bench = Bench(policy=WebhookRetryPolicy(attempts=100))
    bench.all = DOWN
    async with running(autojump_clock, bench):
        await bench.happen(*range(100))
        await trio.sleep(DAY)
        assert len(bench.tries) < DAY / LONGEST_REST + 20
        assert bench.counted("later")
        bench.all = None
        await trio.sleep(2 * LONGEST_REST)
        left = await bench.rows(DUE)
        assert all(each.attempts for each in left)  # they wait for their own time
        assert len(left) < 30
        await trio.sleep(DAY)
    assert await bench.rows(DUE) == await bench.rows(DEAD) == []


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_after_a_clock_that_was_ahead_no_event_waits_for_that_day(
    *, is_restarted: bool, autojump_clock: Clock
) -> None:
    bench = Bench()
    bench.all = PostResult(503)
    async with running(autojump_clock, bench):
        bench.clock.ahead = 40 * DAY
        await bench.happen(1)
        await trio.sleep(1)
        assert bench.tried == [1]
        bench.clock.ahead, bench.all = 0.0, None
        if not is_restarted:
            await trio.sleep(600)
    async with running(autojump_clock, bench):
        await trio.sleep(1.3 * bench.receiver.policy.longest_wait)
    assert bench.tried == [1, 1]
    assert await bench.rows(DUE) == []


async def test_what_cannot_be_sent_for_days_is_given_up(autojump_clock: Clock) -> None:
    bench = Bench(policy=WebhookRetryPolicy(keep=2 * DAY, attempts=100))
    bench.all = PostResult(0, "ops.example.org: refused")
    async with running(autojump_clock, bench):
        await bench.happen(1)
        await trio.sleep(2 * DAY)
        (dead,) = await bench.rows(DEAD)
        assert dead.why == (
            "ops.example.org: refused, and it is too old to be tried again"
        )
        assert bench.counted("dead")
        await trio.sleep(31 * DAY)
        assert await bench.rows(DEAD) == []
        assert bench.counted("forgotten")


async def test_of_too_many_the_oldest_are_given_up(autojump_clock: Clock) -> None:
    bench = Bench(most=10)
    bench.all = DOWN
    async with running(autojump_clock, bench):
        await bench.happen(*range(25))
        await trio.sleep(2 * SWEEP_EVERY)
        due, dead = await bench.rows(DUE), await bench.rows(DEAD)
        assert len(due) == 10
        numbers = [json.loads(each.body)["data"]["number"] for each in due]
        assert numbers == list(range(15, 25))
        assert {each.why for each in dead} == {"too many waited"}
        await trio.sleep(2 * 3600)
        assert len(await bench.rows(DEAD)) == 10
        assert bench.counted("overflow") == 15


async def test_several_are_sent_at_once_but_not_more_than_may(
    autojump_clock: Clock,
) -> None:
    bench = Bench(at_once=3)
    bench.takes = 2.0
    async with running(autojump_clock, bench):
        await bench.happen(*range(9))
        await trio.sleep(10)
    assert bench.most_at_once == 3
    assert sorted(bench.tried) == list(range(9))


async def test_what_somebody_drops_is_not_sent(autojump_clock: Clock) -> None:
    bench = Bench()
    bench.all = DOWN
    async with running(autojump_clock, bench):
        await bench.happen(1)
        await trio.sleep(1)
        (row,) = await bench.store.entries(DUE)
        gone = Entry(kind=DUE, id=row.id, owner="ops", part=row.part, body=None)
        await bench.store.commit(Commit(at=1.0, entries=(gone,)))
        await trio.sleep(DAY)
    assert bench.tried == [1]


async def test_who_tries_by_hand_need_not_wait(autojump_clock: Clock) -> None:
    bench = Bench()
    bench.all = DOWN
    async with running(autojump_clock, bench):
        await bench.happen(1)
        await trio.sleep(60)
        tries = len(bench.tries)
        bench.all = None
        (row,) = await bench.store.entries(DUE)
        notice = decoded(row, Notice)
        assert notice is not None
        body = msgspec.json.encode(msgspec.structs.replace(notice, due_at=0.0))
        again = Entry(kind=DUE, id=row.id, owner="ops", part=row.part, body=body)
        await bench.store.commit(Commit(at=EPOCH, entries=(again,)))
        bench.system.find(names.notifier("ops")).tell(SendNotices())  # type: ignore[union-attr]
        await trio.sleep(1)
        assert len(bench.tries) == tries + 1
        assert await bench.rows(DUE) == []


async def test_a_disk_that_fails_has_it_sent_again(autojump_clock: Clock) -> None:
    bench = Bench(MemoryStore(fails_at={2}))
    async with running(autojump_clock, bench):
        await bench.happen(1)
        await trio.sleep(60)
        assert bench.tried == [1, 1]
        assert len(set(bench.ids)) == 1
        assert await bench.rows(DUE) == []


async def test_once_the_database_is_damaged_nothing_is_sent_that_could_not_be_noted(
    autojump_clock: Clock,
) -> None:
    async with running(autojump_clock, Bench()) as bench:
        await bench.happen(1, is_told=False)
        bench.store.damaged = True
        bench.system.find(names.notifier("ops")).tell(SendNotices())  # type: ignore[union-attr]
        await trio.sleep(60)
        assert bench.tried == []


async def test_what_cannot_be_read_is_left_alone_and_keeps_nobody(
    autojump_clock: Clock,
) -> None:
    bench = Bench()
    bad = Entry(kind=DUE, id="0", owner="ops", part=0, body=b"{")
    await bench.store.commit(Commit(at=1.0, entries=(bad,)))
    async with running(autojump_clock, bench):
        await bench.happen(1)
        await trio.sleep(3600)
    assert bench.tried == [1]
    assert [row.id for row in await bench.store.entries(DUE)] == ["0"]
