"""Makes the tools that agents can have: the only file that knows each of them.

Settings choose among them by name. What needs an HTTP client is made only if some
agent has it, so that an offline company loads none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from connectors.tools.brave import BRAVE, BraveSearch
from connectors.tools.calculate import CalculateTool
from connectors.tools.clock import ClockTool
from connectors.tools.files import Desks, ListFilesTool, ReadFileTool, WriteFileTool
from connectors.tools.http_fetch import HttpFetchTool
from connectors.tools.run_shell import RunShellTool
from connectors.tools.searching import door_of
from connectors.tools.searxng import SearxngSearch
from connectors.tools.web_search import WebSearchTool

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from actors.ports import Tool
    from connectors.config import AppConfig
    from connectors.fetch.fetch import Fetcher
    from connectors.fetch.messages import Fetch
    from connectors.sandbox.runner import Sandbox
    from connectors.tool_config import FetchConfig
    from connectors.tools.searching import WebSearch
    from runtime.clock import Clock

FETCH = "connectors.fetch.fetch"
"""Imported only for agents that read the web: its HTTP client takes a fifth of the
whole start."""

MakeFetcher = Callable[..., "Fetcher"]


def make_tools(
    config: AppConfig, clock: Clock, sandbox: Sandbox, stack: AsyncExitStack
) -> dict[str, Tool]:
    """Make the tools, by name; those with a client only if some agent has them."""
    wanted = {tool for agent in config.agents.values() for tool in agent.tools}
    desks = Desks(config.workspace)
    tools: list[Tool] = [
        CalculateTool(),
        ClockTool(clock.wall),
        ListFilesTool(desks),
        ReadFileTool(desks),
        WriteFileTool(desks),
        RunShellTool(sandbox, Path(config.workspace.path).absolute()),
    ]
    if "http_fetch" in wanted:
        fetch = way_out(config.fetch, stack)
        tools.append(HttpFetchTool(fetch, config.fetch.page_chars))
    if "web_search" in wanted:
        engine = engine_of(config, stack)
        tools.append(WebSearchTool(engine, config.web_search.results))
    return {tool.spec.name: tool for tool in tools}


def way_out(config: FetchConfig, stack: AsyncExitStack, *doors: str) -> Fetch:
    """Open the guarded way out; `doors` are reached besides what is public."""
    make = cast("MakeFetcher", importlib.import_module(FETCH).Fetcher)
    fetcher = make(config, doors=doors)
    stack.push_async_callback(fetcher.aclose)
    return fetcher.fetch


def engine_of(config: AppConfig, stack: AsyncExitStack) -> WebSearch:
    """Make the search engine of the settings, which is not `off`."""
    search = config.web_search
    base_url = search.base_url or BRAVE
    # A way out of its own: pages that a model asks for may not go where it does.
    fetch = way_out(config.fetch, stack, door_of(base_url))
    if search.kind == "searxng":
        return SearxngSearch(base_url, fetch)
    key = search.api_key.reveal() if search.api_key is not None else ""
    return BraveSearch(base_url, key, fetch)
