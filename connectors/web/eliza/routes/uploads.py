"""Files over HTTP: uploaded, downloaded, and attached to messages for agents."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, Response

from connectors.web.eliza.errors import full, missing
from connectors.web.eliza.request import ElizaCall, ElizaRoutes, ok, read_file
from connectors.web.eliza.routes.channels import API
from connectors.web.eliza.services.uploads import HERE, OTHER, TYPES, FullError
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices
    from connectors.web.eliza.messages import Json

SAFE = {
    # Why: a stranger's file must not run as a page of this server.
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}


class UploadRoutes:
    """Routes of files."""

    def __init__(self, services: ElizaServices) -> None:
        self._uploads = services.uploads
        self._channels = services.channels
        self._limit = services.config.max_upload_bytes

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        channel = f"{API}/channels/{{channel}}/upload-media"
        agent = "/api/media/agents/{agent}/upload-media"
        file = f"{HERE}/{{place}}/{{owner}}/{{file}}"
        return [
            desk.route("POST", channel, "write", self.to_channel, takes_files=True),
            desk.route("POST", agent, "write", self.to_agent, takes_files=True),
            desk.route("GET", file, "read", self.give),
        ]

    async def to_channel(self, call: ElizaCall) -> Response:
        """Upload a file to a channel."""
        channel_id = call.id("channel")
        await call.look(self._channels.channel, call.caller, channel_id)
        return await self._take(call, "channels", channel_id)

    async def to_agent(self, call: ElizaCall) -> Response:
        """Upload a file for an agent."""
        agent_id = call.agent()
        await call.look(self._channels.need_agent, agent_id)
        return await self._take(call, "agents", agent_id)

    async def give(self, call: ElizaCall) -> Response:
        """Download a file."""
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

    async def _take(self, call: ElizaCall, place: str, owner: str) -> Response:
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
