"""Proves what agents have of servers and skills together, with real programs."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio

from actors import names
from actors.config.agents import AgentConfig
from actors.messages.inbound import Address, ToolCall, ToolContext
from connectors.app.tool_sources import make_sources
from connectors.config.app import AppConfig
from connectors.config.mcp import McpServerConfig, SkillsConfig
from connectors.config.tools import WorkspaceConfig
from runtime.supervision.supervisor import Supervisor
from runtime.system import open_system
from runtime.telemetry.metrics import Metrics
from runtime.testing import Reports
from tests.fakes.tools.sandbox import FakeSandbox
from tests.support.mcp_bed import SERVER, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from actors.messages.inbound import ToolResult
    from actors.ports import Tool, ToolSource

pytest.importorskip("mcp", reason="the extra mcp is not installed")

SKILL = """---
name: pdf
description: Fills in forms.
triggers: invoice
---
Fill in the form.
"""


def context(chat: str = "1", agent: str = "ben") -> ToolContext:
    address = Address("terminal", chat)
    return ToolContext(agent=agent, correlation_id="c", address=address, sender_id="s")


class Shed:
    """Sources of tools, and what they offer together."""

    def __init__(self, sources: tuple[ToolSource, ...], sandbox: FakeSandbox) -> None:
        self.sources = sources
        self.sandbox = sandbox
        self.notes = ""

    async def tools(self, words: str = "", chat: str = "1") -> dict[str, Tool]:
        offers = [await each.offer(context(chat), words) for each in self.sources]
        told = (each for x in offers for each in (*x.standing, *x.notes))
        self.notes = "\n".join(told)
        return {tool.spec.name: tool for offer in offers for tool in offer.tools}

    async def use(self, chat: str = "1", **arguments: Any) -> ToolResult:
        tool = (await self.tools(chat=chat))["use_skill"]
        call = ToolCall("1", "use_skill", msgspec.json.encode(arguments))
        return await tool.run(call, context(chat))


def config(folder: Path, **more: Any) -> AppConfig:
    path = folder / "skills" / "pdf"
    path.mkdir(parents=True, exist_ok=True)
    (path / "SKILL.md").write_text(SKILL)
    (path / "forms.md").write_text("the forms")
    server = {"command": sys.executable, "args": [str(SERVER), "good"]}
    (path / "mcp.json").write_text(json.dumps({"mcpServers": {"press": server}}))
    skills: dict[str, Any] = {"folders": (folder / "skills",), "servers": ("pdf",)}
    skills["idle_after"] = 2.0
    agent = AgentConfig(tools=("clock", "mcp:files/ec*"), skills=("*",))
    return AppConfig(
        workspace=WorkspaceConfig(path=str(folder / "work")),
        mcp_servers={
            "files": McpServerConfig(command=sys.executable, args=(str(SERVER), "good"))
        },
        skills=SkillsConfig(**{**skills, **more}),
        agents={"ben": agent, "anna": AgentConfig()},
    )


@asynccontextmanager
async def opened(app: AppConfig) -> AsyncGenerator[Shed]:
    sandbox = FakeSandbox()
    async with open_system(report=Reports()) as system:
        made = make_sources(app, sandbox, Metrics(), system.find)
        await system.start_root(Supervisor([made.spec]), names.ROOT)
        yield Shed(made.sources, sandbox)


async def test_an_agent_has_the_tools_it_lists_and_no_others(tmp_path: Path) -> None:
    async with opened(config(tmp_path)) as shed:
        assert set(await shed.tools()) == {"files__echo", "use_skill"}
        for source in shed.sources:
            offer = await source.offer(context(agent="anna"), "invoice")
            assert (offer.tools, offer.notes) == ((), ())


async def test_a_skill_is_a_line_until_words_call_for_it(tmp_path: Path) -> None:
    async with opened(config(tmp_path)) as shed:
        await shed.tools("hello")
        assert "- pdf: Fills in forms." in shed.notes
        assert "Fill in the form." not in shed.notes
        await shed.tools("send the invoice")
        assert "Fill in the form." in shed.notes
        await shed.tools("invoices")
        assert "Fill in the form." not in shed.notes


async def test_use_skill_gives_texts_and_files_of_the_agents_skills(
    tmp_path: Path,
) -> None:
    async with opened(config(tmp_path)) as shed:
        text = (await shed.use(name="pdf")).text
        assert "Fill in the form." in text
        assert "- forms.md" in text
        assert (await shed.use(name="pdf", file="forms.md")).text == "the forms"
        wrong = await shed.use(name="pfd")
        outside = await shed.use(name="pdf", file="../../secret")
        odd = await shed.use(name=5)
    assert wrong.text == "there is no skill 'pfd'. Did you mean pdf?"
    assert outside.text.startswith("the file cannot be had")
    assert all(each.is_error for each in (wrong, outside, odd))


async def test_a_skill_in_use_brings_its_servers_tools(tmp_path: Path) -> None:
    async with opened(config(tmp_path)) as shed:
        await shed.use(name="pdf")
        tools = await shed.tools()
        assert "pdf-press__echo" in tools
        assert not any("press" in name for name in await shed.tools(chat="2"))
        call = ToolCall("1", "pdf-press__echo", b'{"text": "hi"}')
        result = await tools["pdf-press__echo"].run(call, context())
        assert result.text == "echo hi"
        confinement = shed.sandbox.confinements[-1]
        assert (confinement.writable, confinement.network) == ((), "none")
        assert confinement.readable == (tmp_path / "skills" / "pdf",)


async def test_words_that_call_for_a_skill_bring_its_tools_at_once(
    tmp_path: Path,
) -> None:
    async with opened(config(tmp_path)) as shed:
        assert "pdf-press__echo" in await shed.tools("the invoice, please")


async def test_servers_of_skills_that_nobody_uses_are_stopped(tmp_path: Path) -> None:
    async with opened(config(tmp_path, idle_after=0.5)) as shed:
        await shed.tools("the invoice, please")
        program = shed.sandbox.programs[-1]
        await until(lambda: program.process.returncode is not None)
        assert "pdf-press__echo" not in await shed.tools("hello")
        assert "pdf-press__echo" in await shed.tools("the invoice, please")


async def test_servers_of_skills_that_are_not_listed_are_not_started(
    tmp_path: Path,
) -> None:
    async with opened(config(tmp_path, servers=())) as shed:
        await shed.use(name="pdf")
        assert set(await shed.tools()) == {"files__echo", "use_skill"}
        await trio.sleep(0.1)
        assert len(shed.sandbox.programs) == 1
