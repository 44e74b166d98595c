"""Files over HTTP: uploaded, given back, and shown to agents with a message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.responses import FileResponse

from actors.messages import Attachment
from connectors.web.eliza.desk import ok
from connectors.web.eliza.errors import full, missing
from connectors.web.eliza.forms import read_file
from connectors.web.eliza.ids import to_uuid
from connectors.web.eliza.server_routes import API
from connectors.web.eliza.uploads import OTHER, TYPES, FullError
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.shapes import Json
    from connectors.web.eliza.uploads import Uploads

HERE = "/media/uploads"

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
            desk.route("POST", channel, "write", self.to_channel, takes_files=True),
            desk.route("POST", agent, "write", self.to_agent, takes_files=True),
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
        ending = name.rpartition(".")[2]
        as_file = {"content-disposition": "attachment"} if ending == OTHER else {}
        return FileResponse(found, media_type=TYPES[ending], headers=SAFE | as_file)

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
        taken = await read_file(call, self._limit)
        name, kind, content = taken.name, taken.kind, taken.content
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
