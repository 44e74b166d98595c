"""A `FakeSlack` on a real socket, for whoever speaks HTTP and websockets to it.

Lives on the bridge's loop with aiohttp. slack_sdk's own clients check it.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  it lives on the bridge's loop
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import WSMsgType, web

from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.slack.sdk import form as as_form
from tests.fakes.slack.replies import Reply
from tests.fakes.slack.workspace import FakeSlack, Link

MOST_BYTES = 4_000_000


class SlackServer:
    """The server; only touched on the edge's loop, but for `url`.

    Args:
        slack: the workspace.
    """

    def __init__(self, slack: FakeSlack) -> None:
        self.slack = slack
        self.url = ""
        self.answers_pings = True
        self._sockets: list[web.WebSocketResponse] = []
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_post("/api/{method}", self._call)
        app.router.add_get("/link/{ticket}", self._link)
        app.router.add_get("/files/{name}", self._file)
        app.router.add_post("/upload/{file}", self._take)
        app.router.add_post("/respond/{name}", self._respond)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self.slack.uploads.base = f"{self.url}/upload"

    async def stop(self) -> None:
        """Close everything."""
        await self.drop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def drop(self) -> None:
        """End all connections of Socket Mode."""
        for each in self._sockets:
            await each.close()

    async def _call(self, request: web.Request) -> web.Response:
        # Slack takes either; what slack_sdk sends as JSON, we read as a form.
        is_json = request.content_type == "application/json"
        said = await (request.json() if is_json else request.post())
        form = as_form({**request.query, **said})
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        method = request.match_info["method"]
        try:
            reply = self.slack.answer(method, token, form)
        except ConnectionResetError:
            if request.transport is not None:
                request.transport.abort()
            raise
        if method == "apps.connections.open" and reply.said.get("ok"):
            ticket = str(reply.said["url"]).rpartition("/")[2]
            link = f"{self.url.replace('http', 'ws', 1)}/link/{ticket}"
            reply = Reply(200, {**reply.said, "url": link})
        return web.json_response(
            reply.said, status=reply.status, headers=dict(reply.headers)
        )

    async def _link(self, request: web.Request) -> web.StreamResponse:
        link = self.slack.connect(request.match_info["ticket"])
        if link is None:
            return web.Response(status=404)
        socket = web.WebSocketResponse(autoping=self.answers_pings)
        await socket.prepare(request)
        self._sockets.append(socket)
        await self._speak(socket, link)
        return socket

    async def _speak(self, socket: web.WebSocketResponse, link: Link) -> None:
        """Carry what is said, both ways, until one side ends."""

        async def flush() -> None:
            while link.queue and not socket.closed:
                said = link.queue.popleft()
                if isinstance(said, Exception):
                    await socket.close()
                else:
                    await socket.send_str(said)

        loop = asyncio.get_running_loop()
        link.on_news = lambda: loop.create_task(flush())
        await flush()
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self.slack.take(link, message.data)
        if link in link.app.links:
            link.app.links.remove(link)

    async def _take(self, request: web.Request) -> web.Response:
        # Slack gives such an address to whom it trusts: no token is to come with it.
        assert "Authorization" not in request.headers
        content = await request.read()
        status = self.slack.uploads.take(request.match_info["file"], content)
        return web.Response(status=status, text=f"OK - {len(content)}")

    async def _respond(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers
        status = self.slack.respond(str(request.url), await request.json())
        return web.Response(status=status, text="ok")

    async def _file(self, request: web.Request) -> web.Response:
        content = self.slack.files.get(request.match_info["name"])
        is_let_in = request.headers.get("Authorization") == "Bearer xoxb-anna"
        if content is None or not is_let_in:
            return web.Response(text="<html>", content_type="text/html")
        return web.Response(body=content, content_type="image/png")


@asynccontextmanager
async def serving(slack: FakeSlack, bridge: Bridge) -> AsyncGenerator[SlackServer]:
    """Serve a workspace until the block ends."""
    server = SlackServer(slack)
    await bridge.call(server.start)
    try:
        yield server
    finally:
        await bridge.call(server.stop)
