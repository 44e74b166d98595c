"""Proves what an agent is told, and by which model it thinks, while it looks about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors.agents.persona import Persona
from actors.config.agents import AgentConfig
from actors.config.routes import RoutingConfig
from actors.config.schedule import HeartbeatConfig, ScheduledConfig
from actors.messages.inbound import Inbound, Occasion
from actors.rules.markers.actions import Schedule
from actors.rules.prompt.brief import PersonaFiles
from actors.turn.scheduled import is_light, scheduled_persona, set_model
from tests.fakes.actors.neighbours import words
from tests.fakes.company.arranging import arrange
from tests.fakes.company.beating import FIRST, Listed
from tests.fakes.company.company import at_rest, open_company
from tests.fakes.models.accounts import Pooled

Clock = trio.testing.MockClock

FILES = PersonaFiles("I am Anna", "calm", "to help", "profit", "ben", "long ago")


def anna(**config: Any) -> Persona:
    settings = AgentConfig(model="smart", skills=("x",), **config)
    return Persona(name="anna", config=settings, files=FILES, skills=("x",))


def on(occasion: Occasion) -> Inbound:
    return msgspec.structs.replace(words("look"), occasion=occasion)


@pytest.mark.parametrize(
    ("beat", "others", "expected"),
    [
        ("", "", ("smart", "smart")),
        ("cheap", "", ("cheap", "smart")),
        ("", "cheap", ("cheap", "cheap")),
        ("strong", "cheap", ("strong", "cheap")),
    ],
)
def test_the_model_is_the_nearest_that_is_set(
    beat: str, others: str, expected: tuple[str, str]
) -> None:
    persona = anna(
        heartbeat=HeartbeatConfig(model=beat), scheduled=ScheduledConfig(model=others)
    )
    found = (
        scheduled_persona(persona, on("heartbeat")),
        scheduled_persona(persona, on("task")),
    )
    assert tuple(each.config.model for each in found) == expected
    assert scheduled_persona(persona, on("")) is persona
    assert set_model(persona.config, "heartbeat") == (beat or others)


def test_a_part_of_a_long_list_takes_the_strong_model_unless_one_is_set() -> None:
    routing, cheap = RoutingConfig(strong="strong"), ScheduledConfig(model="cheap")
    whole = on("heartbeat")
    part = msgspec.structs.replace(whole, lane="heartbeat2")
    persona = anna(routing=routing, scheduled=cheap)
    assert scheduled_persona(persona, whole).config.model == "cheap"
    assert scheduled_persona(persona, part).config.model == "strong"
    own = anna(routing=routing, heartbeat=HeartbeatConfig(model="own"))
    assert scheduled_persona(own, part).config.model == "own"


def test_a_set_model_is_taken_whatever_the_words() -> None:
    routing = RoutingConfig(classify=True, cheap="cheap")
    persona = anna(routing=routing, scheduled=ScheduledConfig(model="strong"))
    assert scheduled_persona(persona, on("cron")).config.routing == RoutingConfig()
    assert (
        scheduled_persona(anna(routing=routing), on("cron")).config.routing == routing
    )


def test_light_it_knows_who_it_is_and_no_more() -> None:
    light = scheduled_persona(anna(), on("heartbeat"))
    assert light.files == PersonaFiles("I am Anna", "calm")
    assert (light.skills, light.config.skills) == ((), ())
    budgets = light.config.context.budgets
    assert (budgets.facts, budgets.summaries, budgets.lessons) == (0, 0, 0)
    assert budgets.tools
    assert is_light(anna(), on("heartbeat"))
    assert not is_light(anna(), on("cron"))


def test_whole_it_has_all_but_the_conversation() -> None:
    persona = anna(heartbeat=HeartbeatConfig(context="whole"))
    assert scheduled_persona(persona, on("heartbeat")) == persona
    assert not is_light(persona, on("heartbeat"))


async def test_heartbeats_and_tasks_go_to_the_models_set_for_them(
    autojump_clock: Clock,
) -> None:
    agent = AgentConfig(
        model="smart",
        persona=Path("anna"),
        heartbeat=HeartbeatConfig(chat="fake/room", sender="zoe", model="cheap"),
    )
    cast = Pooled(agents={"anna": agent}, read_checklist=Listed())
    async with open_company(autojump_clock, cast) as system:
        task = Schedule("sum up", "in 5 minutes", is_action=True)
        await arrange(system, cast, task)
        await trio.sleep(FIRST + 60)
        cast.platform.write("hello")
        await at_rest(cast)
    asked = [said.split(":")[1].split("@")[0].strip() for said in cast.platform.said()]
    assert asked == ["smart-1", "cheap-1", "smart-1"]
