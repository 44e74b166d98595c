"""The tool `send_file`, the copies of what agents send, and pictures that a turn made.

A path is read by the same rules as for `read_file`: inside the agent's own folder,
never through a link, a plain file with one name. The copy is of the file as it is then.

Pictures are found by comparing the agent's folder before and after the turn. All
conversations of the agent share the folder: if another turn ran meanwhile, a picture
may belong to either, so it is not sent.
"""

from __future__ import annotations

import unicodedata
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import trio

from actors.errors import ToolError
from actors.journal.attachments import kind_of, size_of
from actors.messages.inbound import Image, SentFile, ToolContext, ToolResult, ToolSpec
from actors.rules.prompt.transcript import SEND_FILE
from connectors.fetch.media_types import media_type
from connectors.files.blobs import BlobError, BlobFolder, Kept, folder_of
from connectors.tools.arguments import ArgumentsTool, schema_of
from connectors.tools.workspace.files import Desks, FilePath, file_names
from connectors.tools.workspace.workspace import WorkspaceError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from connectors.tools.registry import ToolParts
    from connectors.tools.workspace.workspace import Mark, Workspace


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
            kept = await self._keep(partial(workspace.copy, names))
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

    async def enclose_image(self, image: Image, name: str) -> SentFile:
        """Keep a picture that a tool gave; see the port."""
        kept = await self._keep(lambda take: take(image.content))
        kind = media_type(kept.head)
        return SentFile(
            digest=kept.digest,
            name=shown_name(f"{name}{ENDINGS.get(kind, '')}", kind),
            media_type=kind,
            size=kept.size,
            kind=kind_of(kind),
        )

    async def _keep(self, fill: Callable[[Callable[[bytes], object]], object]) -> Kept:
        try:
            kept = await self._blobs.keep(fill)
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
