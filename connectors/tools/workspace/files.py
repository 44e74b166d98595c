"""The tools `read_file`, `write_file` and `list_files`, on the agent's own folder.

`workspace.py` keeps them inside it. Blocking work is done beside the kernel's thread,
writes of one agent one after the other.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import trio

from actors.messages.inbound import ToolContext, ToolResult, ToolSpec
from connectors.fetch.media_types import media_type
from connectors.tools.arguments import ArgumentsTool, schema_of
from connectors.tools.workspace.workspace import (
    MAX_PATH,
    Entry,
    Workspace,
    WorkspaceError,
    read_path,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.config.tools import WorkspaceConfig
    from connectors.tools.registry import ToolParts

Outcome = TypeVar("Outcome")

MAX_ENTRIES = 200
"""Entries that one listing shows."""

FilePath = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=MAX_PATH,
        description="path inside your own folder, as in notes/today.md",
    ),
]
FolderPath = Annotated[
    str,
    msgspec.Meta(
        max_length=MAX_PATH, description="folder inside your own; empty for all of it"
    ),
]


class ReadFileArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `read_file` takes."""

    path: FilePath
    offset: Annotated[
        int, msgspec.Meta(ge=1, le=100_000_000, description="first line, from 1")
    ] = 1
    limit: Annotated[
        int, msgspec.Meta(ge=1, le=1_000_000, description="most lines")
    ] = 1_000_000


class WriteFileArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `write_file` takes."""

    path: FilePath
    content: Annotated[str, msgspec.Meta(description="the text, written as it is")]
    append: Annotated[
        bool, msgspec.Meta(description="add to the end instead of replacing")
    ] = False


class ListFilesArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `list_files` takes."""

    path: FolderPath = ""
    recursive: Annotated[
        bool, msgspec.Meta(description="also what is in the folders inside")
    ] = False


class Desks:
    """The agents' folders, and who writes in each.

    Args:
        config: where they are, and how much may be in them.
    """

    def __init__(self, config: WorkspaceConfig) -> None:
        self.config = config
        # Bounded: the settings name the agents.
        self._writing: dict[str, trio.Lock] = {}

    def of(self, agent: str) -> Workspace:
        """Give an agent's folder."""
        return Workspace(Path(self.config.path), agent, self.config)

    def writing(self, agent: str) -> trio.Lock:
        """Give what its writers wait for: each counts what the others have written."""
        return self._writing.setdefault(agent, trio.Lock())


async def beside(work: Callable[[], Outcome]) -> Outcome:
    """Do blocking work beside the kernel's thread, to its end."""
    return await trio.to_thread.run_sync(work)


class ReadFileTool(ArgumentsTool[ReadFileArguments]):
    """Reads a text of the agent's own folder."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks
        spec = ToolSpec(
            "read_file",
            "Read a text file of your own folder. Long ones come in pieces; give "
            "offset, a line number, for the next.",
            schema_of(ReadFileArguments),
            is_repeatable=True,
            effect="read",
        )
        super().__init__(spec, ReadFileArguments, WorkspaceError)

    async def answer(
        self, arguments: ReadFileArguments, context: ToolContext
    ) -> ToolResult:
        """Read; what cannot be read is a result with `is_error`."""
        names = file_names(arguments.path)
        workspace = self._desks.of(context.agent)
        content = await beside(partial(workspace.read, names))
        text = decoded(content, arguments.path)
        path = "/".join(names)
        return ToolResult(excerpt(path, text, arguments, self._desks.config.read_chars))


class WriteFileTool(ArgumentsTool[WriteFileArguments]):
    """Writes a text into the agent's own folder."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks
        spec = ToolSpec(
            "write_file",
            "Write a text file in your own folder, or add to its end. Folders are "
            "made. Write long texts in several calls.",
            schema_of(WriteFileArguments),
            effect="write",
        )
        super().__init__(spec, WriteFileArguments, WorkspaceError)

    async def answer(
        self, arguments: WriteFileArguments, context: ToolContext
    ) -> ToolResult:
        """Write; what cannot be written is a result with `is_error`."""
        names = file_names(arguments.path)
        text = arguments.content.encode()
        workspace = self._desks.of(context.agent)
        async with self._desks.writing(context.agent):
            size = await beside(
                partial(workspace.write, names, text, append=arguments.append)
            )
        verb = "added to" if arguments.append else "written:"
        return ToolResult(f"{verb} {'/'.join(names)}, which has {size} bytes now")


class ListFilesTool(ArgumentsTool[ListFilesArguments]):
    """Lists what is in the agent's own folder."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks
        spec = ToolSpec(
            "list_files",
            "List the files of your own folder, or of a folder in it.",
            schema_of(ListFilesArguments),
            is_repeatable=True,
            effect="read",
        )
        super().__init__(spec, ListFilesArguments, WorkspaceError)

    async def answer(
        self, arguments: ListFilesArguments, context: ToolContext
    ) -> ToolResult:
        """List; a folder that is not there is a result with `is_error`."""
        names = read_path(arguments.path)
        workspace = self._desks.of(context.agent)
        found = await beside(
            partial(
                workspace.entries,
                names,
                is_deep=arguments.recursive,
                most=MAX_ENTRIES + 1,
            )
        )
        return ToolResult(listing("/".join(names) or "your folder", found))


def file_names(path: str) -> tuple[str, ...]:
    """Part a path that must name a file.

    Raises:
        WorkspaceError: it names nothing, or leads out.
    """
    names = read_path(path)
    if not names or path.endswith("/"):
        raise WorkspaceError(f"{shown(path)!r} names no file")
    return names


def decoded(content: bytes, path: str) -> str:
    """Read a file's letters.

    Raises:
        WorkspaceError: it is no UTF-8 text.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        kind = media_type(content)
        raise WorkspaceError(
            f"{shown(path)!r} is no UTF-8 text but {kind}, {len(content)} bytes"
        ) from error


def excerpt(path: str, text: str, wanted: ReadFileArguments, max_chars: int) -> str:
    """Give the lines that were asked for, as many as fit, under a line about them."""
    lines = text.removesuffix("\n").split("\n") if text else []
    first = wanted.offset - 1
    if first >= len(lines):
        return (
            f"{path} has {len(lines)} lines; there is nothing at line {wanted.offset}"
        )
    kept: list[str] = []
    room = max_chars
    for line in lines[first : first + wanted.limit]:
        room -= len(line) + 1
        if room < 0 and kept:
            break
        kept.append(line[:max_chars])
    last = first + len(kept)
    said = f"{path}, lines {first + 1} to {last} of {len(lines)}"
    if len(kept[-1]) < len(lines[last - 1]):
        said += f"; line {last} is cut, it has {len(lines[last - 1])} characters"
    if last < len(lines):
        said += f"; go on with offset {last + 1}"
    return "\n".join([f"{said}:", "", *kept])


def listing(folder: str, found: list[Entry]) -> str:
    """Write a folder down, one entry in each line."""
    if not found:
        return f"{folder} is empty"
    lines = [entry_line(entry) for entry in found[:MAX_ENTRIES]]
    if len(found) > MAX_ENTRIES:
        lines.append(f"(only the first {MAX_ENTRIES}; list a folder inside for more)")
    return "\n".join([f"{folder}:", *lines])


def entry_line(entry: Entry) -> str:
    """Write one entry down."""
    name = shown("/".join(entry.names))
    match entry.kind:
        case "file":
            return f"{name} ({entry.size} bytes)"
        case "folder":
            return f"{name}/"
        case kind:
            return f"{name} ({kind}, cannot be read)"


def make_list_files(parts: ToolParts) -> ListFilesTool:
    """Make the tool; see `connectors/tools/registry.py`."""
    return ListFilesTool(parts.desks)


def make_read_file(parts: ToolParts) -> ReadFileTool:
    """Make the tool; see `connectors/tools/registry.py`."""
    return ReadFileTool(parts.desks)


def make_write_file(parts: ToolParts) -> WriteFileTool:
    """Make the tool; see `connectors/tools/registry.py`."""
    return WriteFileTool(parts.desks)
