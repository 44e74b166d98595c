"""The tools on the agent's own folder: read, write, list and send files.

`workspace.py` keeps them inside it. Blocking work is done beside the kernel's thread,
writes of one agent one after the other. A path to send is read by the same rules as for
`read_file`: inside the agent's own folder, never through a link, a plain file with one
name. The copy is of the file as it is then.

Pictures that a turn made are sent, too, and found by comparing the agent's folder
before and after the turn. All conversations of the agent share the folder: if another
turn ran meanwhile, a picture may belong to either, so it is not sent.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import trio

from actors.errors import ToolError
from actors.journal.attachments import kind_of, size_of
from actors.messages.inbound import Image, SentFile, ToolContext, ToolResult, ToolSpec
from actors.rules.prompt.transcript import SEND_FILE
from connectors.config.tools import WorkspaceConfig
from connectors.fetch.messages import media_type
from connectors.files.blobs import BlobError, BlobFolder, Kept, folder_of
from connectors.tools.arguments import ArgumentsTool, schema_of
from connectors.tools.registry import ToolParts
from connectors.tools.workspace.workspace import (
    MAX_PATH,
    Entry,
    Mark,
    Workspace,
    WorkspaceError,
    read_path,
    shown,
)
from runtime.telemetry.logs import EventLog

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


LOG = EventLog("files")

PICTURE_ENDINGS = (".gif", ".jpeg", ".jpg", ".png", ".webp")
"""Of names that are looked at; the bytes decide."""

Names = tuple[str, ...]


class Watched:
    """Who watches an agent's folder now."""

    def __init__(self) -> None:
        self.watches: set[PictureWatch] = set()


class PictureWatch:
    """Watches an agent's folder for one turn; see `actors.ports.PictureWatch`."""

    def __init__(
        self,
        enclose: Callable[[str, str], Awaitable[SentFile]],
        agent: str,
        workspace: Workspace,
        others: Watched,
    ) -> None:
        self._enclose = enclose
        self._agent = agent
        self._workspace = workspace
        self._others = others
        self._is_alone = not others.watches
        for each in others.watches:
            each._is_alone = False  # noqa: SLF001  its twin
        others.watches.add(self)
        self._before: dict[Names, Mark] = {}
        self._taken: dict[Names, Mark] = {}

    async def begin(self) -> None:
        """Note what lies there already."""
        self._before = await self._look()

    async def take(self, most: int) -> tuple[SentFile, ...]:
        """Copy what is new or changed; see the port."""
        found = dict(self._changed(await self._look()))
        if found and not self._is_alone:
            LOG.info("new pictures not sent: several turns ran", agent=self._agent)
            return ()
        files: list[SentFile] = []
        for names, mark in sorted(found.items())[:most]:
            try:
                file = await self._enclose(self._agent, "/".join(names))
            except ToolError as error:
                LOG.warning("new picture not sent", agent=self._agent, why=str(error))
                continue
            if file.kind == "image":
                files.append(file)
                self._taken[names] = mark
        return tuple(files)

    async def clear(self) -> None:
        """Remove what was taken, unless it has changed since; see the port."""
        for names, mark in self._taken.items():
            work = partial(self._workspace.remove, names, mark)
            try:
                await trio.to_thread.run_sync(work)
            except WorkspaceError as error:
                LOG.warning("sent picture not removed", why=str(error))

    def end(self) -> None:
        """Watch no longer."""
        self._others.watches.discard(self)

    async def _look(self) -> dict[Names, Mark]:
        try:
            return await trio.to_thread.run_sync(self._workspace.marks, PICTURE_ENDINGS)
        except WorkspaceError as error:
            LOG.warning("folder not looked at", agent=self._agent, why=str(error))
            return {}

    def _changed(self, now: dict[Names, Mark]) -> Iterator[tuple[Names, Mark]]:
        for names, mark in now.items():
            if self._before.get(names) != mark:
                yield names, mark


MOST_NAME = 120
"""Characters of a file's name that people are shown."""

MOST_CAPTION = 4_000

ENDINGS = {
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
}


class SendFileArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `send_file` takes."""

    path: FilePath
    caption: Annotated[
        str, msgspec.Meta(max_length=MOST_CAPTION, description="a line about it")
    ] = ""
    show_as: Annotated[
        str,
        msgspec.Meta(
            pattern="^(document|voice)?$",
            description="document: as it is, not as a picture; voice: as a voice"
            " message, if it is OGG; left out: by its kind",
        ),
    ] = ""


class WorkspaceEnclosures:
    """Copies files of the agents' folders; implements `actors.ports.Enclosures`."""

    def __init__(self, desks: Desks, blobs: BlobFolder) -> None:
        self._desks = desks
        self._blobs = blobs
        # Bounded: the settings name the agents.
        self._watched: dict[str, Watched] = {}

    async def watch(self, agent: str) -> PictureWatch:
        """Watch an agent's folder for new pictures; see the port."""
        others = self._watched.setdefault(agent, Watched())
        made = PictureWatch(self.enclose, agent, self._desks.of(agent), others)
        try:
            await made.begin()
        except BaseException:  # cancelled, too: nobody else could end it
            made.end()
            raise
        return made

    async def enclose(
        self, agent: str, path: str, *, show_as: str = "", caption: str = ""
    ) -> SentFile:
        """Copy a file of an agent's own folder; see the port."""
        try:
            names = file_names(path)
            workspace = self._desks.of(agent)
            kept = await self._keep(partial(workspace.copy, names), agent)
        except WorkspaceError as error:
            raise ToolError(str(error)) from error
        kind = media_type(kept.head)
        return SentFile(
            digest=kept.digest,
            name=shown_name(names[-1], kind),
            media_type=kind,
            size=kept.size,
            kind=kind_of(kind, show_as),
            caption=caption.strip()[:MOST_CAPTION],
        )

    async def enclose_image(self, agent: str, image: Image, name: str) -> SentFile:
        """Keep a picture that a tool gave; see the port."""
        kept = await self._keep(lambda take: take(image.content), agent)
        kind = media_type(kept.head)
        return SentFile(
            digest=kept.digest,
            name=shown_name(f"{name}{ENDINGS.get(kind, '')}", kind),
            media_type=kind,
            size=kept.size,
            kind=kind_of(kind),
        )

    async def _keep(
        self, fill: Callable[[Callable[[bytes], object]], object], agent: str
    ) -> Kept:
        try:
            kept = await self._blobs.keep(fill, agent)
        except BlobError as error:
            raise ToolError(f"the file is not sent: {error}") from error
        if not kept.size:
            raise ToolError("the file is not sent: it is empty")
        return kept


class SendFileTool(ArgumentsTool[SendFileArguments]):
    """Has a file of the agent's own folder go out with its answer."""

    def __init__(self, enclosures: WorkspaceEnclosures) -> None:
        self._enclosures = enclosures
        spec = ToolSpec(
            SEND_FILE,
            "Send a file of your own folder (a picture, a document, sound) to the"
            " chat. It goes out with your answer, as it is now; do not write where it"
            " lies.",
            schema_of(SendFileArguments),
            is_repeatable=True,
            is_own_words=True,
            effect="read",
        )
        super().__init__(spec, SendFileArguments, ToolError)

    async def answer(
        self, arguments: SendFileArguments, context: ToolContext
    ) -> ToolResult:
        """Copy the file; what cannot be sent is a result with `is_error`."""
        file = await self._enclosures.enclose(
            context.agent,
            arguments.path,
            show_as=arguments.show_as,
            caption=arguments.caption,
        )
        text = (
            f"{file.name} ({file.media_type}, {size_of(file.size)}) goes out with your"
            " answer."
        )
        return ToolResult(text, files=(file,))


def shown_name(name: str, kind: str) -> str:
    """Give a file's name as people see it: nothing invisible, no folder, not long.

    Args:
        name: as it stands in the folder.
        kind: its media type; a picture keeps an ending that says so.
    """
    clear = "".join(
        letter if letter.isprintable() and letter not in '/\\:*?"<>|' else "_"
        for letter in unicodedata.normalize("NFC", name)
        if unicodedata.category(letter) != "Cf"
    ).strip(" .")
    stem, dot, ending = clear.rpartition(".")
    if len(clear) > MOST_NAME:
        keeps = dot and len(ending) <= 16
        clear = f"{stem[: MOST_NAME - 1 - len(ending)]}.{ending}" if keeps else clear
    return clear[:MOST_NAME] or f"file{ENDINGS.get(kind, '')}"


def make_tool(parts: ToolParts) -> SendFileTool:
    """Make the tool; see `connectors/tools/registry.py`."""
    blobs = parts.blobs
    if blobs is None:
        config = parts.config
        blobs = BlobFolder(folder_of(config), config.files, parts.clock)
    return SendFileTool(WorkspaceEnclosures(parts.desks, blobs))
