"""Files that agents and people send, and long texts: in the chat, and their routes.

A message's row describes its files; the bytes are in the folder of all sent files, and
are deleted from there after a while. A person's file is uploaded first, and kept in
memory until the message that names it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import FileResponse, Response

from actors.errors import DeliveryRefusedError
from actors.journal.attachments import SHOWN, size_of
from connectors.files.blobs import BlobFolder, bytes_of
from connectors.web.page.chat.chats import find_chat, may_read
from connectors.web.page.login_rows import new_token
from connectors.web.page.logins import FILE_POLICY
from connectors.web.request import read_body
from connectors.web.server import ApiError

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.routing import BaseRoute

    from actors.messages.inbound import SentFile
    from connectors.web.page.chat.hub import ChatParts
    from connectors.web.page.chat.messages import PageMessage
    from connectors.web.page.request import PageRoutes, PageVisit


FILES = "/files"
"""The path of files; the message's id follows."""

TEXTS = "/texts"
"""The path of texts that a chat shows the beginning of; likewise."""

JSON = "application/json"


class FileView(msgspec.Struct, frozen=True):
    """A file, as the template `message.html` shows it."""

    path: str
    name: str
    size: str
    kind: str
    """`image`, `audio` or `video`: it is shown in the chat; others are links."""

    is_kept: bool
    """Whether its bytes are still kept."""


def file_view(
    message: str, index: int, file: SentFile, blobs: BlobFolder | None
) -> FileView:
    """Describe a file of a message.

    Why no thread: it only checks whether a file exists on this machine.
    """
    return FileView(
        path=f"{FILES}/{message}" + (f"/{index}" if index else ""),
        name=file.name,
        size=size_of(file.size),
        kind=shown_as(file),
        is_kept=kept_bytes(file, blobs) is not None,
    )


PLAYED = {
    "audio": frozenset({"audio/mpeg", "audio/ogg", "audio/wav", "audio/flac"}),
    "video": frozenset({"video/mp4", "video/webm"}),
}
"""Media types that browsers play; detected from the bytes. None can hold scripts."""


def shown_as(file: SentFile) -> str:
    """Say as what a file is shown in the chat; empty: it is a link."""
    if is_picture(file):
        return "image"
    played = (kind for kind, types in PLAYED.items() if file.media_type in types)
    return next(played, "")


def is_picture(file: SentFile) -> bool:
    """Whether browsers show it as a picture: never a format that can have scripts."""
    return file.kind == "image" and file.media_type in SHOWN


def kept_bytes(file: SentFile, blobs: BlobFolder | None) -> Path | None:
    """Give the path of a file's bytes; None: they are not kept any more."""
    try:
        return bytes_of(blobs, file)
    except DeliveryRefusedError:
        return None


MESSAGE = re.compile(r"[ap][0-9a-f]{24}")
"""The id of a message; see `messages.answer_id` and `messages.own_id`."""

UNSHOWN = "application/octet-stream"

MOST_SHELVED = 64 * 1_048_576
"""Bytes of uploads that wait for their message, of all people together."""

MOST_FILES = 10
"""Files of one message."""

LONGEST_NAME = 200


class PageUpload(msgspec.Struct, frozen=True):
    """A file that somebody is about to send."""

    person: str
    name: str
    declared: str
    """Its media type as the browser says; not trusted."""

    content: bytes


class UploadShelf:
    """Uploads that wait for their message; on the edge's loop.

    Bounded: of too many bytes the oldest go. They stay until then, so that a message
    that is sent again after an error has its files.
    """

    def __init__(self) -> None:
        self._uploads: dict[str, PageUpload] = {}

    def put(self, token: str, upload: PageUpload) -> None:
        """Keep an upload."""
        self._uploads[token] = upload
        while self._bytes() > MOST_SHELVED and len(self._uploads) > 1:
            del self._uploads[next(iter(self._uploads))]

    def find(self, person: str, tokens: list[str]) -> tuple[PageUpload, ...]:
        """Give a person's uploads.

        Raises:
            ApiError: 400: there are too many; 410: one is not there any more.
        """
        if len(tokens) > MOST_FILES:
            text = f"{MOST_FILES} files are sent at once, no more"
            raise ApiError(400, text, code="too_many_files")
        found = [self._uploads.get(each) for each in tokens]
        kept = tuple(x for x in found if x is not None and x.person == person)
        if len(kept) < len(tokens):
            text = "a file is not kept any more; add it again"
            raise ApiError(410, text, code="file_gone")
        return kept

    def _bytes(self) -> int:
        return sum(len(each.content) for each in self._uploads.values())


class FileRoutes:
    """The routes of files: those in chats, and those that people are about to send."""

    def __init__(self, chat: ChatParts) -> None:
        self._chat = chat

    def routes(self, routes: PageRoutes) -> list[BaseRoute]:
        """Give them."""
        return [
            routes.closed("GET", f"{FILES}/{{message}}", self._give),
            routes.closed("GET", f"{FILES}/{{message}}/{{index:int}}", self._give),
            routes.closed("GET", f"{TEXTS}/{{message}}", self._tell_whole),
            routes.upload("/uploads", self._take),
        ]

    async def _take(self, visit: PageVisit) -> Response:
        """Keep a file until its message comes; the body is the file."""
        request, settings = visit.request, visit.front.settings
        declared = request.headers.get("content-type", "").partition(";")[0]
        declared = declared.strip().lower()
        limit = visit.front.config.max_file_bytes
        settings = msgspec.structs.replace(settings, max_body_bytes=limit)
        content = await read_body(request, settings, (declared,))
        if not content:
            raise ApiError(400, "this file is empty", code="empty_file")
        said = request.query_params.get("name", "")
        name = "".join(x if x.isprintable() else "_" for x in said)[:LONGEST_NAME]
        token = new_token(secrets.token_bytes(16))
        upload = PageUpload(visit.person, name or "file", declared, content)
        self._chat.shelf.put(token, upload)
        return Response(
            msgspec.json.encode({"token": token}), status_code=201, media_type=JSON
        )

    async def _give(self, visit: PageVisit) -> Response:
        file = await self._find(visit)
        path = await asyncio.to_thread(kept_bytes, file, self._chat.blobs)
        if path is None:
            text = f"the file {file.name} is not kept any more; ask for it again"
            raise ApiError(410, text, code="file_gone")
        shows = bool(shown_as(file))
        return FileResponse(
            path,
            headers={"content-security-policy": FILE_POLICY},
            # Other files get no media type that a browser could run or draw.
            media_type=file.media_type if shows else UNSHOWN,
            filename=file.name.replace("/", "_"),  # other characters are quoted
            content_disposition_type="inline" if shows else "attachment",
        )

    async def _find(self, visit: PageVisit) -> SentFile:
        """Find a file of a message."""
        named = visit.request.path_params
        index = int(named.get("index", 0))
        said = await self._said(visit)
        if said is not None:
            own = () if said.file is None else (said.file,)
            files: tuple[SentFile, ...] = (*own, *said.files)
            if index < len(files):
                return files[index]
        text = "there is no such file; what was said may be forgotten by now"
        raise ApiError(404, text, code="no_file")

    async def _said(self, visit: PageVisit) -> PageMessage | None:
        """Find the message that a path names; None: none, or it may not be read."""
        name = str(visit.request.path_params["message"])
        if not MESSAGE.fullmatch(name):
            return None
        said = await visit.ask(self._chat.talk.history.get, name)
        if said is None or said.is_gone:
            return None
        place = find_chat(said.chat, visit.front.config, self._chat.agents())
        return said if place is not None and may_read(visit.person, place) else None

    async def _tell_whole(self, visit: PageVisit) -> Response:
        """Give the whole text of a message, as it is."""
        said = await self._said(visit)
        if said is None:
            text = "there is no such message; what was said may be forgotten by now"
            raise ApiError(404, text, code="no_message")
        headers = {"content-security-policy": FILE_POLICY}
        content = said.text.encode("utf-8", "replace")
        return Response(
            content, headers=headers, media_type="text/plain; charset=utf-8"
        )
