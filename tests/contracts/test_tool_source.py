"""Proves that every source of tools keeps what the port `ToolSource` promises."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors import names
from actors.messages.inbound import Address, ToolContext
from actors.ports import ToolSource
from connectors.config.mcp import McpServerConfig
from connectors.mcp.session import McpFigures
from connectors.mcp.source import Known, McpSource
from connectors.mcp.tree import SERVERS, actor_of, server_spec
from connectors.skills.folder import read_folders
from connectors.skills.source import SkillSource, Using
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor
from runtime.telemetry.metrics import Metrics
from runtime.testing import Reports, open_test_system
from tests.fakes.mcp.connection import FakeConnection

FIT = re.compile(r"[A-Za-z0-9_-]{1,64}")
CONFIG = McpServerConfig(command="x")


def context(agent: str = "ben") -> ToolContext:
    return ToolContext(
        agent=agent, correlation_id="c", address=Address("t", "1"), sender_id="s"
    )


@asynccontextmanager
async def sources(
    clock: MockClock, folder: Path, *, is_mute: bool = False
) -> AsyncGenerator[dict[str, ToolSource]]:
    assert clock.autojump_threshold == 0
    path = folder / "pdf"
    path.mkdir()
    (path / "SKILL.md").write_text("---\nname: pdf\ndescription: x\n---\nbody")
    connection = FakeConnection("a", "b c", "x" * 100, is_mute=is_mute)
    spec = server_spec("files", CONFIG, connection.connect, McpFigures(Metrics()))
    servers = ChildSpec(name="servers", start=lambda: Supervisor([spec]))
    async with open_test_system(Reports()) as system:
        tools = ChildSpec(name="tools", start=lambda: Supervisor([servers]))
        await system.start_root(Supervisor([tools]), names.ROOT)
        known = [Known("files", CONFIG, actor_of(SERVERS, "files"))]
        skills = {"ben": read_folders([folder], 1_000).skills}
        yield {
            "mcp": McpSource(known, {"ben": ("mcp:files",)}, system.find),
            "skills": SkillSource(skills, {}, Using(60.0), 2, frozenset(), system.find),
        }


@pytest.mark.parametrize("kind", ["mcp", "skills"])
async def test_what_is_offered_fits_and_has_a_name_of_its_own(
    kind: str, autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with sources(autojump_clock, tmp_path) as found:
        offer = await found[kind].offer(context(), "hello")
    specs = [tool.spec for tool in offer.tools]
    assert specs
    assert len({spec.name for spec in specs}) == len(specs)
    assert all(FIT.fullmatch(spec.name) and spec.description for spec in specs)
    for spec in specs:
        assert msgspec.json.decode(spec.parameters)["type"] == "object"


@pytest.mark.parametrize("kind", ["mcp", "skills"])
async def test_an_agent_that_lists_nothing_is_offered_nothing(
    kind: str, autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with sources(autojump_clock, tmp_path) as found:
        offer = await found[kind].offer(context("anna"), "pdf")
    assert (offer.tools, offer.notes, offer.standing) == ((), (), ())


@pytest.mark.parametrize("kind", ["mcp", "skills"])
async def test_it_waits_a_few_seconds_at_most_and_never_fails(
    kind: str, autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with sources(autojump_clock, tmp_path, is_mute=True) as found:
        began = trio.current_time()
        offer = await found[kind].offer(context(), "hello")
        assert trio.current_time() - began < 12
    assert offer.notes or offer.standing
    # The system has ended, and with it all who could answer.
    offer = await found[kind].offer(context(), "hello")
    assert offer.notes or offer.standing


@pytest.mark.parametrize("kind", ["mcp", "skills"])
async def test_it_can_be_cancelled(
    kind: str, autojump_clock: MockClock, tmp_path: Path
) -> None:
    async with sources(autojump_clock, tmp_path, is_mute=True) as found:
        with trio.CancelScope() as scope:
            scope.cancel()
            await found[kind].offer(context(), "hello")
            await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
