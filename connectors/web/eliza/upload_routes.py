"""Files over HTTP: uploaded, given back, and shown to agents with a message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import FileResponse

from actors.messages import Attachment
from connectors.web.eliza.desk import ok
from connectors.web.eliza.errors import full, missing, wrong
from connectors.web.eliza.ids import to_uuid
from connectors.web.eliza.server_routes import API
from connectors.web.eliza.uploads import KINDS, TYPES, FullError
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.shapes import Json
    from connectors.web.eliza.uploads import Uploads

HERE = "/media/uploads"

FORM = 65_536
"""Bytes of a form beside its file."""

# Chosen: as many and as large as chat platforms let agents have.
MOST_SHOWN = 4
LARGEST_SHOWN = 10_485_760

SAFE = {
    # Why: what a stranger uploaded is never run as a page of this server.
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}


class UploadRoutes:
    """What is asked about files.

    Args:
        uploads: keeps them; called in threads.
        channels: asked on the kernel's side only.
        limit: bytes of one file.
    """

    def __init__(self, uploads: Uploads, channels: Channels, limit: int) -> None:
        self._uploads = uploads
        self._channels = channels
        self._limit = limit

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes."""
        channel = f"{API}/channels/{{channel}}/upload-media"
        agent = "/api/media/agents/{agent}/upload-media"
        file = f"{HERE}/{{place}}/{{owner}}/{{file}}"
        return [
            desk.route("POST", channel, "write", self.to_channel),
            desk.route("POST", agent, "write", self.to_agent),
            desk.route("GET", file, "read", self.give),
        ]

    async def to_channel(self, call: Call) -> Response:
        """Take a file for a channel."""
        channel_id = call.id("channel")
        await call.look(self._channels.channel, call.caller, channel_id)
        return await self._take(call, "channels", channel_id)

    async def to_agent(self, call: Call) -> Response:
        """Take a file for an agent."""
        agent_id = to_uuid(call.request.path_params["agent"])
        await call.look(self._channels.need_agent, agent_id)
        return await self._take(call, "agents", agent_id)

    async def give(self, call: Call) -> Response:
        """Give a file back."""
        place: str = call.request.path_params["place"]
        name: str = call.request.path_params["file"]
        owner = call.id("owner")
        if place == "channels":
            await call.look(self._channels.channel, call.caller, owner)
        found = await asyncio.to_thread(self._uploads.find, place, owner, name)
        if found is None:
            raise missing("file", name)
        kind = TYPES[name.rpartition(".")[2]]
        return FileResponse(found, media_type=kind, headers=SAFE)

    async def shown(self, channel: str, metadata: Json) -> tuple[Attachment, ...]:
        """Give the files of a channel that a message names; others are only links."""
        try:
            named = msgspec.convert(metadata.get("attachments", []), list[Named])
        except msgspec.ValidationError:
            return ()
        found: list[Attachment] = []
        start = f"{HERE}/channels/{channel}/"
        for each in named[:MOST_SHOWN]:
            if not each.url.startswith(start):
                continue
            name = each.url.removeprefix(start)
            path = self._uploads.find("channels", channel, name)
            if path is not None:
                read = await asyncio.to_thread(attached, path, each.title or name)
                found += read
        return tuple(found)

    async def _take(self, call: Call, place: str, owner: str) -> Response:
        if not self._limit:
            raise ApiError(403, "no uploads here", code="uploads_disabled")
        name, kind, content = await self._read(call)
        now = int(call.front.clock.wall() * 1000)
        save = self._uploads.save
        try:
            kept = await asyncio.to_thread(save, place, owner, kind, content, now)
        except FullError as error:
            raise full(str(error)) from error
        except OSError as error:
            text = f"the file was not kept: {error.strerror}"
            raise ApiError(503, text, code="unavailable", retry_after=5.0) from error
        shown: Json = {
            "url": f"{HERE}/{place}/{owner}/{kept}",
            "type": kind,
            "filename": kept,
            "originalName": name,
            "size": len(content),
        }
        return ok(shown)

    async def _read(self, call: Call) -> tuple[str, str, bytes]:
        """Read the form's file: its name, its kind and what is in it.

        Raises:
            ApiError: there is none, it is too long, too slow, or of another kind.
        """
        request, settings = call.request, call.front.settings
        media = request.headers.get("content-type", "").partition(";")[0].lower()
        if media != "multipart/form-data":
            text = "send the file as multipart/form-data, in the field 'file'"
            raise ApiError(400, text, code="invalid_content_type")
        stream = limited(request, self._limit + FORM)
        parser = MultiPartParser(request.headers, stream, max_files=1, max_fields=8)
        try:
            async with asyncio.timeout(settings.body_timeout):
                form = await parser.parse()
        except TimeoutError:
            text = f"the file did not come within {settings.body_timeout:g} s"
            raise ApiError(408, text, code="body_timeout") from None
        except MultiPartException as error:
            raise wrong(f"no form: {error.message}") from error
        try:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise wrong("is missing", "file")
            content = await file.read()
        finally:
            await form.close()
        name, kind = file.filename or "file", file.content_type or ""
        kind = kind.partition(";")[0].strip().lower()
        if ".." in name or "/" in name or "\\" in name:
            raise wrong("has a path in its name", "file")
        if kind not in KINDS:
            raise wrong(f"of the type {kind or 'unknown'!r} is not taken", "file")
        if len(content) > self._limit:
            raise too_long(self._limit)
        return name, kind, content


class Named(msgspec.Struct, frozen=True):
    """A file that a message names."""

    url: str = ""
    title: str = ""


def attached(path: Path, name: str) -> tuple[Attachment, ...]:
    """Read a file for agents; one that is too long is left out."""
    if path.stat().st_size > LARGEST_SHOWN:
        return ()
    media_type = TYPES[path.suffix[1:]]
    first = media_type.partition("/")[0]
    kind: Literal["image", "audio", "document"] = "document"
    if first == "image":
        kind = "image"
    elif first == "audio":
        kind = "audio"
    return (Attachment(kind, name, media_type, content=path.read_bytes()),)


async def limited(request: Request, limit: int) -> AsyncGenerator[bytes]:
    """Give a body piece by piece, as far as it may go.

    Raises:
        ApiError: 413.
    """
    count = 0
    async for part in request.stream():
        count += len(part)
        if count > limit:
            raise too_long(limit)
        yield part


def too_long(limit: int) -> ApiError:
    """Make the error for a file that is too long."""
    text = f"the file is longer than {limit} bytes"
    return ApiError(413, text, code="file_too_large")
