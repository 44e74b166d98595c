"""Servers and channels over HTTP, the agents and people in them, and their files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, Response

from connectors.web.eliza.messages import (
    ZERO,
    ElizaChannel,
    ElizaMessage,
    ElizaServer,
    Json,
    channel_shown,
    full,
    is_uuid,
    missing,
    server_shown,
    wrong,
)
from connectors.web.eliza.request import (
    AgentBody,
    ChannelBody,
    ChannelPatch,
    ElizaCall,
    ElizaRoutes,
    ServerBody,
    SyncChannelsBody,
    SyncedChannel,
    gone,
    ok,
    read_body_as,
    read_file,
)
from connectors.web.eliza.services.uploads import HERE, OTHER, TYPES, FullError
from connectors.web.server import ApiError

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices
    from connectors.web.eliza.keys import ApiCaller

API = "/api/messaging"

SERVER_PATHS = ("message-servers", "central-servers", "servers")
"""Names of servers in paths; the last two are of earlier releases."""


class ServerRoutes:
    """Routes of servers."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes, under each of their names."""
        found: list[BaseRoute] = [
            desk.route("GET", f"{API}/message-server/current", "read", self.current),
            desk.route(
                "GET", f"{API}/agents/{{agent}}/message-servers", "read", self.of_agent
            ),
            desk.route("GET", f"{API}/agents/{{agent}}/servers", "read", self.of_agent),
        ]
        for place in SERVER_PATHS:
            one = f"{API}/{place}/{{server}}"
            agent = f"{one}/agents/{{agent}}"
            found += [
                desk.route("GET", f"{API}/{place}", "read", self.all),
                desk.route("POST", f"{API}/{place}", "manage", self.make),
                desk.route("DELETE", one, "manage", self.drop),
                desk.route("GET", f"{one}/channels", "read", self.channels),
                desk.route("POST", f"{one}/sync-channels", "manage", self.sync),
                desk.route("GET", f"{one}/agents", "read", self.agents),
                desk.route("POST", f"{one}/agents", "manage", self.seat),
                desk.route("DELETE", agent, "manage", self.unseat),
            ]
        return found

    async def current(self, _call: ElizaCall) -> Response:
        """Give the id of the default server."""
        return ok({"messageServerId": ZERO, "serverId": ZERO})

    async def all(self, call: ElizaCall) -> Response:
        """List servers."""
        servers = await call.look(self._channels.servers)
        shown = [server_shown(each) for each in servers]
        return ok({"messageServers": shown, "servers": shown})

    async def make(self, call: ElizaCall) -> Response:
        """Create a server."""
        asked = call.read(ServerBody)
        server = ElizaServer(
            id="",
            name=asked.name,
            source_type=asked.source_type,
            source_id=asked.source_id or "",
            metadata=asked.metadata or {},
        )
        made = await call.ask(self._channels.make_server, server)
        shown = server_shown(made)
        # Why both: the client reads the server itself, the official answer wraps it.
        return ok(shown | {"server": shown}, 201)

    async def drop(self, call: ElizaCall) -> Response:
        """Delete a server with its channels."""
        await call.ask(self._channels.drop_server, call.caller, call.id("server"))
        return gone()

    async def channels(self, call: ElizaCall) -> Response:
        """List the channels of a server."""
        found = await call.look(
            self._channels.of_server, call.caller, call.id("server")
        )
        return ok({"channels": [channel_shown(each) for each in found]})

    async def sync(self, call: ElizaCall) -> Response:
        """Create the channels of another platform that this server does not have."""
        asked = call.read(SyncChannelsBody)
        made = await call.ask(
            self._sync, call.caller, call.id("server"), asked.channels
        )
        return ok({"channels": [channel_shown(each) for each in made]})

    async def agents(self, call: ElizaCall) -> Response:
        """List the agents of a server."""
        server = await call.look(self._channels.server, call.id("server"))
        shown: Json = {"messageServerId": server.id, "serverId": server.id}
        return ok(shown | {"agents": list(server.agents)})

    async def seat(self, call: ElizaCall) -> Response:
        """Add an agent to a server."""
        return await self._seat(call, agent_of(call), "added to", is_in=True)

    async def unseat(self, call: ElizaCall) -> Response:
        """Remove an agent from a server."""
        agent_id = call.agent()
        return await self._seat(call, agent_id, "removed from", is_in=False)

    async def of_agent(self, call: ElizaCall) -> Response:
        """List the servers of an agent."""
        agent_id = call.agent()
        servers = await call.look(self._channels.servers)
        found = [each.id for each in servers if agent_id in each.agents]
        return ok({"agentId": agent_id, "messageServers": found, "servers": found})

    async def _seat(
        self, call: ElizaCall, agent_id: str, done: str, *, is_in: bool
    ) -> Response:
        async def seat() -> ElizaServer:
            server_id = call.id("server")
            return await self._channels.seat_agent(
                call.caller, server_id, agent_id, is_in=is_in
            )

        server = await call.ask(seat)
        told: Json = {"messageServerId": server.id, "serverId": server.id}
        text = f"Agent {done} the server"
        return ok(told | {"agentId": agent_id, "message": text}, 201 if is_in else 200)

    async def _sync(
        self, caller: ApiCaller, server_id: str, asked: tuple[SyncedChannel, ...]
    ) -> list[ElizaChannel]:
        there = {
            each.source_id or each.name: each
            for each in self._channels.of_server(caller, server_id)
        }
        found: list[ElizaChannel] = []
        for each in asked:
            key = each.source_id or each.name
            if key not in there:
                made = ElizaChannel(
                    id="",
                    server=server_id,
                    name=each.name,
                    type=each.type,
                    source_id=each.source_id,
                    source_type=each.source_type,
                )
                there[key] = await self._channels.make(caller, made)
            found.append(there[key])
        return found


def agent_of(call: ElizaCall) -> str:
    """Give the id of the agent in a body.

    Raises:
        ApiError: 400: it is missing.
    """
    asked = read_body_as(call.body, AgentBody)
    if not asked.agent_id:
        raise wrong("is missing", "agentId")
    return call.front.agents().id(asked.agent_id)


ENOUGH_TO_NAME = 4
"""Messages that a channel needs before it gets a title."""

LONGEST_TITLE = 60

CHANNEL_PATHS = ("channels", "central-channels")


class ChannelRoutes:
    """Routes of channels."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels
        self._editor = services.memory_editor
        self._history = services.history

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes, under each of their names."""
        found: list[BaseRoute] = [
            desk.route("GET", f"{API}/dm-channel", "write", self.direct)
        ]
        for place in CHANNEL_PATHS:
            one = f"{API}/{place}/{{channel}}"
            agent = f"{one}/agents/{{agent}}"
            found += [
                desk.route("POST", f"{API}/{place}", "manage", self.make),
                desk.route("GET", f"{one}/details", "read", self.details),
                desk.route("GET", one, "read", self.details),
                desk.route("PATCH", one, "manage", self.change),
                desk.route("DELETE", one, "manage", self.drop),
                desk.route("GET", f"{one}/participants", "read", self.participants),
                desk.route("GET", f"{one}/agents", "read", self.agents),
                desk.route("POST", f"{one}/agents", "manage", self.seat),
                desk.route("DELETE", agent, "manage", self.unseat),
                desk.route("POST", f"{one}/generate-title", "manage", self.title),
            ]
        return found

    async def make(self, call: ElizaCall) -> Response:
        """Create a channel; without participants, its author is in it alone."""
        asked = call.read(ChannelBody)
        inside = asked.participant_central_user_ids
        channel = ElizaChannel(
            id="",
            server=asked.message_server_id.lower(),
            name=asked.name,
            type=asked.type or "GROUP",
            source_type=asked.source_type,
            source_id=asked.source_id or "",
            topic=asked.topic or "",
            metadata=asked.metadata or {},
            participants=(call.author(None),) if inside is None else inside,
        )
        made = await call.ask(self._channels.make, call.caller, channel)
        return ok(channel_shown(made), 201)

    async def direct(self, call: ElizaCall) -> Response:
        """Give the direct channel of two participants."""
        pair = [call.query("currentUserId"), call.query("targetUserId")]
        if not all(is_uuid(each) for each in pair):
            raise wrong("two UUIDs are needed: currentUserId and targetUserId")
        one, other = (each.lower() for each in pair)
        server = call.query("dmServerId", ZERO).lower()
        call.author(one)
        found = await call.ask(self._channels.direct, call.caller, one, other, server)
        return ok(channel_shown(found))

    async def details(self, call: ElizaCall) -> Response:
        """Show a channel."""
        return ok(channel_shown(await self._channel(call)))

    async def participants(self, call: ElizaCall) -> Response:
        """List the participants of a channel."""
        return ok(list((await self._channel(call)).participants))

    async def agents(self, call: ElizaCall) -> Response:
        """List the participants and, among them, the agents of a channel."""
        channel = await self._channel(call)
        inside = list(channel.participants)
        agents = self._channels.agents.all()
        return ok(
            {
                "channelId": channel.id,
                "participants": inside,
                "agents": [each for each in inside if each in agents],
            }
        )

    async def seat(self, call: ElizaCall) -> Response:
        """Add an agent to a channel."""
        return await self._seat(call, agent_of(call), "added to", is_in=True)

    async def unseat(self, call: ElizaCall) -> Response:
        """Remove an agent from a channel."""
        agent_id = call.agent()
        return await self._seat(call, agent_id, "removed from", is_in=False)

    async def change(self, call: ElizaCall) -> Response:
        """Change a channel."""
        asked = call.read(ChannelPatch)

        async def change() -> ElizaChannel:
            return await self._channels.change(
                call.caller,
                call.id("channel"),
                name=asked.name,
                participants=asked.participant_central_user_ids,
                metadata=asked.metadata,
            )

        return ok(channel_shown(await call.ask(change)))

    async def drop(self, call: ElizaCall) -> Response:
        """Delete a channel; agents forget it."""

        async def drop() -> None:
            channel = self._channels.channel(call.caller, call.id("channel"))
            await self._editor.clear_for_all(channel)
            await self._channels.drop(call.caller, channel.id)

        await call.ask(drop)
        return gone()

    async def title(self, call: ElizaCall) -> Response:
        """Suggest a title from the first messages of a channel, without a model."""
        agent_of(call)
        channel = await self._channel(call)
        said = await call.ask(self._first, call.caller, channel.id)
        shown: Json = {"title": None, "channelId": channel.id}
        if len(said) < ENOUGH_TO_NAME:
            reason = f"fewer than {ENOUGH_TO_NAME} messages"
            return ok(shown | {"reason": reason})
        return ok(shown | {"title": title_of(said)})

    async def _channel(self, call: ElizaCall) -> ElizaChannel:
        return await call.look(self._channels.channel, call.caller, call.id("channel"))

    async def _first(self, caller: ApiCaller, channel: str) -> tuple[ElizaMessage, ...]:
        self._channels.channel(caller, channel)
        return await self._history.page(channel, limit=50)

    async def _seat(
        self, call: ElizaCall, agent_id: str, done: str, *, is_in: bool
    ) -> Response:
        async def seat() -> ElizaChannel:
            channel_id = call.id("channel")
            return await self._channels.seat(
                call.caller, channel_id, agent_id, is_in=is_in
            )

        channel = await call.ask(seat)
        told: Json = {"channelId": channel.id, "agentId": agent_id}
        text = f"Agent {done} the channel"
        return ok(told | {"message": text}, 201 if is_in else 200)


def title_of(said: tuple[ElizaMessage, ...]) -> str | None:
    """Make a title from the oldest message with words; None: none has any."""
    for message in reversed(said):
        line = " ".join(message.content.split())
        if line:
            cut = line[:LONGEST_TITLE]
            return cut if cut == line else f"{cut[:-1].rstrip()}…"
    return None


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
