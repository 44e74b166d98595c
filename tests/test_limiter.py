"""Proves that permits are few, go out in order, and survive the limiter's restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from actors import names
from actors.limiter import LOOK_EVERY, AtWork, Limiter
from actors.protocol import Acquire, Granted, Release
from runtime.child import ChildSpec
from runtime.supervisor import Supervisor, SupervisorConfig
from runtime.testing import Probe, open_test_system, wait_settled
from tests.fakes.neighbours import of_kind, probe
from tests.puppet import virtual

if TYPE_CHECKING:
    from runtime.ref import ActorRef
    from runtime.system import ActorSystem

    Clock = trio.testing.MockClock


def turn_ids(waiting: Probe) -> list[str]:
    return [each.turn_id for each in of_kind(waiting, Granted)]


class Bench:
    """A limiter and sessions that ask it."""

    def __init__(self, system: ActorSystem, most: int) -> None:
        self.limiter = system.spawn(Limiter(most), name=names.LIMITER)
        self.probe = probe(system, "session")

    def acquire(self, holder: str, turn_id: str, priority: int = 5) -> None:
        ref: ActorRef = self.probe.actor_ref
        self.limiter.tell(Acquire(holder, turn_id, ref, priority))


async def test_permits_go_out_in_the_order_of_asking(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 2)
        for name in "abcd":
            bench.acquire(name, f"t{name}")
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "tb"]
        for name in "ba":
            bench.limiter.tell(Release(name))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "tb", "tc", "td"]


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
            bench.limiter.tell(Release(name))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "td", "te", "tc", "tb"]


async def test_a_restarted_limiter_knows_who_is_urgent(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        spec = ChildSpec(name="limiter", start=lambda: Limiter(1))
        tree = Supervisor((spec,), SupervisorConfig(intensity=9))
        await system.start_root(tree, names.ROOT)
        limiter = system.find(names.LIMITER)
        assert limiter is not None
        asking = probe(system, "session")
        ranks = {"a": 5, "b": 5, "c": 1, "d": 5}
        for name, rank in ranks.items():
            limiter.tell(Acquire(name, f"t{name}", asking.actor_ref, rank))
        limiter.tell("nonsense")  # kills it three times
        await trio.sleep(5)
        for name in "acb":
            limiter.tell(Release(name))
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
            bench.limiter.tell(Release(turn_ids(bench.probe)[-1]))
            await trio.testing.wait_all_tasks_blocked()
    wanted = sorted(range(len(ranks)), key=lambda number: ranks[number])
    assert turn_ids(bench.probe) == ["first", *map(str, wanted)]


async def test_who_gives_up_waiting_is_not_granted(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        for name in "abc":
            bench.acquire(name, f"t{name}")
        bench.limiter.tell(Release("b"))
        bench.limiter.tell(Release("a"))
        await wait_settled(system)
        assert turn_ids(bench.probe) == ["ta", "tc"]


async def test_a_permit_for_the_dead_is_taken_back(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        gone = system.spawn(Probe(), name="gone")
        await gone.stop()
        bench.limiter.tell(Acquire("gone", "t0", gone))
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
            bench.limiter.tell(Acquire(f"gone{held}", f"g{held}", gone))
            bench.acquire("a", f"t{held}")
            await wait_settled(system)
            await gone.stop()
            assert turn_ids(bench.probe) == ["t0"][:held]
            await trio.sleep(1.1 * LOOK_EVERY)
            assert turn_ids(bench.probe) == ["t0", "t1"][: held + 1]
            bench.limiter.tell(Release("a"))
            await trio.sleep(2 * LOOK_EVERY)


async def test_nothing_is_looked_for_while_nobody_holds_a_permit(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        bench = Bench(system, 1)
        bench.acquire("a", "ta")
        await wait_settled(system)
        assert len(system.kernel.timers) == 1
        bench.limiter.tell(Release("a"))
        await trio.sleep(1.1 * LOOK_EVERY)
        assert len(system.kernel.timers) == 0


async def test_a_restarted_limiter_knows_who_holds_and_who_waits(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        spec = ChildSpec(name="limiter", start=lambda: Limiter(1))
        tree = Supervisor((spec,), SupervisorConfig(intensity=9))
        await system.start_root(tree, names.ROOT)
        limiter = system.find(names.LIMITER)
        assert limiter is not None
        asking = probe(system, "session")
        for name in "abc":
            limiter.tell(Acquire(name, f"t{name}", asking.actor_ref))
        limiter.tell("nonsense")  # kills it three times
        await trio.sleep(5)
        assert turn_ids(asking) == ["ta"]
        for name in "ab":
            limiter.tell(Release(name))
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
                bench.limiter.tell(Release(name))
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
            assert await bench.limiter.ask(AtWork(prefix)) is True
        assert await bench.limiter.ask(AtWork("agents/carl/")) is False
        bench.limiter.tell(Release("agents/anna/sessions/a"))
        assert await bench.limiter.ask(AtWork("agents/anna/")) is False
