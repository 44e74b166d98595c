"""Servers of tools with their actors, for tests: real programs, no sandbox."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import trio

from actors.messages.inbound import Address, ToolCall, ToolContext, ToolResult
from actors.ports import Offer, Tool
from connectors.config.mcp import McpServerConfig
from connectors.mcp.connection import Connect, ListTools, Shelf
from connectors.mcp.session import McpFigures
from connectors.mcp.source import Known, McpSource
from connectors.mcp.tree import ServerSurroundings, actor_of, connecting, server_spec
from runtime.actor.ref import ActorRef
from runtime.supervision.supervisor import Supervisor
from runtime.system import ActorSystem, open_system
from runtime.telemetry.metrics import Metrics
from runtime.testing import Reports
from tests.fakes.tools.sandbox import FakeSandbox

SERVER = Path(__file__).parents[1] / "fakes" / "mcp" / "server.py"
CONTEXT = ToolContext(
    agent="ben", correlation_id="c", address=Address("terminal", "1"), sender_id="sam"
)


def settings(mode: str = "good", **more: Any) -> McpServerConfig:
    """Give the settings of the fake server in one of its modes."""
    quick: dict[str, Any] = {
        "start_timeout": 20.0,
        "call_timeout": 10.0,
        "restart_first": 0.05,
    }
    args = (str(SERVER), mode)
    return McpServerConfig(command=sys.executable, args=args, **{**quick, **more})


@dataclass
class Bed:
    """Running servers."""

    system: ActorSystem
    metrics: Metrics
    source: McpSource
    sandbox: FakeSandbox
    reports: Reports

    def server(self, name: str = "files") -> ActorRef:
        ref = self.system.find(actor_of("tools", name))
        assert ref is not None
        return ref

    async def shelf(self, name: str = "files") -> Shelf:
        shelf = await self.server(name).ask(ListTools(), timeout=30.0)
        assert isinstance(shelf, Shelf)
        return shelf

    async def offer(self) -> Offer:
        return await self.source.offer(CONTEXT, "hello")

    async def tools(self) -> dict[str, Tool]:
        return {tool.spec.name: tool for tool in (await self.offer()).tools}

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        tool = (await self.tools())[name]
        asked = ToolCall("id", name, msgspec.json.encode(arguments))
        return await tool.run(asked, CONTEXT)

    def count(self, event: str, server: str = "files") -> float:
        labels = f'callboard_mcp_events_total{{event="{event}",server="{server}"}} '
        text = self.metrics.render().decode()
        found = [line for line in text.splitlines() if line.startswith(labels)]
        return float(found[0].split()[-1]) if found else 0.0


@dataclass
class Plan:
    """Which servers there are, and which tools the agent has."""

    servers: dict[str, McpServerConfig] = field(
        default_factory=lambda: {"files": settings()}
    )
    wanted: tuple[str, ...] = ("mcp:files",)
    connect: dict[str, Connect] = field(default_factory=dict[str, "Connect"])


@asynccontextmanager
async def running(plan: Plan, folder: Path | None = None) -> AsyncGenerator[Bed]:
    """Run servers until the block ends."""
    sandbox, metrics, reports = FakeSandbox(), Metrics(), Reports()
    ground = ServerSurroundings(sandbox, folder or Path())
    figures = McpFigures(metrics)
    specs = [
        server_spec(
            name,
            config,
            plan.connect.get(name) or connecting(name, config, ground),
            figures,
        )
        for name, config in plan.servers.items()
    ]
    async with open_system(report=reports) as system:
        await system.start_root(Supervisor(specs), "tools")
        known = [
            Known(name, config, actor_of("tools", name))
            for name, config in plan.servers.items()
        ]
        source = McpSource(known, {"ben": plan.wanted}, system.find)
        yield Bed(system, metrics, source, sandbox, reports)


async def until(is_so: Callable[[], object], *, within: float = 15.0) -> None:
    """Wait in real time until something is so."""
    with trio.fail_after(within):
        while not is_so():  # noqa: ASYNC110  it may depend on anything
            await trio.sleep(0.02)
