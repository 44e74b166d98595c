"""Proves that permits are few, go out in order, and survive the limiter's restart."""

from __future__ import annotations

from typing import Any, cast

import pytest
import trio.testing
from hypothesis import given, strategies as st
from msgspec import structs

from actors import names
from actors.messages.priority import SCHEDULED
from actors.models.limiter import (
    LATE_AFTER,
    LOOK_EVERY,
    STUCK_AFTER,
    IsWorking,
    Limiter,
    PermitQueue,
    StuckModels,
)
from actors.protocol import AcquirePermit, PermitGranted, ReleasePermit
from runtime.actor.ref import ActorRef
from runtime.fairness import Owner, most_of_one
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Gauge, Metrics
from runtime.testing import Probe, open_test_system, wait_settled
from tests.fakes.actors.neighbours import of_kind, probe
from tests.fakes.company.company import counted
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


def turn_ids(waiting: Probe) -> list[str]:
    return [each.turn_id for each in of_kind(waiting, PermitGranted)]


class Bench:
    """A limiter and sessions that ask it."""

    def __init__(
        self,
        system: ActorSystem,
        most: int,
        connectors: int = 1,
        waiting: Gauge | None = None,
    ) -> None:
        limiter = Limiter(most, waiting, connectors=lambda: connectors)
        self.limiter = system.spawn(limiter, name=names.LIMITER)
        self.probe = probe(system, "session")

    def acquire(
        self, holder: str, turn_id: str, priority: int = 5, **rest: Any
    ) -> None:
        ref: ActorRef = self.probe.actor_ref
        self.limiter.tell(AcquirePermit(holder, turn_id, ref, priority, **rest))


async def test_permits_go_out_in_the_order_of_asking(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 2)
        for name in "abcd":
            bench.acquire(name, f"t{name}")
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "tb"]
        for name in "ba":
            bench.limiter.tell(ReleasePermit(name))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "tb", "tc", "td"]


async def test_who_waits_is_shown_also_when_somebody_waits_no_longer(
    autojump_clock: Clock,
) -> None:
    metrics = Metrics()
    gauge = metrics.gauge("callboard_waiting", "…", ("model",))
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1, waiting=gauge)
        shown: list[list[str]] = []
        for name in "abc":
            bench.acquire(name, f"t{name}")
            await wait_settled(system)
            shown.append(counted(metrics))
        for name in "bca":
            bench.limiter.tell(ReleasePermit(name))
            await wait_settled(system)
            shown.append(counted(metrics))
    line = 'waiting{{model=""}} {}.0'
    ones, two = [line.format(1)], [line.format(2)]
    assert shown == [[], ones, two, ones, [], []]


async def test_a_killed_limiter_shows_nobody_who_waited(autojump_clock: Clock) -> None:
    metrics = Metrics()
    gauge = metrics.gauge("callboard_waiting", "…", ("model",))
    async with virtual(autojump_clock) as system:
        spec = ChildSpec(
            name="limiter", start=lambda: Limiter(1, gauge, connectors=lambda: 1)
        )
        await system.start_root(Supervisor((spec,), SupervisorConfig()), names.ROOT)
        limiter = system.find(names.LIMITER)
        assert limiter is not None
        asking = probe(system, "session")
        for name in "ab":
            limiter.tell(AcquirePermit(name, f"t{name}", asking.actor_ref))
        await wait_settled(system)
        assert counted(metrics) == ['waiting{model=""} 1.0']
        limiter.kill()
        await trio.sleep(5)
        assert counted(metrics) == []


async def test_the_most_urgent_comes_first_and_takes_nothing_away(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        for name, priority in (("a", 5), ("b", 10), ("c", 5), ("d", 1), ("e", 4)):
            bench.acquire(name, f"t{name}", priority)
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta"]
        for name in "adec":
            bench.limiter.tell(ReleasePermit(name))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "td", "te", "tc", "tb"]


async def test_a_restarted_limiter_knows_who_is_urgent(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        spec = ChildSpec(name="limiter", start=lambda: Limiter(1, connectors=lambda: 1))
        tree = Supervisor((spec,), SupervisorConfig(intensity=9))
        await system.start_root(tree, names.ROOT)
        limiter = system.find(names.LIMITER)
        assert limiter is not None
        asking = probe(system, "session")
        ranks = {"a": 5, "b": 5, "c": 1, "d": 5}
        for name, rank in ranks.items():
            limiter.tell(AcquirePermit(name, f"t{name}", asking.actor_ref, rank))
        limiter.tell("nonsense")  # kills it three times
        await trio.sleep(5)
        for name in "acb":
            limiter.tell(ReleasePermit(name))
        await wait_settled(system)
        assert turn_ids(asking) == ["ta", "tc", "tb", "td"]


@given(st.lists(st.integers(1, 10), max_size=12))
async def test_permits_go_out_by_rank_and_then_by_time(ranks: list[int]) -> None:
    async with open_test_system() as system:
        bench = Bench(system, 1)
        bench.acquire("first", "first")
        for number, rank in enumerate(ranks):
            bench.acquire(f"{number}", f"{number}", rank)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(len(ranks) + 1):
            bench.limiter.tell(ReleasePermit(turn_ids(bench.probe)[-1]))
            await trio.testing.wait_all_tasks_blocked()
    wanted = sorted(range(len(ranks)), key=lambda number: ranks[number])
    assert turn_ids(bench.probe) == ["first", *map(str, wanted)]


async def test_who_gives_up_waiting_is_not_granted(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        for name in "abc":
            bench.acquire(name, f"t{name}")
        bench.limiter.tell(ReleasePermit("b"))
        bench.limiter.tell(ReleasePermit("a"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "tc"]


async def test_a_permit_for_the_dead_is_taken_back(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        gone = system.spawn(Probe(), name="gone")
        await gone.stop()
        bench.limiter.tell(AcquirePermit("gone", "t0", gone))
        bench.acquire("a", "ta")
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta"]


async def test_a_permit_of_one_that_is_killed_is_taken_back_in_seconds(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        for held in range(2):  # it looks again whenever somebody holds one
            gone = system.spawn(Probe(), name=f"gone{held}")
            bench.limiter.tell(AcquirePermit(f"gone{held}", f"g{held}", gone))
            bench.acquire("a", f"t{held}")
            await wait_settled(system)
            await gone.stop()
            assert turn_ids(bench.probe) == ["t0"][:held]
            await trio.sleep(1.1 * LOOK_EVERY)
            assert turn_ids(bench.probe) == ["t0", "t1"][: held + 1]
            bench.limiter.tell(ReleasePermit("a"))
            await trio.sleep(2 * LOOK_EVERY)


async def test_nothing_is_looked_for_while_nobody_holds_a_permit(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        bench.acquire("a", "ta")
        await wait_settled(system)
        assert len(system.kernel.timers) == 1
        bench.limiter.tell(ReleasePermit("a"))
        await trio.sleep(1.1 * LOOK_EVERY)
        assert len(system.kernel.timers) == 0


async def test_a_restarted_limiter_knows_who_holds_and_who_waits(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        spec = ChildSpec(name="limiter", start=lambda: Limiter(1, connectors=lambda: 1))
        tree = Supervisor((spec,), SupervisorConfig(intensity=9))
        await system.start_root(tree, names.ROOT)
        limiter = system.find(names.LIMITER)
        assert limiter is not None
        asking = probe(system, "session")
        for name in "abc":
            limiter.tell(AcquirePermit(name, f"t{name}", asking.actor_ref))
        limiter.tell("nonsense")  # kills it three times
        await trio.sleep(5)
        assert turn_ids(asking) == ["ta"]
        for name in "ab":
            limiter.tell(ReleasePermit(name))
        await wait_settled(system)
        assert turn_ids(asking) == ["ta", "tb", "tc"]


@given(
    steps=st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=40),
    most=st.integers(1, 3),
)
async def test_never_more_than_allowed_and_nobody_is_forgotten(
    steps: list[tuple[str, bool]], most: int
) -> None:
    async with open_test_system() as system:
        bench = Bench(system, most)
        wants: dict[str, str] = {}
        for number, (name, asks) in enumerate(steps):
            if asks and name not in wants:
                wants[name] = f"{name}{number}"
                bench.acquire(name, wants[name])
            elif not asks:
                wants.pop(name, None)
                bench.limiter.tell(ReleasePermit(name))
            await trio.testing.wait_all_tasks_blocked()
            granted = set(turn_ids(bench.probe)) & set(wants.values())
            assert len(granted) == min(most, len(wants))


async def test_who_is_at_work_is_known_by_how_the_name_begins(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        bench.acquire("agents/anna/sessions/a", "t1")
        bench.acquire("agents/ben/sessions/b", "t2")  # waits, and that counts
        await wait_settled(system)
        for prefix in ("agents/anna/", "agents/ben/", "agents/anna/sessions/a"):
            assert await bench.limiter.ask(IsWorking(prefix)) is True
        assert await bench.limiter.ask(IsWorking("agents/carl/")) is False
        bench.limiter.tell(ReleasePermit("agents/anna/sessions/a"))
        assert await bench.limiter.ask(IsWorking("agents/anna/")) is False


async def test_a_model_that_hangs_holds_up_nobody_who_asks_another(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 2)
        for number in range(50):
            sender = ("http", f"client{number}")
            bench.acquire(f"h{number}", f"h{number}", model="hangs", sender=sender)
        await trio.sleep(STUCK_AFTER + 3 * LOOK_EVERY)
        assert await bench.limiter.ask(StuckModels(), timeout=1) == ("hangs",)
        for number in range(10):
            bench.limiter.tell(ReleasePermit("ben"))
            bench.acquire("ben", f"b{number}", model="well", sender=("web", "zoe"))
            await wait_settled(system)
            assert turn_ids(bench.probe)[-1] == f"b{number}"
        assert await bench.limiter.ask(StuckModels(), timeout=1) == ()
        assert turn_ids(bench.probe)[:2] == ["h0", "h1"]


async def test_who_asks_much_keeps_nobody_else_waiting(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 4)
        for number in range(9):
            bench.acquire(f"z{number}", f"z{number}", sender=("web", "zoe"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["z0", "z1", "z2"], "one is left to others"
        bench.acquire("s0", "s0", sender=("web", "sam"))
        await wait_settled(system)
        assert turn_ids(bench.probe)[-1] == "s0"
        bench.acquire("s1", "s1", sender=("web", "sam"))
        bench.acquire("m0", "m0", sender=("matrix", "ann"))
        for holder in ("z0", "z1", "z2", "s0"):
            bench.limiter.tell(ReleasePermit(holder))
        await wait_settled(system)
        assert set(turn_ids(bench.probe)[4:6]) == {"z3", "m0"}
        assert "s1" in turn_ids(bench.probe)[4:8]


async def test_one_person_s_own_share_is_no_model_that_is_stuck(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 4)
        for number in range(9):
            bench.acquire(f"z{number}", f"z{number}", sender=("web", "zoe"))
        await trio.sleep(STUCK_AFTER + 3 * LOOK_EVERY)
        assert await bench.limiter.ask(StuckModels(), timeout=1) == ()


async def test_strangers_of_one_connector_leave_permits_to_the_others(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 4, connectors=2)
        for number in range(9):  # over HTTP each request may be a person of its own
            bench.acquire(f"h{number}", f"h{number}", sender=("http", f"{number}"))
        bench.acquire("zoe", "zoe", sender=("discord", "zoe"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["h0", "h1", "h2", "zoe"]


async def test_an_only_connector_may_have_all_permits(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 4, connectors=1)
        for number in range(9):
            bench.acquire(f"h{number}", f"h{number}", sender=("http", f"{number}"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["h0", "h1", "h2", "h3"]


async def test_one_key_with_many_authors_leaves_permits_to_others(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 8)
        for number in range(20):
            sender = ("http", f"author{number}")
            bench.acquire(f"k{number}", f"k{number}", sender=sender, caller="key a")
        bench.acquire("z0", "z0", sender=("http", "zoe"), caller="key b")
        bench.acquire("nightly", "nightly", sender=("http", "ann"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == [*(f"k{x}" for x in range(6)), "z0", "nightly"]


NEWCOMERS = (
    ("web", "a", "zoe"),
    ("http", "b", "zoe"),
    ("http", "a", "sam"),
)
"""Somebody from elsewhere, with a key of their own, and behind the same key."""


@given(most=st.integers(1, 9), level=st.integers(0, 2))
async def test_somebody_new_has_the_next_permit_however_few_there_are(
    most: int, level: int
) -> None:
    async with open_test_system() as system:
        bench = Bench(system, most, connectors=2)
        for number in range(9):
            sender = ("http", "zoe")
            bench.acquire(f"z{number}", f"z{number}", sender=sender, caller="a")
        connector, caller, person = NEWCOMERS[level]
        bench.acquire("new", "new", sender=(connector, person), caller=caller)
        await trio.testing.wait_all_tasks_blocked()
        granted, share = turn_ids(bench.probe), most
        for _ in range(level):
            share = most_of_one(share)
        assert ("new" in granted) == (share > 1), "one of several was kept for them"
        bench.limiter.tell(ReleasePermit(granted[0]))
        await trio.testing.wait_all_tasks_blocked()
        assert "new" in turn_ids(bench.probe)


async def test_one_author_leaves_permits_to_others_with_the_same_key(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 8)
        for number in range(20):
            sender = ("http", "zoe")
            bench.acquire(f"z{number}", f"z{number}", sender=sender, caller="key a")
        bench.acquire("sam", "sam", sender=("http", "sam"), caller="key a")
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["z0", "z1", "z2", "z3", "sam"]


async def test_a_key_whose_people_all_wait_for_it_shows_that_the_model_is_stuck(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 8)
        for number in range(9):
            sender = ("http", f"author{number}")
            bench.acquire(f"k{number}", f"k{number}", sender=sender, caller="key a")
        await trio.sleep(STUCK_AFTER + 3 * LOOK_EVERY)
        assert await bench.limiter.ask(StuckModels(), timeout=1) == ("",)
    assert caplog.text.count("model keeps all its turns waiting") == 1


askers = st.tuples(
    st.sampled_from(["web", "http"]), st.sampled_from("ab"), st.integers(4, 6)
)


def anybody(_owner: Owner, _asked: AcquirePermit | None) -> bool:
    return True


def queued(asking: list[tuple[str, str, int]], under_way: int) -> PermitQueue:
    queue, session = PermitQueue(), cast("ActorRef", None)
    for number, (connector, person, priority) in enumerate(asking):
        name, is_under_way = f"{number}", number % 3 < under_way
        asked = AcquirePermit(name, name, session, priority, is_under_way)
        queue.add(structs.replace(asked, sender=(connector, person)), 0.0)
    return queue


@given(st.lists(askers, max_size=30))
def test_every_request_is_taken_once_and_senders_take_turns(
    asking: list[tuple[str, str, int]],
) -> None:
    queue, taken = queued(asking, 0), list[AcquirePermit]()
    while (asked := queue.take(anybody, 0.0)) is not None:
        taken.append(asked)
    assert len(queue) == 0
    assert {each.holder for each in taken} == {str(x) for x in range(len(asking))}
    assert [each.priority for each in taken] == sorted(x[2] for x in asking)
    for priority in {each.priority for each in taken}:
        of = [each for each in taken if each.priority == priority]
        own = [int(x.holder) for x in of if x.sender == of[0].sender]
        assert own == sorted(own), "one sender's turns keep their order"
        for place, each in enumerate(of[:-1]):
            others = {x.sender[0] for x in of[place + 1 :]} - {each.sender[0]}
            is_other = of[place + 1].sender[0] != each.sender[0]
            assert is_other or not others, "connectors take turns"


@given(st.lists(askers, max_size=20), st.lists(st.integers(0, 19), max_size=20))
def test_a_request_that_was_removed_is_not_taken(
    asking: list[tuple[str, str, int]], gone: list[int]
) -> None:
    queue = queued(asking, 1)
    for number in gone:
        queue.remove((f"{number}", f"{number}"))
    left = {str(number) for number in range(len(asking))} - {str(x) for x in gone}
    assert {each.holder for each in queue.asked()} == left
    taken = {each.holder for _ in left if (each := queue.take(anybody, 0.0))}
    assert taken == left
    assert queue.take(anybody, 0.0) is None


@given(st.lists(askers, max_size=30), st.sets(st.sampled_from("ab")))
def test_every_second_permit_goes_to_what_is_less_urgent_and_late(
    asking: list[tuple[str, str, int]], barred: set[str]
) -> None:
    queue = queued(asking, 0)

    def may(owner: Owner, _asked: AcquirePermit | None) -> bool:
        return not barred.intersection(owner[2:])

    left = [priority for _, person, priority in asking if person not in barred]
    is_late = True
    for _ in tuple(left):
        asked = queue.take(may, LATE_AFTER)
        assert asked is not None
        is_late = is_late and len({*left}) > 1
        assert asked.priority == (max(left) if is_late else min(left))
        left.remove(asked.priority)
        is_late = not is_late
    assert queue.take(may, LATE_AFTER) is None


def test_of_what_is_late_the_oldest_goes_first() -> None:
    queue, session = PermitQueue(), cast("ActorRef", None)
    for name, priority, since in (("a", 5, 0.0), ("b", 10, 9.0), ("c", 7, 2.0)):
        queue.add(AcquirePermit(name, name, session, priority), since)
    queue.add(AcquirePermit("d", "d", session, 1), LATE_AFTER)
    taken = [queue.take(anybody, LATE_AFTER + 3.0) for _ in range(4)]
    assert [each and each.holder for each in taken] == ["a", "d", "c", "b"]


async def test_what_is_less_urgent_runs_though_people_ask_without_end(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        bench.acquire("p0", "p0")
        bench.acquire("planned", "planned", priority=SCHEDULED)
        for number in range(1, 100):
            bench.acquire(f"p{number}", f"p{number}", sender=("web", f"{number}"))
            await trio.sleep(1)
            bench.limiter.tell(ReleasePermit(turn_ids(bench.probe)[-1]))
            await wait_settled(system)
            assert ("planned" in turn_ids(bench.probe)) == (number >= LATE_AFTER)
    ran = turn_ids(bench.probe)
    assert ran[:60] == [f"p{number}" for number in range(60)]


async def test_what_may_have_ended_the_process_runs_one_at_a_time(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 8)
        for name, model in (("a", "one"), ("b", "two"), ("c", "one")):
            bench.acquire(name, f"t{name}", model=model, is_suspect=True)
        bench.acquire("d", "td", model="one")
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "td"]
        bench.limiter.tell(ReleasePermit("a"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "td", "tc"]
        bench.limiter.tell(ReleasePermit("c"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "td", "tc", "tb"]
