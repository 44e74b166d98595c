"""Who asked what, what was answered and what it cost is on record, and no secret is."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.config.limits import AuditConfig
from actors.errors import ModelBusyError, ModelRefusedError
from actors.inbound.connector import MOST_REFUSALS, ConnectorIngress
from actors.journal.records import AuditRecord, ConversationRecord, UsageRecord
from actors.messages.deliveries import Delivery
from actors.messages.inbound import ModelRequest, Usage
from actors.messages.keys import chat_partition
from actors.messages.state import RetryPolicy
from actors.messages.usage import Spent
from actors.models.catalogue import Catalogue, Prices, of_one
from actors.services import Services
from actors.transport import RefusedAttempt
from runtime.system import ActorSystem
from tests.fakes.company.company import (
    EPOCH,
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    call,
    heard,
    open_company,
    until,
)
from tests.fakes.company.furnished import changed

Clock = trio.testing.MockClock

SECRET = "hunter2"  # noqa: S105  it is one for this test only
T = TypeVar("T", AuditRecord, ConversationRecord, UsageRecord)


SPENT_ONCE = Spent(
    provider="scripted",
    model="fake-1",
    account="scripted",
    usage=Usage(3, 2),
    cost=0.0013,
)


class Bureau(Cast):
    """A cast whose model has its price, and that has something to hide."""

    @property
    def services(self) -> Services:
        def redact(text: str) -> str:
            return text.replace(SECRET, "[secret]")

        return changed(super().services, redact=redact)

    def catalogue(self) -> Catalogue:
        prices = Prices(input=100.0, output=500.0)
        return of_one(self.model, model="fake-1", prices=prices)


async def records(cast: Cast, kind: str, shape: type[T]) -> list[T]:
    """Give the records of a kind, those written first first."""
    rows = await cast.store.records(kind)
    return [msgspec.json.decode(row.body, type=shape) for row in reversed(rows)]


async def audit(cast: Cast) -> list[AuditRecord]:
    return await records(cast, "audit", AuditRecord)


async def ask(clock: Clock, cast: Cast, *texts: str) -> None:
    async with open_company(clock, cast):
        for text in texts:
            cast.platform.write(text)
            await at_rest(cast)


async def test_an_exchange_is_on_record_with_all_that_belongs_to_it(
    autojump_clock: Clock,
) -> None:
    cast = Bureau(model=FakeModel(lambda _: Says("yes", after=2)))
    async with open_company(autojump_clock, cast):
        inbound = cast.platform.write("hello", chat="kitchen", sender="mia")
        await at_rest(cast)
    (row,) = await cast.store.records("audit")
    assert (row.id, row.owner, row.at) == (inbound.id, "fake", EPOCH + 2)
    assert await audit(cast) == [
        AuditRecord(
            channel="fake",
            chat="kitchen",
            sender_id="mia",
            sender_name="mia",
            agent="anna",
            input="hello",
            output="yes",
            provider="scripted",
            model="fake-1",
            seconds=2.0,
            attempt=1,
            status="replied",
            reason="ok",
        )
    ]


async def test_a_second_exchange_is_a_second_row_with_its_own_words(
    autojump_clock: Clock,
) -> None:
    cast = Bureau()
    await ask(autojump_clock, cast, "one", "two", "/help")
    rows = await audit(cast)
    assert [(row.input, row.status, row.reason) for row in rows] == [
        ("one", "replied", "ok"),
        ("two", "replied", "ok"),
        ("/help", "replied", "command"),
    ]
    assert [row.output for row in rows[:2]] == ["anna heard one", "anna heard two"]
    assert "/stop" in rows[2].output
    assert (rows[2].model, rows[2].attempt) == ("", 0)


async def test_a_failure_and_a_stop_are_on_record(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> Says:
        if heard(request) == "bad":
            return Says(error=ModelRefusedError("bad key"))
        return Says("late", after=60)

    cast = Bureau(model=FakeModel(talk))
    async with open_company(autojump_clock, cast):
        cast.platform.write("bad")
        await at_rest(cast)
        cast.platform.write("slow")
        await until(lambda: cast.model.running)
        cast.platform.write("/stop")
        await at_rest(cast)
    failed, stopped, _ = await audit(cast)
    assert (failed.status, failed.reason) == ("failed", "model")
    assert failed.model == "fake-1"
    assert failed.output == "[Task failed]"
    assert (stopped.input, stopped.status) == ("slow", "cancelled")


async def test_what_nobody_heard_is_on_record(autojump_clock: Clock) -> None:
    cast = Bureau(default_agent="")
    cast.others = (Platform("group", is_direct=False),)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        cast.others[0].write("psst")
        await at_rest(cast)
    direct, group = sorted(await audit(cast), key=lambda row: row.channel)
    assert (direct.status, direct.reason) == ("dropped", "no_default_agent")
    assert direct.output.startswith("No agent answers here")
    assert (group.input, group.output) == ("psst", "")
    assert (group.status, group.reason) == ("dropped", "not_addressed")


async def test_what_was_given_up_is_on_record_with_each_attempt_s_cost(
    autojump_clock: Clock,
) -> None:
    busy = Says(error=ModelBusyError("overloaded"))
    policy = RetryPolicy(attempts=2, first_wait=1.0)
    cast = Bureau(model=FakeModel(lambda _: busy), retries=policy)
    await ask(autojump_clock, cast, "hello")
    (row,) = await audit(cast)
    assert (row.input, row.output) == ("hello", "[Task failed]")
    assert (row.status, row.reason, row.attempt) == ("dead", "model", 2)
    runs = await records(cast, "usage", UsageRecord)
    assert [(run.attempt, run.status, run.rounds) for run in runs] == [
        (1, "model", 0),
        (2, "model", 0),
    ]


@pytest.mark.parametrize("texts", [True, False])
async def test_secrets_are_not_kept_and_words_only_if_wanted(
    *, texts: bool, autojump_clock: Clock
) -> None:
    cast = Bureau(audit=AuditConfig(texts=texts))
    cast.others = (Platform("group", is_direct=False),)
    async with open_company(autojump_clock, cast):
        cast.platform.write(f"my key is {SECRET}")
        cast.platform.write(f"/{SECRET}")
        cast.others[0].write(f"psst {SECRET}")
        await at_rest(cast)
    rows = await cast.store.records("audit")
    assert len(rows) == 3
    bodies = b"".join(row.body for row in rows)
    assert SECRET.encode() not in bodies
    said = {(row.input, row.output) for row in await audit(cast)}
    if texts:
        words = ("my key is [secret]", "anna heard my key is [secret]")
        assert words in said
        assert bodies.count(b"[secret]") >= 4
    else:
        assert said == {("", "")}


@pytest.mark.parametrize("texts", [True, False])
async def test_who_or_what_is_called_like_a_secret_is_not_named(
    *, texts: bool, autojump_clock: Clock
) -> None:
    cast = Bureau(audit=AuditConfig(texts=texts))
    cast.others = (Platform("group", is_direct=False),)
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("hello", chat=SECRET, sender=f"x{SECRET}")
        cast.others[0].write("psst", chat=f"{SECRET}:1", sender=SECRET)
        connector = system.find(names.connector("fake"))
        assert connector is not None
        attempt = RefusedAttempt("bad_key", sender_id=SECRET, chat=f"at {SECRET}")
        ConnectorIngress(connector, cast.store).refuse(attempt)
        await at_rest(cast)
    rows = await audit(cast)
    assert {(row.chat, row.sender_id, row.sender_name) for row in rows} == {
        ("[secret]", "x[secret]", "x[secret]"),
        ("[secret]:1", "[secret]", "[secret]"),
        ("at [secret]", "[secret]", ""),
    }
    parts = {row.owner: row.part for row in await cast.store.records("audit")}
    assert parts["group"] == chat_partition("group", f"{SECRET}:1")


def refuse(system: ActorSystem, cast: Cast, count: int) -> None:
    """Have strangers try to get in."""
    connector = system.find(names.connector("fake"))
    assert connector is not None
    ingress = ConnectorIngress(connector, cast.store)
    for _ in range(count):
        ingress.refuse(RefusedAttempt("bad_key", sender_id="10.0.0.9", chat="front"))


def refused(cast: Cast, count: int) -> bool:
    line = f'connector="fake",outcome="unauthorised"}} {count}'
    return line in cast.metrics.render().decode()


async def test_who_is_not_let_in_is_on_record(autojump_clock: Clock) -> None:
    cast = Bureau()
    async with open_company(autojump_clock, cast) as system:
        refuse(system, cast, 1)
        await until(lambda: refused(cast, 1))
    assert await audit(cast) == [
        AuditRecord(
            channel="fake",
            chat="front",
            sender_id="10.0.0.9",
            sender_name="",
            status="unauthorised",
            reason="bad_key",
        )
    ]
    assert await cast.inbox() == {}


async def test_a_flood_of_strangers_fills_no_disk_and_all_are_counted(
    autojump_clock: Clock,
) -> None:
    cast = Bureau()
    async with open_company(autojump_clock, cast) as system:
        refuse(system, cast, 500)
        await until(lambda: refused(cast, 500))
        assert len(await audit(cast)) == MOST_REFUSALS
        await trio.sleep(61)
        refuse(system, cast, 10)
        await until(lambda: refused(cast, 510))
        assert len(await audit(cast)) == MOST_REFUSALS + 10


async def test_each_turn_s_tokens_and_cost_are_in_the_ledger(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> Says:
        if request.lines[-1].role != "tool" and heard(request) == "twice":
            return Says(calls=(call("nothing"),), after=1)
        return Says("done", after=1)

    agents = {"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()}
    cast = Bureau(agents=agents, model=FakeModel(talk))
    await ask(autojump_clock, cast, "once", "twice", "/help")
    once, twice = await records(cast, "usage", UsageRecord)
    assert once == UsageRecord(
        agent="anna",
        connector="fake",
        sender_id="zoe",
        provider="scripted",
        model="fake-1",
        input_tokens=3,
        output_tokens=2,
        cost=0.0013,
        spent=(SPENT_ONCE,),
        seconds=1.0,
        rounds=1,
        attempt=1,
        status="ok",
    )
    assert (twice.input_tokens, twice.output_tokens) == (6, 4)
    assert (twice.cost, twice.rounds, twice.seconds) == (0.0026, 2, 2.0)


async def test_a_conversation_counts_its_messages_and_tokens(
    autojump_clock: Clock,
) -> None:
    cast = Bureau(model=FakeModel(lambda _: Says("12345678", after=10)))
    await ask(autojump_clock, cast, "1234", "123", "/help")
    (stored,) = await cast.store.records("conversation")
    assert (stored.id, stored.owner) == ("anna/fake/room//zoe", "anna")
    (row,) = await records(cast, "conversation", ConversationRecord)
    assert (row.agent, row.connector, row.chat) == ("anna", "fake", "room")
    assert (row.thread, row.sender_id, row.status) == ("", "zoe", "active")
    assert (row.message_count, row.tokens_estimate) == (4, 1 + 2 + 1 + 2)
    assert row.started_at == EPOCH + 10
    assert row.last_message_at == pytest.approx(EPOCH + 20, abs=1)


async def test_conversations_count_on_after_a_restart_each_for_itself(
    autojump_clock: Clock,
) -> None:
    cast = Bureau()
    for _ in range(3):
        async with open_company(autojump_clock, cast):
            cast.platform.write("hello", chat="a")
            cast.platform.write("hello", chat="b")
            await at_rest(cast)
        cast.restart()
    found = await records(cast, "conversation", ConversationRecord)
    assert sorted((row.chat, row.message_count) for row in found) == [
        ("a", 6),
        ("b", 6),
    ]


async def test_both_sides_are_stored_before_the_model_is_asked_and_before_it_is_said(
    autojump_clock: Clock,
) -> None:
    seen: list[tuple[str, bool]] = []

    def look(where: str) -> None:
        texts = b"".join(
            event.body
            for events in cast.store._rows.journal.values()
            for event in events
        )
        asked = b"".join(row.body for row in cast.store._rows.inbox.values())
        assert b"hello" in asked
        seen.append((where, b"answered hello" in texts))

    def talk(_request: ModelRequest) -> Says:
        look("asked")
        return Says("answered hello")

    class Watching(Platform):
        async def deliver(self, delivery: Delivery) -> str:
            look("said")
            return await super().deliver(delivery)

    cast = Bureau(model=FakeModel(talk), platform=Watching())
    await ask(autojump_clock, cast, "hello")
    assert seen == [("asked", False), ("said", True)]
