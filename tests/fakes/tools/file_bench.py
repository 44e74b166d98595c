"""The tools on files over a folder of their own, called as a model calls them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from actors.messages.inbound import Address, ToolCall, ToolContext, ToolResult
from connectors.config.tools import WorkspaceConfig
from connectors.tools.workspace.files import (
    Desks,
    ListFilesTool,
    ReadFileTool,
    WriteFileTool,
)

CONTEXT = ToolContext(
    agent="ben", correlation_id="c", address=Address("terminal", "1"), sender_id="sam"
)


class Bench:
    """The three tools over a folder of its own.

    Args:
        root: where the agents' folders are.
        limits: what differs from the defaults.
    """

    def __init__(self, root: Path, **limits: int) -> None:
        self.root = root
        self.desks = Desks(WorkspaceConfig(path=str(root), **limits))
        self.home = root / "ben"

    async def write(self, path: str, content: str, **more: object) -> ToolResult:
        return await self._run("write_file", path=path, content=content, **more)

    async def read(self, path: str, **more: object) -> ToolResult:
        return await self._run("read_file", path=path, **more)

    async def list(self, path: str = "", **more: object) -> ToolResult:
        return await self._run("list_files", path=path, **more)

    async def _run(self, name: str, **arguments: object) -> ToolResult:
        tools = (
            each(self.desks) for each in (ReadFileTool, WriteFileTool, ListFilesTool)
        )
        tool = next(each for each in tools if each.spec.name == name)
        call = ToolCall("id1", name, msgspec.json.encode(arguments))
        return await tool.run(call, CONTEXT)


def refuses(result: ToolResult, why: str) -> None:
    assert result.is_error
    assert why in result.text
    assert 10 < len(result.text) < 500
