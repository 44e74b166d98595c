"""Channels over HTTP, and who is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.web.eliza.asked import ChannelAsked, ChannelChange
from connectors.web.eliza.desk import gone, ok
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import ZERO, is_uuid, to_uuid
from connectors.web.eliza.server_routes import API, agent_of
from connectors.web.eliza.shapes import Channel, channel_shown

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.forgetting import Forgetting
    from connectors.web.eliza.history import History
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.shapes import Json, Message

ENOUGH_TO_NAME = 4
"""Messages that a channel needs before it is given a title."""

LONGEST_TITLE = 60

OLD_PLACES = ("channels", "central-channels")


class ChannelRoutes:
    """What is asked about channels.

    Args:
        channels: asked on the kernel's side only.
        history: what was said in them; likewise.
        forgetting: likewise.
    """

    def __init__(
        self, channels: Channels, history: History, forgetting: Forgetting
    ) -> None:
        self._channels = channels
        self._forgetting = forgetting
        self._history = history

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes, under each of their names."""
        found: list[BaseRoute] = [
            desk.route("GET", f"{API}/dm-channel", "write", self.direct)
        ]
        for place in OLD_PLACES:
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

    async def make(self, call: Call) -> Response:
        """Make a channel; who names nobody is in it alone."""
        asked = call.read(ChannelAsked)
        inside = asked.participant_central_user_ids
        channel = Channel(
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

    async def direct(self, call: Call) -> Response:
        """Give the channel of two."""
        pair = [call.query("currentUserId"), call.query("targetUserId")]
        if not all(is_uuid(each) for each in pair):
            raise wrong("two UUIDs are needed: currentUserId and targetUserId")
        one, other = (each.lower() for each in pair)
        server = call.query("dmServerId", ZERO).lower()
        call.author(one)
        found = await call.ask(self._channels.direct, call.caller, one, other, server)
        return ok(channel_shown(found))

    async def details(self, call: Call) -> Response:
        """Show a channel."""
        return ok(channel_shown(await self._channel(call)))

    async def participants(self, call: Call) -> Response:
        """List who is in a channel."""
        return ok(list((await self._channel(call)).participants))

    async def agents(self, call: Call) -> Response:
        """List who is in a channel, as the official server does: not agents alone."""
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

    async def seat(self, call: Call) -> Response:
        """Put an agent into a channel."""
        return await self._seat(call, agent_of(call), "added to", is_in=True)

    async def unseat(self, call: Call) -> Response:
        """Take an agent out of a channel."""
        agent_id = to_uuid(call.request.path_params["agent"])
        return await self._seat(call, agent_id, "removed from", is_in=False)

    async def change(self, call: Call) -> Response:
        """Change a channel."""
        asked = call.read(ChannelChange)

        async def change() -> Channel:
            return await self._channels.change(
                call.caller,
                call.id("channel"),
                name=asked.name,
                participants=asked.participant_central_user_ids,
                metadata=asked.metadata,
            )

        return ok(channel_shown(await call.ask(change)))

    async def drop(self, call: Call) -> Response:
        """Delete a channel; agents forget what was said there."""

        async def drop() -> None:
            channel = self._channels.channel(call.caller, call.id("channel"))
            await self._forgetting.clear_for_all(channel)
            await self._channels.drop(call.caller, channel.id)

        await call.ask(drop)
        return gone()

    async def title(self, call: Call) -> Response:
        """Name a channel by what was said first in it; no model is asked."""
        agent_of(call)
        channel = await self._channel(call)
        said = await call.ask(self._first, call.caller, channel.id)
        shown: Json = {"title": None, "channelId": channel.id}
        if len(said) < ENOUGH_TO_NAME:
            reason = f"fewer than {ENOUGH_TO_NAME} messages"
            return ok(shown | {"reason": reason})
        return ok(shown | {"title": title_of(said)})

    async def _channel(self, call: Call) -> Channel:
        return await call.look(self._channels.channel, call.caller, call.id("channel"))

    async def _first(self, caller: Caller, channel: str) -> tuple[Message, ...]:
        self._channels.channel(caller, channel)
        return await self._history.page(channel, limit=50)

    async def _seat(
        self, call: Call, agent_id: str, done: str, *, is_in: bool
    ) -> Response:
        async def seat() -> Channel:
            channel_id = call.id("channel")
            return await self._channels.seat(
                call.caller, channel_id, agent_id, is_in=is_in
            )

        channel = await call.ask(seat)
        told: Json = {"channelId": channel.id, "agentId": agent_id}
        text = f"Agent {done} the channel"
        return ok(told | {"message": text}, 201 if is_in else 200)


def title_of(said: tuple[Message, ...]) -> str | None:
    """Make a title out of the oldest of some messages; None: there are no words."""
    for message in reversed(said):
        line = " ".join(message.content.split())
        if line:
            cut = line[:LONGEST_TITLE]
            return cut if cut == line else f"{cut[:-1].rstrip()}…"
    return None
