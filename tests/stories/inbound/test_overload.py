"""Too much is refused in so many words, the urgent come first, an end is orderly."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import WatchdogConfig
from actors.errors import (
    DeliveryBusyError,
    ModelBusyError,
    OverloadedError,
    StoppingError,
)
from actors.journal.commits import as_accept, as_enqueue
from actors.journal.unsettled import COUNT_EVERY
from actors.messages.inbound import ModelRequest
from actors.messages.state import RetryPolicy
from actors.protocol import StopAccepting
from actors.services import Services
from connectors.app.shutdown import PAGE, Drain
from runtime.store.port import Done
from runtime.store.rows import Commit, Defer, Settle
from runtime.system import ActorSystem
from tests.fakes.actors.neighbours import saying, words
from tests.fakes.company.company import (
    EPOCH,
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)
from tests.fakes.company.furnished import changed
from tests.fakes.store.queued_store import QueuedStore

Clock = trio.testing.MockClock

BUSY_CHAT = ": I have too much to answer in this chat already. Please try again."


def slow(request: ModelRequest) -> Says:
    return Says(f"to {heard(request)}", after=30)


def small(max_open: int, **fields: int) -> Cast:
    limits = LimitsConfig(max_open=max_open, **fields)
    return Cast(model=FakeModel(slow), limits=limits)


def errors(cast: Cast) -> list[type[Exception]]:
    return [type(error) for _, error in cast.platform.refused]


def counted(cast: Cast, outcome: str) -> int:
    start = f'callboard_messages_total{{connector="fake",outcome="{outcome}"}} '
    for line in cast.metrics.render().decode().splitlines():
        if line.startswith(start):
            return round(float(line.removeprefix(start)))
    return 0


def write(cast: Cast, *chats: str) -> None:
    """Have somebody else write in each of these chats."""
    for chat in chats:
        cast.platform.write("hello", chat=chat, sender=f"person-{chat}")


async def test_more_than_may_be_open_is_refused_counted_and_not_stored(
    autojump_clock: Clock,
) -> None:
    cast = small(3)
    async with open_company(autojump_clock, cast):
        write(cast, *"abcde")
        await until(lambda: cast.platform.is_heard)
        assert errors(cast) == [OverloadedError] * 2
        assert counted(cast, "overloaded") == 2
        await at_rest(cast)
    assert await cast.inbox() == {"replied": 3}
    assert len(cast.platform.deliveries) == 3


async def test_one_person_in_many_chats_leaves_room_for_others(
    autojump_clock: Clock,
) -> None:
    cast = small(4)
    async with open_company(autojump_clock, cast):
        for chat in "abcde":
            cast.platform.write("hello", chat=chat)
        await until(lambda: cast.platform.is_heard)
        assert errors(cast) == [OverloadedError] * 2
        cast.platform.write("hello", chat="f", sender="kim")
        await until(lambda: cast.platform.is_heard)
        assert errors(cast) == [OverloadedError] * 2
        await at_rest(cast)
    assert await cast.inbox() == {"replied": 4}


async def test_an_answer_makes_room_for_one_more(autojump_clock: Clock) -> None:
    cast = small(2)
    async with open_company(autojump_clock, cast):
        write(cast, *"abc")
        await until(lambda: len(cast.platform.deliveries) == 2)
        write(cast, *"defg")
        await at_rest(cast)
    assert errors(cast) == [OverloadedError] * 3
    assert await cast.inbox() == {"replied": 4}


async def test_a_platform_s_repetition_counts_once(autojump_clock: Clock) -> None:
    cast = small(3)
    async with open_company(autojump_clock, cast):
        for _ in range(3):
            cast.platform.write("hello", chat="a", key="k1")
            await until(lambda: cast.platform.is_heard)
        write(cast, "b")
        await until(lambda: cast.platform.is_heard)
        assert errors(cast) == []
        await at_rest(cast)


async def test_a_dropped_message_makes_room_too(autojump_clock: Clock) -> None:
    cast = small(1)
    cast.platform = Platform(is_direct=False)
    async with open_company(autojump_clock, cast):
        for _ in range(5):
            write(cast, "a")
            await at_rest(cast)
    assert errors(cast) == []
    assert await cast.inbox() == {"dropped": 5}


async def test_who_still_waits_takes_up_room_however_long_it_takes(
    autojump_clock: Clock,
) -> None:
    cast = small(1)
    cast.limits = LimitsConfig(max_open=1, turn_timeout=80_000)
    cast.watchdog = WatchdogConfig(stuck_after=0)
    cast.model = FakeModel(lambda _: Says("late", after=70_000))
    async with open_company(autojump_clock, cast):
        write(cast, "a")
        await until(lambda: cast.platform.acknowledged)
        await trio.sleep(60_000)
        write(cast, "b")
        await until(lambda: cast.platform.is_heard)
    assert errors(cast) == [OverloadedError]


async def test_what_was_settled_by_hand_takes_up_no_room_for_ever(
    autojump_clock: Clock,
) -> None:
    cast = small(1)
    cast.model = FakeModel(lambda _: Says(error=ModelBusyError("overloaded")))
    cast.retries = RetryPolicy(first_wait=80_000, longest_wait=80_000)
    async with open_company(autojump_clock, cast):
        write(cast, "a")
        await until(lambda: cast.platform.deliveries)
        (row,) = await cast.store.unsettled()
        by_hand = Settle(row.id, "dead", "by_hand")
        await cast.store.commit(Commit(at=cast.clock.wall(), settles=(by_hand,)))
        await trio.sleep(COUNT_EVERY + 1)
        write(cast, "b")
        await until(lambda: cast.platform.is_heard)
    assert errors(cast) == []


async def test_a_restart_makes_room_for_nobody(autojump_clock: Clock) -> None:
    cast = small(2)
    for number in range(4):
        async with open_company(autojump_clock, cast):
            write(cast, f"a{number}", f"b{number}")
            await until(lambda: cast.platform.is_heard)
        cast.restart()
    assert errors(cast) == [OverloadedError] * 6
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
        write(cast, "c", "d")
        await at_rest(cast)
    assert errors(cast) == [OverloadedError] * 6
    assert await cast.inbox() == {"replied": 4}


async def test_more_than_may_wait_in_a_chat_is_told_there_and_others_are_not(
    autojump_clock: Clock,
) -> None:
    cast = small(99, max_waiting=1)
    async with open_company(autojump_clock, cast):
        write(cast, "a", "a", "a", "b")
        await at_rest(cast)
    assert cast.platform.said("a") == [BUSY_CHAT, *["anna: to hello"] * 2]
    assert cast.platform.said("b") == ["anna: to hello"]
    assert await cast.inbox() == {"replied": 3, "dropped": 1}


async def test_a_closed_door_says_so_and_what_is_inside_is_answered(
    autojump_clock: Clock,
) -> None:
    cast = small(99)
    async with open_company(autojump_clock, cast) as system:
        write(cast, "a")
        await until(lambda: cast.model.running)
        connector = system.find(names.connector("fake"))
        assert connector is not None
        connector.tell(StopAccepting())
        write(cast, "b")
        await at_rest(cast)
    assert errors(cast) == [StoppingError]
    assert counted(cast, "stopping") == 1
    assert await cast.inbox() == {"replied": 1}


def drain_of(cast: Cast, system: ActorSystem) -> Drain:
    return Drain(system, cast.store, cast.clock, [cast.platform.name])


async def test_a_drain_ends_when_all_is_said(autojump_clock: Clock) -> None:
    cast = small(99)
    busy = DeliveryBusyError("later", retry_after=45)
    cast.platform.faults["a"].append(busy)
    async with open_company(autojump_clock, cast) as system:
        write(cast, "a", "b", "b")
        await until(lambda: cast.platform.is_heard)
        assert await drain_of(cast, system).run(within=300)
        assert 75 <= trio.current_time() < 77  # when the busy platform took it
        assert await cast.outbox() == {"sent": 3}
        write(cast, "c")
        await until(lambda: cast.platform.refused)
    assert errors(cast) == [StoppingError]


class HeldStore(QueuedStore):
    """Holds back all that is handed to it while it is not open."""

    def submit(self, commit: Commit, done: Done) -> None:
        """Write it, or keep it until it is let."""
        if self.is_open:
            super().submit(commit, done)
        else:
            self.held.append((commit, done))


async def test_a_drain_waits_for_what_was_being_stored_when_the_doors_closed(
    autojump_clock: Clock,
) -> None:
    cast, store = small(99), HeldStore()
    cast.store = store
    async with open_company(autojump_clock, cast) as system:
        store.is_open = False
        write(cast, "a")
        await until(lambda: store.held)
        async with trio.open_nursery() as nursery:

            async def let() -> None:
                await trio.testing.wait_all_tasks_blocked()
                store.open()

            nursery.start_soon(let)
            assert await drain_of(cast, system).run(within=300)
    assert await cast.inbox() == {"replied": 1}


async def test_a_drain_of_nothing_ends_at_once(autojump_clock: Clock) -> None:
    cast = small(99)
    async with open_company(autojump_clock, cast) as system:
        assert await drain_of(cast, system).run(within=300)
        assert trio.current_time() < 1


async def test_a_drain_gives_up_at_its_limit(autojump_clock: Clock) -> None:
    cast = small(99)
    async with open_company(autojump_clock, cast) as system:
        write(cast, "a")
        await until(lambda: cast.model.running)
        began = trio.current_time()
        assert not await drain_of(cast, system).run(within=10)
        assert trio.current_time() - began == pytest.approx(10)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said("a") == ["anna: to hello"]


async def test_a_drain_does_not_wait_for_what_is_put_off(
    autojump_clock: Clock,
) -> None:
    cast = small(99)
    cast.model = FakeModel(lambda _: Says(error=ModelBusyError("overloaded")))
    cast.retries = RetryPolicy()
    async with open_company(autojump_clock, cast) as system:
        write(cast, "a")
        await until(lambda: cast.platform.deliveries)
        assert await drain_of(cast, system).run(within=300)
        assert trio.current_time() < 10
    assert await cast.inbox() == {"accepted": 1}


async def test_a_drain_does_not_wait_for_what_stands_behind_it(
    autojump_clock: Clock,
) -> None:
    cast = small(99)

    def talk(request: ModelRequest) -> Says:
        is_busy = heard(request) == "busy"
        return Says(error=ModelBusyError("overloaded")) if is_busy else slow(request)

    cast.model, cast.retries = FakeModel(talk), RetryPolicy()
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("busy", chat="a", sender="person-a")
        await until(lambda: cast.platform.deliveries)
        write(cast, "a", "a", "b")
        await until(lambda: cast.platform.is_heard)
        assert await drain_of(cast, system).run(within=100)
        assert 30 <= trio.current_time() < 40  # when the other chat was answered
    assert await cast.inbox() == {"accepted": 3, "replied": 1}


async def test_a_drain_does_not_wait_for_what_cannot_be_read(
    autojump_clock: Clock,
) -> None:
    cast = small(99)
    message = msgspec.structs.replace(as_accept(words(), 1.0), body=b"\xff{")
    said = msgspec.structs.replace(as_enqueue(saying(2), message.part), body=b"{}")
    rows = Commit(at=1.0, accepts=(message,), deliveries=(said,))
    await cast.store.commit(rows)
    async with open_company(autojump_clock, cast) as system:
        write(cast, "room")
        await until(lambda: cast.model.running)
        assert await drain_of(cast, system).run(within=100)
        assert 30 <= trio.current_time() < 40
    assert await cast.inbox() == {"accepted": 1, "replied": 1}


async def test_a_drain_looks_behind_a_page_of_what_is_put_off(
    autojump_clock: Clock,
) -> None:
    cast = small(99)
    messages = [words(number=number) for number in range(1, PAGE + 1)]
    defers = (Defer("m1", 1, EPOCH + 9_000, "busy"),)
    accepts = tuple(as_accept(each, 1.0) for each in messages)
    await cast.store.commit(Commit(at=1.0, accepts=accepts))
    await cast.store.commit(Commit(at=1.0, defers=defers))
    cast.limits = LimitsConfig(max_open=2 * PAGE, max_waiting=1_000)
    async with open_company(autojump_clock, cast) as system:
        write(cast, "b")
        await until(lambda: cast.model.running)
        assert await drain_of(cast, system).run(within=100)
    assert await cast.inbox() == {"accepted": PAGE, "replied": 1}


async def test_a_drain_waits_for_no_account_that_is_not_running(
    autojump_clock: Clock,
) -> None:
    cast = small(99)
    async with open_company(autojump_clock, cast):
        write(cast, "a")
        await until(lambda: cast.model.running)
    cast.restart()
    cast.platform = Platform("another")
    async with open_company(autojump_clock, cast) as system:
        assert await drain_of(cast, system).run(within=300)
        assert trio.current_time() < 5


class Owned(Cast):
    """A cast with an owner."""

    @property
    def services(self) -> Services:
        return changed(super().services, owners=frozenset({"fake/boss"}))


def ranked(request: ModelRequest) -> Says:
    """Take a second for everything; hand on what is to be handed on."""
    words = heard(request)
    task = " [DELEGATE:ben] x [/DELEGATE]" if words.startswith("ask") else ""
    return Says(f"{words}{task}", after=1)


async def test_the_owner_comes_first_then_delegations_then_everybody_else(
    autojump_clock: Clock,
) -> None:
    agents = {"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()}
    cast = Owned(
        agents=agents,
        model=FakeModel(ranked),
        limits=LimitsConfig(max_in_flight=1),
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("ask", chat="a")
        await until(lambda: cast.model.running)
        for number in range(2):
            cast.platform.write(f"{number}", chat=f"n{number}")
        cast.platform.write("mine", chat="o", sender="boss")
        await at_rest(cast)
    assert [heard(each) for each in cast.model.requests] == [
        "ask",
        "mine",
        "x",
        "0",
        "1",
    ]
    assert cast.model.most_running == 1


async def test_what_an_owner_has_handed_on_stays_the_owner_s(
    autojump_clock: Clock,
) -> None:
    agents = {"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()}
    cast = Owned(
        agents=agents,
        model=FakeModel(ranked),
        limits=LimitsConfig(max_in_flight=1),
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("ask", chat="o", sender="boss")
        await until(lambda: cast.model.running)
        cast.platform.write("ask too", chat="a")
        cast.platform.write("hello", chat="b")
        await at_rest(cast)
    order = [(heard(each), each.correlation_id[-1]) for each in cast.model.requests]
    assert order[2:] == [("x", "1"), ("x", "2"), ("hello", "3")]
    rows = sorted(cast.store._rows.inbox.values(), key=lambda row: row.number)
    assert [row.priority for row in rows] == [1, 5, 5, 1, 4]
