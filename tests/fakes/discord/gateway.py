"""The gateway of a Discord in memory: sessions that end, go on, and are replayed."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes.discord.world import GUILD, MESSAGE_CONTENT, Json, World

DISPATCH, HEARTBEAT, IDENTIFY, RESUME = 0, 1, 2, 6
RECONNECT, INVALID, HELLO, ACK = 7, 9, 10, 11


class Session:
    """One bot's session, with or without a connection."""

    def __init__(self, known: str, bot: Json, intents: int) -> None:
        self.id = known
        self.bot = bot
        self.intents = intents
        self.log: list[Json] = []
        self.socket: web.WebSocketResponse | None = None

    async def tell(self, kind: str, payload: Json) -> None:
        """Tell of something; kept, so that it can be told again."""
        event = {"op": DISPATCH, "t": kind, "s": len(self.log) + 1, "d": payload}
        self.log.append(event)
        await self.send(event)

    async def send(self, frame: Json) -> None:
        """Send a frame, if there is a connection."""
        if self.socket is not None and not self.socket.closed:
            await self.socket.send_str(json.dumps(frame))


class Gateway:
    """All sessions.

    Args:
        world: what is there.
        url: gives the gateway's own address.
    """

    heartbeat_ms = 41_250

    def __init__(self, world: World) -> None:
        self.world = world
        self.url = ""
        self.sessions: list[Session] = []
        self.identified = 0
        self.resumed = 0
        self.is_deaf = False
        """Whether it says nothing any more, though the connections stand."""

        self.refuses_with = 0
        """With which code whoever connects is sent away."""

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        hello = {
            "op": HELLO,
            "d": {"heartbeat_interval": self.heartbeat_ms},
            "t": None,
            "s": None,
        }
        await socket.send_str(json.dumps(hello))
        session: Session | None = None
        async for frame in socket:
            if frame.type is not WSMsgType.TEXT or self.is_deaf:
                continue
            said: Json = json.loads(frame.data)
            if said["op"] == HEARTBEAT:
                await socket.send_str(
                    json.dumps({"op": ACK, "d": None, "t": None, "s": None})
                )
            elif said["op"] == IDENTIFY:
                session = await self._identify(socket, said["d"])
            elif said["op"] == RESUME:
                session = await self._resume(socket, said["d"])
        if session is not None and session.socket is socket:
            session.socket = None
        return socket

    async def _identify(
        self, socket: web.WebSocketResponse, said: Json
    ) -> Session | None:
        bot = self.world.bots.get(said["token"])
        intents: int = said["intents"]
        self.identified += 1
        if bot is None or self.refuses_with:
            await socket.close(code=self.refuses_with or 4004)
            return None
        if intents & MESSAGE_CONTENT and not self.world.allowed[bot["id"]]:
            await socket.close(code=4014)
            return None
        self.sessions = [each for each in self.sessions if each.bot is not bot]
        session = Session(f"s{self.identified}", bot, intents)
        session.socket = socket
        self.sessions.append(session)
        ready = {
            "v": 10,
            "user": {"discriminator": "0", "avatar": None, **bot},
            "guilds": [{"id": GUILD, "unavailable": True}],
            "session_id": session.id,
            "resume_gateway_url": self.url,
            "application": {"id": bot["id"], "flags": 1 << 19},
        }
        await session.tell("READY", ready)
        await session.tell("GUILD_CREATE", self.world.guild_of(bot["id"]))
        return session

    async def _resume(
        self, socket: web.WebSocketResponse, said: Json
    ) -> Session | None:
        for session in self.sessions:
            if session.id == said["session_id"] and not self.refuses_with:
                self.resumed += 1
                session.socket = socket
                for event in session.log[said["seq"] :]:
                    await session.send(event)
                await session.tell("RESUMED", {})
                return session
        invalid: Json = {"op": INVALID, "d": False, "t": None, "s": None}
        await socket.send_str(json.dumps(invalid))
        return None

    def of(self, bot: str) -> Session:
        """Give the session of a bot, by its id."""
        return next(each for each in self.sessions if each.bot["id"] == bot)

    async def tell_message(self, message: Json) -> None:
        """Tell all who can read it of a message."""
        for session in self.sessions:
            bot = session.bot["id"]
            if self.world.sees(bot, message["channel_id"]):
                told = self.world.told(message, bot, session.intents)
                await session.tell("MESSAGE_CREATE", told)

    async def drop(self) -> None:
        """Cut all connections without a word."""
        for session in self.sessions:
            if session.socket is not None and session.socket._req is not None:
                transport = session.socket._req.transport
                if transport is not None:
                    transport.abort()
                session.socket = None

    async def close(self, code: int) -> None:
        """Close all connections with a code."""
        for session in self.sessions:
            if session.socket is not None:
                await session.socket.close(code=code)
                session.socket = None

    async def send_all(self, frame: Json) -> None:
        """Send a frame on all connections."""
        for session in self.sessions:
            await session.send(frame)

    async def send_raw(self, text: str) -> None:
        """Send anything on all connections."""
        for session in self.sessions:
            if session.socket is not None:
                await session.socket.send_str(text)

    async def reconnect(self) -> None:
        """Ask all to connect anew."""
        await self.send_all({"op": RECONNECT, "d": None, "t": None, "s": None})

    async def invalidate(self, *, is_resumable: bool) -> None:
        """End all sessions, or say that they may go on."""
        frame: dict[str, Any] = {"op": INVALID, "d": is_resumable, "t": None, "s": None}
        going = list(self.sessions)
        if not is_resumable:
            self.sessions = []
        for session in going:
            await session.send(frame)
