"""Proves what people notice of settings that change while agents answer them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import trio
import trio.testing

from actors import names
from actors.agents.messages import ReplaceConfiguredStaff
from actors.agents.persona import Persona
from actors.agents.roster import ConfiguredStaff
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import BufferingConfig
from actors.messages.inbound import ModelRequest
from actors.models.limiter import LOOK_EVERY
from actors.rules.groups.routes import routing_table
from actors.tree import Company, tree
from runtime.system import ActorSystem
from runtime.testing import open_test_system
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    bounce,
    heard,
)

Clock = trio.testing.MockClock


def slowly(request: ModelRequest) -> Says:
    """Take a minute over anything."""
    return Says(f"to {heard(request)}", after=60.0)


@dataclass(frozen=True)
class Stage:
    """A company whose settings a test changes, as `reload/apply.py` does."""

    system: ActorSystem
    company: Company
    cast: Cast

    def look_up(self, **changes: Any) -> None:
        place = self.company.services.in_force
        place.current = replace(place.current, **changes)

    async def resettle(self, **agents: AgentConfig) -> None:
        personas = tuple(
            Persona(name=name, config=config, everybody=tuple(agents))
            for name, config in agents.items()
        )
        table = routing_table(agents, default_agent=next(iter(agents)))
        staff = self.system.find(names.STAFF)
        assert staff is not None
        assert await staff.ask(ReplaceConfiguredStaff(ConfiguredStaff(personas, table)))


@asynccontextmanager
async def open_stage(clock: Clock, cast: Cast) -> AsyncGenerator[Stage]:
    assert clock.autojump_threshold == 0
    company = cast.company()
    async with open_test_system(cast.reports) as system:
        await system.start_root(tree(company), names.ROOT)
        system.dead_letters.observe(partial(bounce, system))
        yield Stage(system, company, cast)


async def test_a_conversation_that_is_awake_changes_its_manners(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly), buffering=BufferingConfig(policy="serial"))
    async with open_stage(autojump_clock, cast) as stage:
        cast.platform.write("one")
        await trio.sleep(1)
        stage.look_up(buffering=BufferingConfig(policy="interrupt"))
        await stage.resettle(anna=AgentConfig())
        cast.platform.write("two")
        await at_rest(cast)
        assert len(cast.model.cancelled) == 1
        assert len(cast.platform.said()) == 1


async def test_more_turns_may_run_as_soon_as_the_settings_say_so(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly), limits=LimitsConfig(max_in_flight=1))
    async with open_stage(autojump_clock, cast) as stage:
        for chat in "ab":
            cast.platform.write("hello", chat=chat, sender=chat)
        await trio.sleep(1)
        assert cast.model.running == 1
        limits = stage.company.services.limits
        stage.look_up(limits=msgspec.structs.replace(limits, max_in_flight=2))
        await trio.sleep(LOOK_EVERY + 1)
        assert cast.model.running == 2
        await at_rest(cast)


async def test_an_agent_that_goes_finishes_what_it_has_begun(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_stage(autojump_clock, cast) as stage:
        cast.platform.write("one")
        await trio.sleep(1)
        await stage.resettle(ben=AgentConfig())
        await trio.sleep(1)
        cast.platform.write("two", chat="other")
        await at_rest(cast)
        assert cast.platform.said() == ["anna: to one"]
        assert cast.platform.said("other") == ["ben: to two"]
        await trio.sleep(3600.0)
        assert stage.system.find(names.agent("anna")) is None


async def test_the_next_turn_is_by_the_new_prompt_and_a_running_one_goes_on(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_stage(autojump_clock, cast) as stage:
        cast.platform.write("one")
        await trio.sleep(1)
        await stage.resettle(anna=AgentConfig(prompt="You are brief."))
        await at_rest(cast)
        cast.platform.write("two")
        await at_rest(cast)
        assert cast.platform.said() == ["anna: to one", "anna: to two"]
        first, second = cast.model.requests
        assert "You are brief." not in str(first)
        assert "You are brief." in str(second)


async def test_who_was_too_much_for_one_setting_is_not_for_the_next(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly), limits=LimitsConfig(max_open=1))
    async with open_stage(autojump_clock, cast) as stage:
        cast.platform.write("one")
        await trio.sleep(1)
        cast.platform.write("two", chat="other")
        await trio.sleep(1)
        assert len(cast.platform.refused) == 1
        limits = stage.company.services.limits
        stage.look_up(limits=msgspec.structs.replace(limits, max_open=2))
        cast.platform.write("three", chat="other", sender="sam")
        await at_rest(cast)
        assert cast.platform.said("other") == ["anna: to three"]
