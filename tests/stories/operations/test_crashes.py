"""A part that crashes is started again; nobody else notices, nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from actors import names, tree as supervisor
from actors.agents.agent import Agent
from actors.agents.persona import Persona
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.inbound.connector import Connector
from actors.inbound.router import Router
from actors.messages.keys import parse_key
from actors.models.limiter import Limiter
from actors.outbound.courier import Courier
from actors.protocol import Hear, TurnEnded
from actors.rules.prompt.brief import PersonaFiles
from actors.services import Services
from actors.session.session import Session
from runtime.actor.actor import Actor
from runtime.testing import CrashError, crash_on
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)

Clock = trio.testing.MockClock

SORRY = ": ⚠️ I could not take this message. Please try again later."
EVERY_THIRD = tuple(range(3, 300, 3))


def two_agents() -> Cast:
    return Cast(agents={"anna": AgentConfig(), "ben": AgentConfig()})


async def test_an_agent_that_crashes_on_every_third_message_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:
    crashing: Any = crash_on(Agent, *EVERY_THIRD)

    def make(name: str, read_files: Callable[[], PersonaFiles]) -> Actor:
        kind = crashing if name == "anna" else Agent
        made: Actor = kind(name, read_files)
        return made

    monkeypatch.setattr(supervisor, "Agent", make)
    cast = two_agents()
    async with open_company(autojump_clock, cast) as system:
        for number in range(12):
            name = ("anna", "ben")[number % 2]
            cast.platform.write(f"@{name} hello", chat=f"{name}{number}")
            await trio.sleep(1)
        await at_rest(cast)
        restarts = system.statistics().restarts
    assert len(cast.platform.deliveries) == 12
    assert all("heard" in each.text for each in cast.platform.deliveries)
    assert set(restarts) == {("CrashOnAgent", "CrashError")}


async def test_a_session_that_crashes_keeps_messages_and_order(
    order: int, monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:
    crashing = crash_on(Session, 2 + order % 9)
    monkeypatch.setattr(supervisor, "Session", crashing)
    cast = Cast(model=FakeModel(lambda r: Says(f"to {heard(r)}", after=0.1)))
    async with open_company(autojump_clock, cast):
        for text in ("one", "two", "three", "four"):
            cast.platform.write(text)
        await at_rest(cast)
        cast.platform.write("five")
        await at_rest(cast)
    words = ["one", "two", "three", "four", "five"]
    assert cast.platform.said() == [f"anna: to {word}" for word in words]
    texts = [line.text for line in cast.model.requests[-1].lines]
    assert texts == [t for word in words for t in (word, f"to {word}")][:-1]


class Poisoned(Session):
    """Cannot bear one word."""

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, Hear) and message.inbound.text == "poison":
            raise CrashError("poison")
        return super().on_receive(message)


async def test_a_poison_message_is_dead_and_its_sender_is_told(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:
    monkeypatch.setattr(supervisor, "Session", Poisoned)
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        for text in ("one", "poison", "two"):
            cast.platform.write(text)
        await at_rest(cast)
        assert system.dead_letters.counts["poison"] == 1
    assert SORRY in cast.platform.said()
    answers = [each for each in cast.platform.said() if each != SORRY]
    assert answers == ["anna: anna heard one", "anna: anna heard two"]
    assert await cast.inbox() == {"replied": 2, "dead": 1}


class Broken(Session):
    """Always fails."""

    def on_receive(self, message: Any) -> Any:
        raise CrashError(f"always, also for {message}")


async def test_a_session_that_always_fails_is_given_up_and_apologises(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:

    def make(key: str, persona: Persona, services: Services) -> Session:
        made = Broken if parse_key(key).chat == "bad" else Session
        return made(key, persona, services)

    monkeypatch.setattr(supervisor, "Session", make)
    cast = Cast()
    async with open_company(autojump_clock, cast):
        for number in range(5):
            cast.platform.write(f"{number}", chat="bad")
        cast.platform.write("hello", chat="good")
        await at_rest(cast)
    assert cast.platform.said("bad") == [SORRY] * 5
    assert cast.platform.said("good") == ["anna: anna heard hello"]
    assert await cast.inbox() == {"replied": 1, "dead": 5}


class ForgetfulAgent(Agent):
    """Ends with every turn, as if it had been restarted meanwhile."""

    def on_receive(self, message: object) -> None:
        if isinstance(message, TurnEnded):
            raise CrashError("to order")
        super().on_receive(message)


async def test_an_answer_is_not_lost_with_its_agent(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Clock
) -> None:
    monkeypatch.setattr(supervisor, "Agent", ForgetfulAgent)
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        assert trio.current_time() < 10
    assert cast.platform.said() == ["anna: anna heard hello"]


@pytest.mark.parametrize("what", [Connector, Courier, Router, Limiter])
@pytest.mark.parametrize("count", range(1, 8))
async def test_no_actor_of_the_way_is_missed_for_long(
    what: type[Actor],
    count: int,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: Clock,
) -> None:
    monkeypatch.setattr(supervisor, what.__name__, crash_on(what, count))
    limits = LimitsConfig(max_in_flight=1)
    cast = Cast(model=FakeModel(lambda _: Says("yes", after=1)), limits=limits)
    async with open_company(autojump_clock, cast):
        for number in range(4):
            cast.platform.write("hello", chat=f"{number}", key=f"{number}")
            await until(lambda: cast.platform.is_heard)
        for key, _ in tuple(cast.platform.refused):
            cast.platform.write("hello", chat=key, key=key)
        await at_rest(cast)
        assert trio.current_time() < 60
    assert len(cast.platform.deliveries) == 4
    assert cast.model.most_running == 1


async def test_an_agent_and_its_conversations_are_taken_up_after_a_restart_of_both(
    autojump_clock: Clock,
) -> None:
    cast = Cast(
        model=FakeModel(lambda _: Says("yes", after=1)),
        limits=LimitsConfig(max_in_flight=1),
    )
    async with open_company(autojump_clock, cast) as system:
        for number in range(3):
            cast.platform.write("hello", chat=f"{number}")
        await until(lambda: cast.model.running)
        agent = system.find(f"{names.ROOT}/agents/anna")
        assert agent is not None
        agent.kill()
        await at_rest(cast)
    assert [each.text for each in cast.platform.deliveries] == ["yes"] * 3


async def test_a_platform_that_asks_for_time_is_given_it_in_order(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    cast.platform.faults["slow"].append(DeliveryBusyError("x", retry_after=20))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one", chat="slow")
        cast.platform.write("two", chat="slow")
        cast.platform.write("hello", chat="quick")
        await until(lambda: cast.platform.said("quick"))
        assert trio.current_time() < 1
        await at_rest(cast)
        assert 20 <= trio.current_time() < 22
    words = ["anna: anna heard one", "anna: anna heard two"]
    assert cast.platform.said("slow") == words


async def test_a_delivery_that_is_refused_is_dead_and_the_next_is_said(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    cast.platform.faults["room"].append(DeliveryRefusedError("gone"))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        cast.platform.write("two")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard two"]
    assert await cast.outbox() == {"dead": 1, "sent": 1}


async def test_a_platform_that_breaks_makes_dead_rows_and_no_silence(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    cast.platform.broken.add("bad")
    async with open_company(autojump_clock, cast) as system:
        for number in range(3):
            cast.platform.write(f"{number}", chat="bad")
        cast.platform.write("hello", chat="good")
        await at_rest(cast)
        assert cast.platform.said("good") == ["anna: anna heard hello"]
        assert system.dead_letters.counts["poison"] == 3
    assert await cast.outbox() == {"dead": 3, "sent": 1}


async def test_a_platform_that_is_repaired_says_what_was_not_given_up(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    cast.platform.broken.add("room")
    async with open_company(autojump_clock, cast):
        for number in range(3):
            cast.platform.write(f"{number}")
        await trio.sleep(2)
        cast.platform.broken.clear()
        await at_rest(cast)
    counts = await cast.outbox()
    assert counts["dead"] == 1
    assert counts["sent"] == 2


async def test_a_listener_that_breaks_is_started_again(autojump_clock: Clock) -> None:
    cast = Cast(platform=Deaf())
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard hello"]


class Deaf(Platform):
    """Breaks twice before it listens."""

    failures = 2

    async def listen(self, ingress: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise CrashError("cannot connect")
        await super().listen(ingress)
