"""Proves that each tool of the settings is made, and none that loads too much."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack

import msgspec

from actors.config.agents import AgentConfig
from actors.messages.inbound import Address, ToolCall, ToolContext
from actors.ports import Tool
from connectors.config.app import AppConfig
from connectors.config.tools import FetchConfig, SandboxConfig, WebSearchConfig
from connectors.sandbox.plan import Territory
from connectors.sandbox.runner import LateSandbox
from connectors.tools.registry import TOOLS, ToolParts, make_tools
from connectors.tools.workspace.files import Desks
from runtime.clock import SystemClock
from tests.fakes.sites.site import open_site, response
from tests.fakes.store.in_memory import MemoryStore

CONTEXT = ToolContext(
    agent="ben", correlation_id="c", address=Address("terminal", "1"), sender_id="sam"
)

SANDBOX = LateSandbox(SandboxConfig(), Territory())
"""Never opened here."""


def config(tools: tuple[str, ...], base_url: str = "http://127.0.0.1:1") -> AppConfig:
    return AppConfig(
        agents={"ben": AgentConfig(tools=tools)},
        fetch=FetchConfig(timeout=5.0),
        web_search=WebSearchConfig(kind="searxng", base_url=base_url),
    )


def parts(settings: AppConfig, stack: AsyncExitStack) -> ToolParts:
    return ToolParts(
        config=settings,
        clock=SystemClock(),
        sandbox=SANDBOX,
        desks=Desks(settings.workspace),
        stack=stack,
        find=lambda _: None,
        store=MemoryStore(),
    )


def all_tools(stack: AsyncExitStack) -> dict[str, Tool]:
    return make_tools(parts(config(tuple(TOOLS)), stack))


async def test_every_tool_there_is_can_be_had() -> None:
    async with AsyncExitStack() as stack:
        tools = all_tools(stack)
    assert sorted(tools) == sorted(TOOLS)
    assert all(name == tool.spec.name for name, tool in tools.items())


async def test_what_looks_something_up_may_be_repeated_and_what_writes_may_not() -> (
    None
):
    async with AsyncExitStack() as stack:
        tools = all_tools(stack)
    effects = {name: tool.spec.effect for name, tool in tools.items()}
    others = {name: effect for name, effect in effects.items() if effect != "read"}
    assert others == {
        "save_memory": "write",
        "write_file": "write",
        "run_shell": "run",
    }
    repeatable = {name for name, tool in tools.items() if tool.spec.is_repeatable}
    assert repeatable == {*TOOLS} - {*others}


async def test_only_the_search_reaches_the_engine_of_the_settings() -> None:
    """An engine on this machine is no reason to let models read this machine."""
    found = response(b'{"results": [{"title": "t", "url": "https://x/"}]}')
    async with open_site(lambda _: found) as site, AsyncExitStack() as stack:
        url = f"http://127.0.0.1:{site.port}"
        wanted = config(("web_search", "http_fetch"), url)
        tools = make_tools(parts(wanted, stack))
        asked = {"web_search": {"query": "x"}, "http_fetch": {"url": url}}
        results = {
            name: await tools[name].run(
                ToolCall("1", name, msgspec.json.encode(arguments)), CONTEXT
            )
            for name, arguments in asked.items()
        }
    assert "1. t\nhttps://x/" in results["web_search"].text
    assert results["http_fetch"].is_error
    assert "not public (this machine)" in results["http_fetch"].text
    assert len(site.requests) == 1


def test_a_company_that_reads_no_web_loads_no_http_client() -> None:
    code = "import connectors.app, sys; print('httpx' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
