"""A message is stored, acknowledged, answered, committed, delivered: in that order."""

from __future__ import annotations

import trio.testing
from msgspec import structs

from actors.config.agents import AgentConfig
from actors.errors import ModelBusyError
from actors.messages.deliveries import Delivery
from actors.messages.inbound import ModelRequest
from runtime.actor.kernel import Kernel
from runtime.store.rows import Counts
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    counted,
    heard,
    open_company,
    until,
)
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock


class WatchingPlatform(Platform):
    """Notes how the rows stand when something is to be said.

    Args:
        store: where the rows are.
    """

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self.store = store
        self.rows_at_delivery: list[Counts] = []

    async def deliver(self, delivery: Delivery) -> str:
        self.rows_at_delivery.append(await self.store.counts())
        return await super().deliver(delivery)


async def test_a_person_is_answered_and_nothing_is_left_over(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard hello"]
    assert await cast.inbox() == {"replied": 1}
    assert await cast.outbox() == {"sent": 1}


async def test_a_message_is_stored_and_acknowledged_before_a_model_is_asked(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    stored: list[str] = []

    def talk(_request: ModelRequest) -> str:
        stored.extend(cast.store._rows.inbox)
        return "yes"

    cast.model = FakeModel(talk)
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("hello", key="k1")
        await at_rest(cast)
    assert stored == [inbound.id]
    assert cast.platform.acknowledged == ["k1"]


async def test_an_answer_is_durable_before_it_is_said(autojump_clock: Clock) -> None:
    store = MemoryStore()
    cast = Cast(store=store, platform=WatchingPlatform(store))
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    platform = cast.platform
    assert isinstance(platform, WatchingPlatform)
    assert platform.rows_at_delivery == [Counts({"replied": 1}, {"pending": 1})]


async def test_the_same_message_twice_is_answered_once(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello", key="k1")
        cast.platform.write("hello", key="k1")
        await until(lambda: len(cast.platform.acknowledged) == 2)
        await at_rest(cast)
    assert len(cast.platform.deliveries) == 1
    assert len(cast.model.requests) == 1
    assert 'callboard_messages_total{connector="fake",outcome="duplicate"} 1' in (
        cast.metrics.render().decode()
    )


async def test_a_message_too_long_is_refused_and_not_stored(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write("x" * (cast.limits.max_message_chars + 1), key="k1")
        await until(lambda: cast.platform.refused)
    (key, error) = cast.platform.refused[0]
    assert key == "k1"
    assert "100001 characters, 100000 are allowed" in str(error)
    assert await cast.inbox() == {}


async def test_an_answer_too_long_is_cut_and_says_so(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(lambda _: "y" * 100_001))
    async with open_company(autojump_clock, cast):
        cast.platform.write("go on")
        await at_rest(cast)
    text = cast.platform.deliveries[0].text
    assert text.startswith("y" * 100_000 + "\n\n(cut")


async def test_nobody_to_answer_in_a_direct_chat_is_said(
    autojump_clock: Clock,
) -> None:
    cast = Cast(default_agent="")
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert "No agent answers here" in cast.platform.said()[0]
    assert await cast.inbox() == {"dropped": 1}


async def test_a_group_s_message_for_nobody_is_settled_without_a_word(
    autojump_clock: Clock,
) -> None:
    cast = Cast(platform=Platform(is_direct=False))
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("hello everybody")
        await until(lambda: cast.platform.settled)
    assert cast.platform.settled == [(inbound.id, "dropped:not_addressed")]
    assert cast.platform.said() == []
    assert await cast.inbox() == {"dropped": 1}


async def test_who_waits_in_a_group_is_told_by_what_was_stored_with_the_end(
    autojump_clock: Clock,
) -> None:
    cast = Cast(platform=Platform(is_direct=False))
    cast.platform.can = structs.replace(cast.platform.can, counts_answers=True)
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("hello everybody")
        (told,) = await cast.platform.wait_deliveries(1)
    assert (told.kind, told.ends) == ("silence", "dropped:not_addressed")
    assert told.reply_to == inbound.platform_id


async def test_a_conversation_is_remembered_through_sleep(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        first = cast.platform.write("one")
        await at_rest(cast)
        await trio.sleep(2 * cast.sessions.idle_after)
        name = f"callboard/agents/anna/sessions/anna/fake/room//{first.sender_id}"
        assert system.find(name) is None
        cast.platform.write("two")
        await at_rest(cast)
    lines = [(line.role, line.text) for line in cast.model.requests[-1].lines]
    assert lines == [
        ("user", "one"),
        ("assistant", "anna heard one"),
        ("user", "two"),
    ]


async def test_a_thousand_messages_leave_nothing_behind(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("before")
        await at_rest(cast)
        timers = system.statistics().timers
        for number in range(1000):
            cast.platform.write("hello", chat=f"room{number % 7}", key=f"k{number}")
        await at_rest(cast)
        await trio.sleep(0.1)  # the pace of drafts
        held = holdings(system.kernel)
        assert system.statistics().timers <= timers
        assert held == {}
        assert len(cast.platform.deliveries) == 1001


def holdings(kernel: Kernel) -> dict[str, int]:
    """Count what actors still keep of single messages, by actor and attribute."""
    found: dict[str, int] = {}
    names = (
        "_line",
        "_held",
        "_under_way",
        "_sessions",
        "_holders",
        "_waiting",
        "_receipts",
    )
    for cell in kernel.names.values():
        for name in names:
            kept = getattr(cell.actor, name, None)
            kept = getattr(kept, "_waiting", kept)  # a courier's receipts
            if kept:
                found[f"{cell.name}.{name}"] = len(kept)
    return found


COUNTED = """
messages_total{connector="fake",outcome="accepted"} 5.0
messages_total{connector="fake",outcome="dropped"} 2.0
messages_total{connector="fake",outcome="replied"} 4.0
turns_total{agent="anna",outcome="ok"} 2.0
turns_total{agent="ben",outcome="ok"} 1.0
stage_seconds_count{stage="accept"} 5.0
stage_seconds_count{stage="queue"} 3.0
stage_seconds_count{stage="turn"} 3.0
stage_seconds_sum{stage="turn"} 0.5
stage_seconds_count{stage="deliver"} 4.0
model_call_seconds_count{model="scripted",outcome="ok"} 3.0
model_call_seconds_count{model="scripted",outcome="rate"} 1.0
model_tokens_total{direction="input",model="scripted"} 9.0
model_tokens_total{direction="output",model="scripted"} 6.0
account_calls_total{account="scripted",model="scripted",outcome="ok"} 3.0
account_calls_total{account="scripted",model="scripted",outcome="rate"} 1.0
fallbacks_total{instead="none",model="scripted"} 1.0
deliveries_total{connector="fake",state="sent"} 4.0
group_messages_total{reason="not_addressed"} 2.0
group_messages_total{reason="mention"} 4.0
"""
"""Of a room in which five messages were written, four of them to somebody."""


async def test_what_happens_in_a_room_is_counted_once_and_nothing_else_is(
    autojump_clock: Clock,
) -> None:
    busy = iter([Says(error=ModelBusyError("busy", kind="rate"))])

    def talk(request: ModelRequest) -> str | Says:
        return next(busy, "at last") if "busy" in heard(request) else "yes"

    agents = {"anna": AgentConfig(), "ben": AgentConfig()}
    platform = Platform(is_direct=False)
    cast = Cast(agents=agents, model=FakeModel(talk), platform=platform)
    async with open_company(autojump_clock, cast):
        for text in (
            *("lovely weather", "@anna @ben hello", "@anna it is busy"),
            *("/status", "@anna /stop"),
        ):
            cast.platform.write(text)
            await at_rest(cast)
    assert counted(cast.metrics) == sorted(COUNTED.split("\n")[1:-1])
