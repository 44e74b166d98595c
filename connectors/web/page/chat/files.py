"""Files that agents send: in the chat, and their route.

A message's row describes its file; the bytes are in the folder of all sent files, and
are deleted from there after a while.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import FileResponse, Response

from actors.errors import DeliveryRefusedError
from actors.journal.attachments import SHOWN, size_of
from connectors.files.blobs import BlobFolder, bytes_of
from connectors.web.errors import ApiError
from connectors.web.page.chat.chats import find_chat, may_read
from connectors.web.page.guard import FILE_POLICY

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.routing import BaseRoute

    from actors.messages.inbound import SentFile
    from connectors.web.page.chat.hub import ChatParts
    from connectors.web.page.chat.messages import PageMessage
    from connectors.web.page.request import PageRoutes, PageVisit


FILES = "/files"
"""The path of files; the message's id follows."""


class FileView(msgspec.Struct, frozen=True):
    """A file, as the template `message.html` shows it."""

    path: str
    name: str
    size: str
    is_picture: bool
    """Whether it is shown in the chat; other files are links."""

    is_kept: bool
    """Whether its bytes are still kept."""


def file_view(message: PageMessage, blobs: BlobFolder | None) -> FileView | None:
    """Give the file of a message; None: it has none.

    Why no thread: it only checks whether a file exists on this machine.
    """
    file = message.file
    if file is None:
        return None
    return FileView(
        path=f"{FILES}/{message.id}",
        name=file.name,
        size=size_of(file.size),
        is_picture=is_picture(file),
        is_kept=kept_bytes(file, blobs) is not None,
    )


def is_picture(file: SentFile) -> bool:
    """Whether browsers show it as a picture: never a format that can have scripts."""
    return file.kind == "image" and file.media_type in SHOWN


def kept_bytes(file: SentFile, blobs: BlobFolder | None) -> Path | None:
    """Give the path of a file's bytes; None: they are not kept any more."""
    try:
        return bytes_of(blobs, file)
    except DeliveryRefusedError:
        return None


ANSWER = re.compile(r"a[0-9a-f]{24}")
"""The id of an agent's message; see `messages.answer_id`."""

UNSHOWN = "application/octet-stream"


class FileRoutes:
    """The route of all files."""

    def __init__(self, chat: ChatParts) -> None:
        self._chat = chat

    def routes(self, routes: PageRoutes) -> list[BaseRoute]:
        """Give it."""
        return [routes.closed("GET", f"{FILES}/{{message}}", self._give)]

    async def _give(self, visit: PageVisit) -> Response:
        file = await self._find(visit)
        path = await asyncio.to_thread(kept_bytes, file, self._chat.blobs)
        if path is None:
            text = f"the file {file.name} is not kept any more; ask for it again"
            raise ApiError(410, text, code="file_gone")
        shows = is_picture(file)
        return FileResponse(
            path,
            headers={"content-security-policy": FILE_POLICY},
            # Other files get no media type that a browser could run or draw.
            media_type=file.media_type if shows else UNSHOWN,
            filename=file.name.replace("/", "_"),  # other characters are quoted
            content_disposition_type="inline" if shows else "attachment",
        )

    async def _find(self, visit: PageVisit) -> SentFile:
        """Find the file of a message.

        Raises:
            ApiError: 404: none, or the person may not read its chat.
        """
        name = str(visit.request.path_params["message"])
        if ANSWER.fullmatch(name):
            said = await visit.ask(self._chat.talk.history.get, name)
            if said is not None and said.file is not None and not said.is_gone:
                config, agents = visit.front.config, self._chat.agents()
                place = find_chat(said.chat, config, agents)
                if place is not None and may_read(visit.person, place):
                    return said.file
        text = "there is no such file; what was said may be forgotten by now"
        raise ApiError(404, text, code="no_file")
