"""Proves that a turn's steps are durable, in order, and read back as they were."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st

from actors.journal.commits import as_accept
from actors.messages.inbound import ToolCall, Usage
from actors.protocol import StartTurn
from actors.turn.machine import ModelReplied, Step, ToolReturned
from actors.turn.steps import StepJournal
from runtime.actor.committer import RETRY_EVERY
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Append, Commit, NewEvent, Settle, StoredEvent
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, words
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock
Make = Callable[..., StepJournal]

STREAM = "anna/fake/room//zoe/m1"

names = st.text(max_size=3)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        ModelReplied,
        names,
        st.lists(
            st.builds(ToolCall, names, names, st.binary(max_size=3)), max_size=2
        ).map(tuple),
        st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
    ),
    st.builds(ToolReturned, names, names, st.booleans()),
)


class CountingStore(MemoryStore):
    """Counts how often a stream is read; may be unreadable."""

    reads = 0
    is_unreadable = False
    back_at = 0.0
    """Until this moment of the loop's time it cannot be read."""

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        self.reads += 1
        if self.is_unreadable or trio.current_time() < self.back_at:
            raise StoreUnavailableError("unreadable, to order")
        return await super().read(stream, after, limit)


@asynccontextmanager
async def open_desk(clock: Clock, store: MemoryStore) -> AsyncGenerator[Make]:
    """Give a way to make the steps of further attempts at one message."""
    async with virtual(clock) as system:
        session = system.spawn(Probe(), name="session")

        def make(*, stream: str = STREAM, may_have_steps: bool = True) -> StepJournal:
            start = StartTurn(
                turn_id="t1",
                generation=1,
                session=session,
                inbound=words(),
                history=(),
                steps=stream,
                may_have_steps=may_have_steps,
            )
            return StepJournal(start, make_services(store))

        yield make


@given(st.lists(st.lists(STEPS, max_size=4), min_size=1, max_size=4))
def test_each_attempt_reads_what_all_before_it_recorded(
    attempts: list[list[Step]],
) -> None:
    async def main() -> None:
        known: list[Step] = []
        async with open_desk(clock, MemoryStore()) as make:
            for added in attempts:
                steps = make()
                assert await steps.read() == known
                for step in added:
                    await steps.add(step)
                assert not steps.is_superseded
                known += added

    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(main, clock=clock)


async def test_steps_are_kept_as_long_as_their_message(autojump_clock: Clock) -> None:
    store = MemoryStore()
    settled = Settle("m1", "dead")
    await store.commit(Commit(at=1.0, accepts=(as_accept(words(), 1.0),)))
    async with open_desk(autojump_clock, store) as make:
        await make().add(ToolReturned("a", "x"))
        await store.commit(Commit(at=5.0, settles=(settled,)))
        await store.prune(5.0)
        assert await make().read() == [ToolReturned("a", "x")]
        await store.prune(6.0)
        assert await make().read() == []


async def test_a_first_attempt_does_not_look_for_steps(autojump_clock: Clock) -> None:
    store = CountingStore()
    async with open_desk(autojump_clock, store) as make:
        assert await make(may_have_steps=False).read() == []
        assert store.reads == 0


async def test_without_a_stream_nothing_is_kept(autojump_clock: Clock) -> None:
    store = CountingStore()
    async with open_desk(autojump_clock, store) as make:
        steps = make(stream="")
        await steps.add(ToolReturned("a", "x"))
        assert await steps.read() == []
        assert (store.reads, store._rows.journal) == (0, {})


async def test_steps_are_read_although_a_database_fails_over_first(
    autojump_clock: Clock,
) -> None:
    store = CountingStore()
    async with open_desk(autojump_clock, store) as make:
        round_ = ModelReplied("thinking", (), Usage(1, 1))
        await make().add(round_)
        store.back_at = trio.current_time() + 10.0
        assert await make().read() == [round_]


async def test_steps_that_cannot_be_read_say_so(autojump_clock: Clock) -> None:
    store = CountingStore()
    store.is_unreadable = True
    async with open_desk(autojump_clock, store) as make:
        with pytest.raises(StoreUnavailableError):
            await make().read()


async def test_a_step_waits_for_the_disk(autojump_clock: Clock) -> None:
    store = MemoryStore(fails_at=(1, 2, 3))
    async with open_desk(autojump_clock, store) as make:
        steps = make()
        began = trio.current_time()
        await steps.add(ToolReturned("a", "x"))
        assert trio.current_time() - began == 3 * RETRY_EVERY
        assert await make().read() == [ToolReturned("a", "x")]


async def test_results_at_the_same_time_are_recorded_one_after_the_other(
    order: int, autojump_clock: Clock
) -> None:
    wanted = [ToolReturned(f"{number}", "x") for number in range(5)]
    store = MemoryStore(fails_at=(2, 4))
    async with open_desk(autojump_clock, store) as make:
        steps = make()
        async with trio.open_nursery() as nursery:
            for step in wanted:
                nursery.start_soon(steps.add, step)
        assert not steps.is_superseded
        found = await make().read()
        assert len(found) == 5
        assert set(found) == set(wanted), order


async def test_whoever_finds_another_s_step_is_superseded(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock, MemoryStore()) as make:
        old, new = make(), make()
        await new.add(ToolReturned("a", "x"))
        await old.add(ToolReturned("a", "y"))
        assert (old.is_superseded, new.is_superseded) == (True, False)
        assert await make().read() == [ToolReturned("a", "x")]


async def test_events_of_a_later_release_are_passed_over_and_counted(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    later = Append(
        stream=STREAM, expected=0, part=0, events=(NewEvent("thought", b"?"),)
    )
    await store.commit(Commit(at=1.0, appends=(later,)))
    async with open_desk(autojump_clock, store) as make:
        steps = make()
        assert await steps.read() == []
        await steps.add(ToolReturned("a", "x"))
        assert not steps.is_superseded
