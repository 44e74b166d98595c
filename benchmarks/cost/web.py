"""The HTTP server in virtual time: its loop of asyncio runs on the trio thread.

A client of the same process writes to it over a socket of this machine. While one of
the two loops works the other waits, so that in each run all comes in the same order.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import trio

from benchmarks.cost.office import (
    AFTERWARDS,
    CONNECTOR,
    TO_MODEL,
    TO_REST,
    VirtualClock,
)
from connectors.asyncio_bridge.bridge import Bridge, Crossing, Life
from connectors.chat.platforms import Operations
from connectors.web.openai.transport import HttpTransport
from connectors.web.server import HttpSettings
from runtime.ids import IdSource

if TYPE_CHECKING:
    from random import Random

    from benchmarks.cost.office import Progress
    from connectors.asyncio_bridge.bridge import Step

TICK = 0.1
"""Seconds of virtual time between two looks at the timers of asyncio."""

PASSES = 12
"""How often the loop of asyncio goes round in one step; more than a request needs."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time is trio's."""

    def time(self) -> float:
        """Seconds since the run began."""
        return trio.current_time()


class SteppedBridge(Bridge):
    """A bridge to a loop on the same thread, which runs whenever it is woken."""

    def __init__(self) -> None:
        super().__init__()
        self._woken = trio.Event()
        self._scope = trio.CancelScope()
        self.loop: VirtualLoop | None = None

    async def start(self) -> None:
        """Make the loop."""
        life = self._life = Life(self._max_posts, self._shutdown_timeout)
        life.loop.close()
        life.loop = self.loop = VirtualLoop()
        life.to_edge = Crossing(self._wake, self._max_posts, "edge loop")
        trio.lowlevel.spawn_system_task(self._run, self.loop, name="edge loop")
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """End all tasks, and the loop."""
        life, loop = self._life, self.loop
        if life is None or loop is None or loop.is_closed():
            return
        life.is_closing = True
        self._scope.cancel()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        step(loop)
        loop.close()
        life.settle()

    def hurry(self) -> None:
        """Have the loop look for what has come to its sockets."""
        self._woken.set()

    def _wake(self, call: Step) -> None:
        if self.loop is not None:
            self.loop.call_soon(call)
        self._woken.set()

    async def _run(self, loop: VirtualLoop) -> None:
        with self._scope:
            while True:
                with trio.move_on_after(TICK):
                    await self._woken.wait()
                self._woken = trio.Event()
                step(loop)


def step(loop: VirtualLoop) -> None:
    """Let a loop do all that it can do now."""
    for _ in range(PASSES):
        loop.call_soon(loop.stop)
        loop.run_forever()


class Client:
    """A program that asks an agent over HTTP, on one connection.

    Args:
        progress: told when it asks, and has the answer.
        dice: for the ids of messages.
    """

    def __init__(self, progress: Progress, dice: Random) -> None:
        clock = VirtualClock()
        self.bridge = SteppedBridge()
        self.transport = HttpTransport(
            HttpSettings(name=CONNECTOR, port=0),
            self.bridge,
            agents=lambda: ("anna",),
            operations=Operations(
                lambda _kind, _packed: (b"", "text/plain"), self._readiness
            ),
            clock=clock,
            ids=IdSource(clock, dice.randbytes),
        )
        self._progress = progress
        self._stream: trio.SocketStream | None = None

    async def ask(self, text: str) -> None:
        """Ask; returns when the answer is there, and all is at rest."""
        if self._stream is None:
            host, port = await self.transport.wait_listening()
            self._stream = await trio.open_tcp_stream(host, port)
        messages = [{"role": "user", "content": text}]
        body = msgspec.json.encode({"model": "anna", "messages": messages})
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
            "content-type: application/json\r\nx-callboard-conversation: sam\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self._progress.begin(TO_MODEL)
        await self._stream.send_all(head.encode() + body)
        self.bridge.hurry()
        heard = b""
        while b'"usage"' not in heard:
            heard += await self._stream.receive_some()
        assert heard.startswith(b"HTTP/1.1 200 "), heard
        self._progress.enter(AFTERWARDS)
        await trio.sleep(TO_REST)

    async def _readiness(self) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return ()
