"""A Discord in memory, on a real socket: requests and the gateway.

Written from the developers' reference; that discord.py itself logs in, listens and
speaks here is what every test with it shows.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.fakes.discord.files import MOST_UPLOAD, listed, read_message
from tests.fakes.discord.gateway import Gateway
from tests.fakes.discord.world import GUILD, Json, World

API = "/api/v10"
MESSAGE = r"/channels/(\d+)/messages/(\d+)"
REACTION = MESSAGE + r"/reactions/([^/]+)/@me"


@dataclass
class Fault:
    """What goes wrong with one request."""

    method: str
    path: str
    """A part of it."""

    status: int = 500
    body: str = "{}"
    headers: tuple[tuple[str, str], ...] = ()
    is_done: bool = False
    """Whether it is carried out all the same, and only the answer is lost."""

    is_reset: bool = False
    """Whether the connection is cut instead."""


class RefusedRequestError(Exception):
    """A request that Discord refuses."""

    def __init__(self, status: int, code: int, words: str) -> None:
        super().__init__(words)
        self.status, self.code = status, code


class DiscordServer:
    """The server; everything in it happens on the edge's loop."""

    def __init__(self) -> None:
        self.world = World()
        self.gateway = Gateway(self.world)
        self.faults: deque[Fault] = deque()
        self.asked: list[tuple[str, str]] = []
        """Method and path of each request."""

        self.bodies: list[Json] = []
        self.brought: dict[str, tuple[str, bytes]] = {}
        """By nonce: names and bytes of the files that bots sent."""

        self.url = ""
        self.guilds: list[Json] = [{"id": GUILD, "name": "Crew"}]
        self._runner: web.AppRunner | None = None
        self._routes: list[tuple[str, str, Callable[..., Awaitable[Any]]]] = [
            ("GET", r"/users/@me", self._me),
            ("GET", r"/users/@me/guilds", self._guilds),
            ("GET", r"/(?:oauth2/)?applications/@me", self._application),
            ("GET", r"/gateway/bot", self._limits),
            ("GET", r"/applications/(\d+)/commands", self._commands),
            ("PUT", r"/applications/(\d+)/commands", self._set_commands),
            ("GET", r"/channels/(\d+)", self._channel),
            ("POST", r"/channels/(\d+)/typing", self._type),
            ("GET", r"/channels/(\d+)/messages", self._history),
            ("POST", r"/channels/(\d+)/messages", self._post),
            ("PATCH", MESSAGE, self._edit),
            ("DELETE", MESSAGE, self._delete),
            ("PUT", REACTION, self._react),
            ("DELETE", REACTION, self._unreact),
            ("GET", r"/guilds/(\d+)/members/(\d+)", self._member),
            ("POST", r"/interactions/(\d+)/([^/]+)/callback", self._respond),
            ("PATCH", r"/webhooks/(\d+)/([^/]+)/messages/@original", self._amend),
            ("DELETE", r"/webhooks/(\d+)/([^/]+)/messages/@original", self._withdraw),
        ]

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/gateway", self.gateway.serve)
        app.router.add_get("/gateway/", self.gateway.serve)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_route("*", API + "/{rest:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self.gateway.url = f"ws://{host}:{port}/gateway"

    async def stop(self) -> None:
        """End."""
        await self.gateway.drop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def say(self, channel: str, author: str, said: str, **more: Any) -> str:
        """Have somebody say something; give its id."""
        message = self.world.add_message(channel, author, said, **more)
        await self.gateway.tell_message(message)
        return str(message["id"])

    async def choose(
        self, bot: str, channel: str, person: str, data: Mapping[str, Any]
    ) -> str:
        """Have somebody choose a command of a bot; give the token."""
        known = self.world.add_message(channel, person, "")["id"]
        self.world.messages[channel].pop()
        token = f"token-{known}"
        place = dict(self.world.channels[channel])
        if "recipients" in place:
            place["recipients"] = [
                {"discriminator": "0", "avatar": None, **self.world.users[person]}
            ]
        told: Json = {
            "id": known,
            "application_id": bot,
            "type": 2,
            "token": token,
            "version": 1,
            "channel_id": channel,
            "channel": place,
            "data": {"id": "1", "type": 1, **data},
            "entitlements": [],
            "authorizing_integration_owners": {},
            "attachment_size_limit": 1,
            "locale": "en-US",
        }
        user = {"discriminator": "0", "avatar": None, **self.world.users[person]}
        if "guild_id" in place:
            member = {**self.world.members[person], "user": user, "permissions": "0"}
            member |= {"joined_at": None, "deaf": False, "mute": False, "flags": 0}
            told |= {"guild_id": place["guild_id"], "member": member}
        else:
            told["user"] = user
        await self.gateway.of(bot).tell("INTERACTION_CREATE", told)
        return token

    async def _file(self, request: web.Request) -> web.Response:
        content = self.world.files.get(request.match_info["name"])
        if content is None:
            return web.Response(status=404)
        return web.Response(body=content, content_type="image/png")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix(API)
        self.asked.append((request.method, path))
        fault = self._fault(request.method, path)
        if fault is not None and not fault.is_done:
            return self._fail(request, fault)
        token = request.headers.get("Authorization", "").removeprefix("Bot ")
        bot = self.world.bots.get(token)
        if bot is None:
            return shown({"code": 0, "message": "401: Unauthorized"}, 401)
        try:
            answer = await self._answer(request, path, bot)
        except RefusedRequestError as error:
            said = {"code": error.code, "message": str(error)}
            return shown(said, error.status)
        if fault is not None:
            return self._fail(request, fault)
        return shown(answer) if answer is not None else web.Response(status=204)

    async def _answer(self, request: web.Request, path: str, bot: Json) -> Any:
        for method, pattern, answer in self._routes:
            match = re.fullmatch(pattern, path)
            if match is not None and method == request.method:
                return await answer(request, bot, *match.groups())
        raise RefusedRequestError(404, 0, "404: Not Found")

    def _fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.method == method and fault.path in path:
                self.faults.remove(fault)
                return fault
        return None

    def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.is_reset and request.transport is not None:
            request.transport.abort()
        return web.Response(
            status=fault.status,
            body=fault.body.encode(),
            headers={"Content-Type": "application/json", **dict(fault.headers)},
        )

    # ------------------------------------------------------------------ routes

    async def _me(self, _: web.Request, bot: Json) -> Json:
        return {"discriminator": "0", "avatar": None, "flags": 0, **bot}

    async def _guilds(self, _request: web.Request, _bot: Json) -> list[Json]:
        return self.guilds

    async def _application(self, _: web.Request, bot: Json) -> Json:
        flags = 1 << 19 if self.world.allowed[bot["id"]] else 0
        return {
            "id": bot["id"],
            "name": bot["username"],
            "icon": None,
            "flags": flags,
            "description": "",
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "",
            "summary": "",
            "owner": {**bot, "discriminator": "0", "avatar": None},
        }

    async def _limits(self, _request: web.Request, _bot: Json) -> Json:
        limit = {"total": 1000, "remaining": 1000 - self.gateway.identified}
        return {"url": self.gateway.url, "shards": 1, "session_start_limit": limit}

    async def _commands(self, _: web.Request, _bot: Json, app: str) -> list[Json]:
        return self.world.commands.get(app, [])

    async def _set_commands(
        self, request: web.Request, _: Json, app: str
    ) -> list[Json]:
        self.world.commands[app] = await request.json()
        return self.world.commands[app]

    async def _channel(self, _: web.Request, bot: Json, channel: str) -> Json:
        return self._place(bot, channel)

    async def _type(self, _: web.Request, bot: Json, channel: str) -> None:
        self._place(bot, channel)
        self.world.typing.append((channel, bot["username"]))

    async def _history(
        self, request: web.Request, bot: Json, channel: str
    ) -> list[Json]:
        self._place(bot, channel)
        limit = int(request.query.get("limit", "50"))
        before = int(request.query.get("before", str(1 << 63)))
        found = [m for m in self.world.messages[channel] if int(m["id"]) < before]
        return found[::-1][:limit]

    async def _post(self, request: web.Request, bot: Json, channel: str) -> Json:
        self._place(bot, channel)
        said = await self._said(request)
        known = self.world.nonces.get((bot["id"], said.get("nonce", "")))
        if known is not None and said.get("enforce_nonce"):
            return known
        more: Json = {}
        if "message_reference" in said:
            asked = said["message_reference"]["message_id"]
            there = [m for m in self.world.messages[channel] if m["id"] == asked]
            if there:
                reference = {"message_id": asked, "channel_id": channel}
                more = {"type": 19, "message_reference": reference}
                more["referenced_message"] = there[0]
        if said.get("attachments"):
            more["attachments"] = listed(said["attachments"])
        message = self.world.add_message(channel, bot["id"], said["content"], **more)
        self.world.nonces[bot["id"], said.get("nonce", "")] = message
        await self.gateway.tell_message(message)
        return message

    async def _edit(
        self, request: web.Request, bot: Json, channel: str, known: str
    ) -> Json:
        self._place(bot, channel)
        message = self._message(channel, known)
        if message["author"]["id"] != bot["id"]:
            words = "Cannot edit a message authored by another user"
            raise RefusedRequestError(403, 50005, words)
        said = await self._said(request)
        message |= {
            "content": said["content"],
            "edited_timestamp": message["timestamp"],
        }
        for session in self.gateway.sessions:
            await session.tell("MESSAGE_UPDATE", message)
        return message

    async def _delete(
        self, _: web.Request, _bot: Json, channel: str, known: str
    ) -> None:
        self.world.messages[channel].remove(self._message(channel, known))

    async def _react(
        self, _: web.Request, bot: Json, channel: str, known: str, sign: str
    ) -> None:
        self._message(channel, known)
        signs = self.world.signs.setdefault(known, [])
        if (bot["id"], sign) not in signs:
            signs.append((bot["id"], sign))

    async def _unreact(
        self, _: web.Request, bot: Json, channel: str, known: str, sign: str
    ) -> None:
        self._message(channel, known)
        signs = self.world.signs.get(known, [])
        if (bot["id"], sign) not in signs:
            raise RefusedRequestError(404, 10014, "Unknown Emoji")
        signs.remove((bot["id"], sign))

    async def _member(self, _: web.Request, _bot: Json, _guild: str, user: str) -> Json:
        if user not in self.world.members:
            raise RefusedRequestError(404, 10007, "Unknown Member")
        return {**self.world.members[user], "user": self.world.users[user]}

    async def _respond(
        self, request: web.Request, _: Json, _known: str, token: str
    ) -> None:
        self.world.answers[token] = await request.json()

    async def _amend(self, request: web.Request, bot: Json, _: str, token: str) -> Json:
        answer = self.world.answers.get(token)
        if answer is None:
            raise RefusedRequestError(404, 10015, "Unknown Webhook")
        answer["data"], brought = await read_message(request)
        for each in brought.items():
            self.brought[token] = each
        answer.setdefault("id", str(600_000_000_000_000_000 + len(self.world.answers)))
        return {"id": answer["id"], "author": bot, **answer["data"]}

    async def _withdraw(
        self, _: web.Request, _bot: Json, _app: str, token: str
    ) -> None:
        self.world.answers.pop(token, None)

    # ----------------------------------------------------------------- looking

    def _place(self, bot: Json, channel: str) -> Json:
        if channel not in self.world.channels:
            raise RefusedRequestError(404, 10003, "Unknown Channel")
        if not self.world.sees(bot["id"], channel):
            raise RefusedRequestError(403, 50001, "Missing Access")
        return self.world.channels[channel]

    def _message(self, channel: str, known: str) -> Json:
        for message in self.world.messages.get(channel, []):
            if message["id"] == known:
                return message
        raise RefusedRequestError(404, 10008, "Unknown Message")

    async def _said(self, request: web.Request) -> Json:
        said, brought = await read_message(request)
        if sum(map(len, brought.values())) > MOST_UPLOAD:
            raise RefusedRequestError(413, 40005, "Request entity too large")
        self.bodies.append(said)
        for each in brought.items():
            self.brought[said.get("nonce", "")] = each
        content = said.get("content", "")
        if (
            not (content.strip() or brought)
            or len(content) > 2000
            or len(said.get("nonce", "")) > 25
        ):
            raise RefusedRequestError(400, 50035, "Invalid Form Body")
        return said


def shown(answer: Any, status: int = 200) -> web.Response:
    """Write an answer; discord.py takes this content type only, as Discord has it."""
    body = json.dumps(answer).encode()
    return web.Response(
        status=status, body=body, headers={"Content-Type": "application/json"}
    )
