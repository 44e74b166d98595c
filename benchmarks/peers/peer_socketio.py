"""A bare python-socketio server under uvicorn: tells what is posted to a room.

Nothing is checked, stored or answered for: the least that a broadcast can cost with the
library that our own server uses. `python -m benchmarks.peer_socketio` is the server.
"""

# The library says nothing of its types:
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any
from uuid import UUID

import socketio
import uvicorn

from benchmarks.server.bench_broadcast import (
    CHANNELS,
    CROWD,
    channel_figures,
    crowd_figures,
)
from benchmarks.stage.listeners import Hear, hear
from benchmarks.stage.programs import module, started

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from benchmarks.figure import Figure, Plan, Round
    from benchmarks.stage.listeners import Heard

SHARE = 1.0
BODY = '{"text":"message {number}","channelId":"{channel}","senderName":"Zoe"}'


def broadcast(plan: Plan) -> list[Figure]:
    """Let a thousand clients hear, then one, sixteen and sixty-four channels."""
    with started(module("benchmarks.peers.peer_socketio")) as program:

        def heard(rooms: int, listeners: int, share: int) -> Heard:
            names = tuple([str(UUID(int=number)) for number in range(1, rooms + 1)])
            address, process = program.address, program.process
            asked = Hear(address, names, listeners, share, "/say", BODY, process)
            return hear(asked)

        share = max(2, plan.size // 20)
        figures = crowd_figures(heard(1, min(CROWD, plan.size), share))
        for count in CHANNELS:
            share = max(2, plan.size // max(count, 4))
            figures += channel_figures(heard(count, 1, share), count)
        return figures


async def serve() -> None:
    """Be the server."""
    server: Any = socketio.AsyncServer(async_mode="asgi", cors_allowed_origins="*")

    async def join(sid: str, asked: dict[str, str]) -> None:
        await server.enter_room(sid, asked["roomId"])
        await server.emit("room_joined", asked, to=sid)

    server.on("1", join)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        payload = json.loads(body + message["body"])
        await server.emit("messageBroadcast", payload, room=payload["channelId"])
        head = [(b"content-length", b"2"), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"{}"})

    sock = socket.create_server(("127.0.0.1", 0), backlog=1024)
    # As ours does, which asyncio leaves out for sockets that name no protocol.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"listening on http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
    whole = socketio.ASGIApp(server, app)
    config = uvicorn.Config(whole, ws="wsproto", log_level="error", lifespan="off")
    await uvicorn.Server(config).serve(sockets=[sock])


ROUNDS: dict[str, Round] = {"broadcast": broadcast}

if __name__ == "__main__":
    asyncio.run(serve())
