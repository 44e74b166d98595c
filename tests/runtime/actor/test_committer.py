"""Proves that a commit the disk refuses is tried again until the store decides."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.actor.committer import RETRY_EVERY, Committer, commit_until_decided
from runtime.errors import SequenceConflictError, StoreUnavailableError
from runtime.store.port import Done
from runtime.store.rows import Commit, Committed, Entry
from runtime.testing import CrashError
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import Puppet, do, supervise, virtual, wait

STORED = Committed()


def entry(name: str, version: int | None = None) -> Commit:
    row = Entry(kind="kind", id=name, part=0, body=b"1", expected=version)
    return Commit(at=1.0, entries=(row,))


async def names(store: MemoryStore) -> list[str]:
    return [row.id for row in await store.entries("kind")]


class Storing(Puppet):
    """Stores with a retrying committer when it is told a name."""

    def __init__(self, store: MemoryStore, log: list[Any] | None = None) -> None:
        super().__init__(log)
        self.committer = Committer(store)
        self.tries: list[float] = []

    def on_receive(self, message: Any) -> Any:
        if not isinstance(message, str):
            return super().on_receive(message)
        self.committer.submit(self, partial(self.make, message), self.done, "row")
        return None

    def make(self, name: str) -> Commit:
        self.tries.append(trio.current_time())
        return entry(name)

    @property
    def done(self) -> Done:
        return partial(self.log.append)


async def test_a_commit_that_is_taken_is_reported_once(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()
    async with virtual(autojump_clock) as system:
        storing = Storing(store)
        system.spawn(storing).tell("a")
        await trio.sleep(100)
        assert storing.log == ["start", STORED]
        assert (storing.tries, await names(store)) == ([0.0], ["a"])


async def test_a_refused_commit_is_made_again_each_second(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore(fails_at=(1, 2, 3))
    async with virtual(autojump_clock) as system:
        storing = Storing(store)
        ref = system.spawn(storing)
        ref.tell("a")
        await trio.sleep(0.5)
        assert storing.committer.refused
        assert not store.healthy
        await trio.sleep(100)
        assert storing.tries == [0.0, 1.0, 2.0, 3.0]
        assert storing.log == ["start", STORED]
        assert not storing.committer.refused


async def test_one_that_is_taken_leaves_others_refused(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore(fails_at=(1,))
    async with virtual(autojump_clock) as system:
        storing = Storing(store)
        ref = system.spawn(storing)
        ref.tell("a")
        ref.tell("b")
        await trio.sleep(0.5)
        assert await names(store) == ["b"]
        assert storing.committer.refused
        await trio.sleep(1)
        assert await names(store) == ["a", "b"]
        assert not storing.committer.refused


async def test_any_other_outcome_is_final(autojump_clock: MockClock) -> None:
    store = MemoryStore(fails_at=(1,))
    async with virtual(autojump_clock) as system:
        storing = Storing(store)
        ref = system.spawn(storing)
        conflict = partial(entry, "a", 7)
        await ref.ask(
            do(
                lambda _me: storing.committer.submit(
                    storing, conflict, storing.done, "row"
                )
            )
        )
        await trio.sleep(100)
        assert [type(each) for each in storing.log] == [str, SequenceConflictError]
        assert not storing.committer.refused


async def test_a_retry_waits_for_the_handler_that_runs(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        storing = Storing(MemoryStore(fails_at=(1,)))
        ref = system.spawn(storing)
        ref.tell("a")
        ref.tell(wait(5))
        await trio.sleep(100)
        assert storing.tries == [0.0, 5.0]
        assert storing.log == ["start", "waited", STORED]


async def test_a_retry_ends_with_its_incarnation(autojump_clock: MockClock) -> None:
    store, log = MemoryStore(fails_at=range(1, 4)), list[Any]()
    async with virtual(autojump_clock) as system:
        (ref,) = await supervise(system, partial(Storing, store, log))
        ref.tell("lost")
        await trio.sleep(0.5)
        ref.crash(CrashError("to order"))
        await trio.sleep(100)
        assert log == ["start", "failure", "start"]
        assert await names(store) == []


async def test_an_actor_that_has_ended_is_left_alone(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore(fails_at=(1,))
    async with virtual(autojump_clock) as system:
        storing = Storing(store)
        ref = system.spawn(storing)
        ref.tell("a")
        ref.tell(do(lambda me: me.stop()))
        await trio.sleep(100)
        assert storing.log == ["start", "stop"]
        assert await names(store) == []


async def test_a_coroutine_waits_until_the_store_decides(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore(fails_at=(1, 2))
    committed = await commit_until_decided(store, partial(entry, "a"), "row")
    assert committed == STORED
    assert autojump_clock.current_time() == 2 * RETRY_EVERY
    with pytest.raises(SequenceConflictError):
        await commit_until_decided(store, partial(entry, "a", 7), "row")


async def test_a_coroutine_may_give_up(autojump_clock: MockClock) -> None:
    store = MemoryStore(fails_at=range(1, 100))
    with pytest.raises(StoreUnavailableError):
        await commit_until_decided(store, partial(entry, "a"), "row", 3)
    assert autojump_clock.current_time() == 3 * RETRY_EVERY
    assert store._commits == 3
