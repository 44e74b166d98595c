"""A `callboard serve` with one account more: on a platform that knows no ids.

Run as `python -m tests.kills.plain PORT POINT NUMBER FILE`: the real server under the
settings FILE, which dies at POINT (see `victim.py`; empty: nowhere by itself).
"""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import DeliveryBusyError, DeliveryUnknownError
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Address, Inbound
from connectors.app.app import open_app
from connectors.chat.platforms import serving
from connectors.commands.common.running import (
    hearing_signals,
    loaded,
    private_files,
    redacting,
    wait_any,
)
from connectors.commands.serve import _announce
from runtime.ids import IdSource
from tests.kills.platform import Here, Say, Shown, ToBot, Took, Wrote, lines, send
from tests.kills.victim import watch

if TYPE_CHECKING:
    from actors.messages.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress
    from connectors.chat.platforms import MakeTransport, TransportParts
    from connectors.config.app import AppConfig
    from runtime.config.loader import Settings

NAME = "plain"
IN_DOUBT = re.compile(rb'deliveries\w*\{connector="plain",\w+="in_doubt"\} (\d+)')


class PlainTransport:
    """Implements `actors.transport.Transport` for that platform.

    Args:
        port: where it listens, on loopback.
        parts: the clock, ids and metrics of the company.
    """

    abilities = Abilities()
    presence = None

    def __init__(self, port: int, parts: TransportParts) -> None:
        self._port = port
        self._render = parts.metrics.render
        self._clock = parts.clock
        self._ids = IdSource(parts.clock)
        self._stream: trio.SocketStream | None = None
        self._sending = trio.Lock()
        self._speaking = trio.Lock()
        self._shown: trio.MemorySendChannel[str] | None = None

    async def listen(self, ingress: Ingress) -> None:
        """Hand in what people write until the platform hangs up."""
        async with await trio.open_tcp_stream("127.0.0.1", self._port) as stream:
            await send(stream, Here(os.getpid()))
            self._stream = stream
            entrance, exit_ = trio.open_memory_channel[Wrote](1000)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hand_in, stream, ingress, exit_)
                async for line in lines(stream):
                    told: ToBot = msgspec.json.decode(line, type=ToBot)
                    match told:
                        case Wrote() as wrote:
                            entrance.send_nowait(wrote)
                        case Shown(id=shown) if self._shown is not None:
                            self._shown.send_nowait(shown)
                        case Shown():
                            pass  # whoever wanted to know was stopped meanwhile
                nursery.cancel_scope.cancel()

    async def _hand_in(
        self,
        stream: trio.SocketStream,
        ingress: Ingress,
        written: trio.MemoryReceiveChannel[Wrote],
    ) -> None:
        async for wrote in written:
            inbound = Inbound(
                id=self._ids.new(),
                platform=NAME,
                platform_id=wrote.id,
                address=Address(NAME, wrote.chat),
                sender_id="zoe",
                sender_name="Zoe",
                text=wrote.text,
                received_at=self._clock.wall(),
            )
            await ingress.accept(inbound)
            async with self._sending:
                await send(stream, Took(wrote.id))

    async def deliver(self, delivery: Delivery) -> str:
        """Show words, whether they were shown before or not."""
        if self._stream is None:
            raise DeliveryBusyError("not connected yet", retry_after=0.05)
        found = IN_DOUBT.search(self._render())
        count = int(found[1]) if found else 0
        async with self._speaking:
            self._shown, answered = trio.open_memory_channel[str](1)
            try:
                say = Say(delivery.reply_to, delivery.text, count)
                async with self._sending:
                    await send(self._stream, say)
                return await answered.receive()
            except trio.BrokenResourceError as error:
                raise DeliveryUnknownError("the platform has hung up") from error
            finally:
                self._shown = None

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: the platform cannot tell."""
        raise DeliveryBusyError(f"nobody knows of {delivery.id}")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing."""

    def show_typing(self, typing: Typing) -> None:
        """Do nothing."""

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Do nothing: nobody waits."""


async def run(port: int, settings: Settings[AppConfig], is_told: trio.Event) -> None:
    """Serve as `callboard serve` does."""
    config = settings.value
    made: dict[str, MakeTransport] = {**serving(config)}
    made[NAME] = partial(PlainTransport, port)
    redact = redacting(settings).clean
    async with (
        open_app(config, made, redact, private_files(settings)) as app,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_announce, app)
        await wait_any(app.system.wait_ended, is_told.wait)
        await app.drain(config.limits.drain_timeout)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    port_, point, number, file = sys.argv[1:]
    kept = watch(point, int(number)) if point else None
    with loaded(Path(file), "") as source:
        trio.run(hearing_signals, partial(run, int(port_), source.settings))
