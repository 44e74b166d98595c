"""Proves that whatever becomes of a skill's servers, their starter goes on."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import trio
import trio.testing

from actors.messages.inbound import Address, ToolContext
from actors.rules.prompt.skills import Skill
from connectors.config.mcp import McpServerConfig
from connectors.mcp.session import McpFigures
from connectors.mcp.tree import SKILLS
from connectors.skills.folder import SkillFolder
from connectors.skills.source import (
    Brought,
    SkillSource,
    Starter,
    StartServers,
    Using,
    conversation_of,
)
from runtime.actor.actor import Actor
from runtime.errors import MisuseError
from runtime.supervision.supervisor import StopChild
from runtime.telemetry.metrics import Metrics
from tests.fakes.actors.neighbours import of_kind, probe
from tests.fakes.tools.sandbox import FakeSandbox
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

PRESS = "pdf.press"
BROUGHT = {"pdf": Brought(Path("/skills/pdf"), {PRESS: McpServerConfig(command="x")})}


PDF = SkillFolder(Skill("pdf", "Fills in forms.", (), "Fill."), Path("/skills/pdf"), {})
CONTEXT = ToolContext(
    agent="ben", correlation_id="c", address=Address("terminal", "1"), sender_id="s"
)


class Stuck(Actor):
    """Stands in the supervisor's place, and answers nobody."""

    deadline: ClassVar[float | None] = None

    async def on_receive(self, message: object) -> None:
        del message
        await trio.sleep_forever()


def starter(idle_after: float = 1e6) -> Starter:
    return Starter(BROUGHT, Using(idle_after), FakeSandbox(), McpFigures(Metrics()))


async def test_servers_that_do_not_start_in_time_are_asked_for_again(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        system.spawn(Stuck(), name=SKILLS)
        ref = system.spawn(starter())
        for _ in range(2):
            await ref.ask(StartServers("pdf"), timeout=100)


async def test_servers_that_do_not_end_in_time_are_ended_later(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        system.spawn(Stuck(), name=SKILLS)
        probe(system, f"{SKILLS}/{PRESS}")
        ref = system.spawn(starter(idle_after=200))
        await trio.sleep(1000)
        assert ref.is_alive()


async def test_servers_that_cannot_be_ended_now_are_ended_later(
    autojump_clock: Clock,
) -> None:
    def refuse(message: object) -> None:
        raise MisuseError(f"no {message}")

    async with virtual(autojump_clock) as system:
        supervisor = probe(system, SKILLS, refuse)
        probe(system, f"{SKILLS}/{PRESS}")
        ref = system.spawn(starter(idle_after=200))
        await trio.sleep(120)
        assert len(of_kind(supervisor, StopChild)) == 2
        assert ref.is_alive()


async def test_a_model_is_told_of_servers_that_are_not_started_yet() -> None:
    using = Using(100)
    using.note(conversation_of(CONTEXT), "pdf", trio.current_time())
    source = SkillSource(
        {"ben": {"pdf": PDF}}, BROUGHT, using, 1, frozenset(), lambda _: None
    )
    offer = await source.offer(CONTEXT, "hello")
    assert [tool.spec.name for tool in offer.tools] == ["use_skill"]
    assert offer.notes[-1] == (
        "The tools of 'pdf.press' cannot be used now: it is still being started."
    )
