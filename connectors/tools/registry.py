"""Every tool that the settings can give an agent. To add one, add a line to `TOOLS`.

A line names a function that makes the tool from `ToolParts`. The settings accept the
names that stand here, and nothing else has to know them.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from actors.rules.prompt.transcript import SEND_FILE
from connectors.fetch.messages import LateFetcher

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AsyncExitStack

    from actors.ports import Tool
    from connectors.config.app import AppConfig
    from connectors.fetch.messages import Fetch
    from connectors.files.blobs import BlobFolder
    from connectors.sandbox.runner import Sandbox
    from connectors.tools.memory import Find
    from connectors.tools.workspace.files import Desks
    from runtime.clock import Clock
    from runtime.store.port import Store


@dataclass(frozen=True)
class ToolParts:
    """What a tool can be made from."""

    config: AppConfig
    clock: Clock
    sandbox: Sandbox
    desks: Desks
    """The agents' folders."""

    stack: AsyncExitStack
    """Closes what the tools opened."""

    find: Find
    """Gives a living actor by its name."""

    store: Store | None
    """None: the tools are only described."""

    blobs: BlobFolder | None = None
    """Where copies of files lie that agents send; None: it is made where needed."""

    def way_out(self, *doors: str) -> Fetch:
        """Give the guarded way to the internet; see `LateFetcher` for `doors`."""
        fetcher = LateFetcher(self.config.fetch, doors)
        self.stack.push_async_callback(fetcher.aclose)
        return fetcher.fetch


class ToolEntry(NamedTuple):
    """Where a tool is made."""

    module: str
    """Imported only when tools are made, so that reading settings stays quick."""

    maker: str = "make_tool"
    """The module's function that takes `ToolParts`."""

    is_costly: bool = False
    """Whether it is made only if some agent has it: its module loads a lot."""


TOOLS: Mapping[str, ToolEntry] = {
    "calculate": ToolEntry("connectors.tools.calculate"),
    "clock": ToolEntry("connectors.tools.clock"),
    "http_fetch": ToolEntry("connectors.tools.web.http_fetch", is_costly=True),
    "list_files": ToolEntry("connectors.tools.workspace.files", "make_list_files"),
    "memory_search": ToolEntry("connectors.tools.memory", "make_memory_search"),
    "read_file": ToolEntry("connectors.tools.workspace.files", "make_read_file"),
    "run_shell": ToolEntry("connectors.tools.run_shell"),
    "save_memory": ToolEntry("connectors.tools.memory", "make_save_memory"),
    SEND_FILE: ToolEntry("connectors.tools.workspace.files", is_costly=True),
    "web_search": ToolEntry("connectors.tools.web.web_search", is_costly=True),
    "write_file": ToolEntry("connectors.tools.workspace.files", "make_write_file"),
}
"""All tools by name."""


def make_tools(parts: ToolParts) -> dict[str, Tool]:
    """Make the tools, by name; costly ones only if some agent has them."""
    wanted = wanted_tools(parts.config)
    return {
        name: getattr(importlib.import_module(entry.module), entry.maker)(parts)
        for name, entry in TOOLS.items()
        if name in wanted or not entry.is_costly
    }


def wanted_tools(config: AppConfig) -> frozenset[str]:
    """Name the tools that agents have, or whose work is done for one of them."""
    lists = (agent.tools for agent in config.agents.values())
    wanted = {tool for tools in (*lists, config.hiring.tools) for tool in tools}
    if any(x.send_new_images or x.send_tool_images for x in config.agents.values()):
        wanted.add(SEND_FILE)
    return frozenset(wanted)
