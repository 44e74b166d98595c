"""The ElizaOS channel as a transport; the kernel's side.

The services (`app.py`) belong to this side, requests run on the edge's loop and ask
them. A delivered answer is stored in its channel, announced to the clients that have
joined the channel, and completes the requests that wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterable
from functools import partial

import trio
from starlette.routing import BaseRoute

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Draft
from actors.messages.inbound import Inbound
from actors.transport import Ingress
from connectors.asyncio_bridge.bridge import (
    BridgeBusyError,
    BridgeClosedError,
    BridgeError,
)
from connectors.chat.platforms import TransportParts
from connectors.chat.server_transport import ServerTransport
from connectors.files.blobs import bytes_of
from connectors.web.eliza.app import ElizaServices, make_api
from connectors.web.eliza.messages import ChannelEvent, Json, attachment_of, linked
from connectors.web.eliza.platform import PLATFORM, WebConfig
from connectors.web.eliza.services.uploads import HERE, FullError, name_of
from connectors.web.eliza.socketio.server import SocketRequests, SocketServer
from connectors.web.history import tidy_for_ever
from connectors.web.server import open_socket, serve
from runtime.errors import StoreError, StoreUnavailableError
from runtime.telemetry.logs import EventLog

LOG = EventLog("web")

NOT_LISTENING = "the web channel is not listening"
SILENCE = "nothing to say"

TIDY_EVERY = 300.0
"""Seconds between two rounds that delete old things; as the official server."""


class ElizaTransport(ServerTransport):
    """The server for clients of the ElizaOS API; see the port."""

    presence = None
    """Messages are not edited: drafts are events of their own."""

    def __init__(self, name: str, config: WebConfig, parts: TransportParts) -> None:
        self._parts = parts
        self.services = ElizaServices(name, config, parts, self._tell)
        super().__init__(partial(open_socket, self.services.settings))
        self._sockets: SocketServer | None = None
        """Only touched on the edge's thread."""

        self._further: list[BaseRoute] = []

    @property
    def abilities(self) -> Abilities:
        """An answer is stored once under one id; requests learn of silence."""
        return Abilities(
            is_idempotent=True,
            counts_answers=True,
            shows_thoughts=True,
            files=PLATFORM.takes_files,
        )

    def mount(self, routes: Iterable[BaseRoute]) -> None:
        """Serve further routes beside the API; before `listen`."""
        self._further.extend(routes)

    async def listen(self, ingress: Ingress) -> None:
        """Serve until cancelled; then end the requests that wait and close the port.

        Raises:
            ListenError: the address cannot be listened on.
            BridgeClosedError: the edge's loop is not running or died.
            StoreError: the stored channels cannot be read.
        """
        with self.listening() as sock:
            services = self.services
            await services.load()
            services.messages.ingress = ingress
            self.announce(sock)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(tidy_for_ever, services.tidy, TIDY_EVERY, LOG)
                    with services.logs.filling():
                        await self._parts.bridge.call(self._serve, ingress, sock)
                    nursery.cancel_scope.cancel()
            finally:
                services.messages.ingress = None

    async def deliver(self, delivery: Delivery) -> str:
        """Store an answer in its channel and announce it; see the port."""
        if self.services.messages.ingress is None:
            raise DeliveryBusyError(NOT_LISTENING)
        receipt, said = SILENCE, delivery
        if delivery.kind != "silence":
            shown = await self._bring(delivery)
            receipt = await self._keep(delivery, shown)
            said = linked(delivery, shown)
        elif delivery.ends:
            await self._end_job(delivery.correlation_id, delivery.ends)
        with contextlib.suppress(BridgeError):
            # Without the loop no request waits; the answer is stored.
            await self._parts.bridge.call(self._deliver, said)
        await self.services.messages.delivered(delivery)
        return receipt

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of an answer to the requests that wait, and in its channel."""
        with contextlib.suppress(BridgeError):
            self._parts.bridge.post_edge(self._show_draft, draft)

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """End the job and the requests that wait: no more answers will come."""
        correlation_id = inbound.correlation_id
        await self._end_job(correlation_id, reason)
        with contextlib.suppress(BridgeError):
            await self._parts.bridge.call(self._settle, correlation_id, reason)
        await self.services.messages.settled(inbound, reason)

    async def _end_job(self, correlation_id: str, reason: str) -> None:
        try:
            await self.services.jobs.settled(correlation_id, reason)
        except StoreError as error:
            # The job ends at its own deadline.
            LOG.warning("job not ended yet", why=str(error))

    async def _bring(self, delivery: Delivery) -> Json:
        """Copy a delivery's file to where clients of its channel can load it.

        Returns:
            The file as clients see it; empty: there is none.
        """
        file, channel = delivery.file, delivery.address.chat
        if file is None or self.services.channels.find(channel) is None:
            return {}
        path = bytes_of(self._parts.blobs, file)
        name = name_of(delivery.id, file.media_type)
        keep = partial(self.services.uploads.keep, "channels", channel, name, path)
        try:
            await trio.to_thread.run_sync(keep)
        except FullError as error:
            raise DeliveryRefusedError(str(error)) from error
        except OSError as error:
            raise DeliveryBusyError(f"the file was not kept: {error}") from error
        return attachment_of(file, f"{HERE}/channels/{channel}/{name}")

    async def _keep(self, delivery: Delivery, shown: Json) -> str:
        try:
            message = await self.services.messages.answer(delivery, shown)
        except StoreUnavailableError as error:
            raise DeliveryBusyError(str(error)) from error
        except StoreError as error:
            raise DeliveryRefusedError(str(error)) from error
        if message is None:
            text = f"the channel {delivery.address.chat} was deleted"
            raise DeliveryRefusedError(text)
        return message.id

    def _tell(self, news: ChannelEvent) -> None:
        """Send an event to the clients of a channel; on the kernel's side."""
        try:
            self._parts.bridge.post_edge(self._tell_edge, news)
        except BridgeBusyError as error:
            LOG.warning("event not told", kind=news.event, why=str(error))
        except BridgeClosedError:
            pass  # without the loop no client is connected; the history has it

    def _tell_edge(self, news: ChannelEvent) -> None:
        if self._sockets is not None:
            self._sockets.tell(news)

    def _show_draft(self, draft: Draft) -> None:
        self.services.answers.waiting.draft(draft)
        if self._sockets is not None:
            self._sockets.draft(draft)

    async def _deliver(self, delivery: Delivery) -> None:
        self.services.answers.waiting.deliver(delivery)
        if self._sockets is not None:
            self._sockets.end_draft(delivery.reply_id)

    async def _settle(self, correlation_id: str, reason: str) -> None:
        self.services.answers.waiting.settle(correlation_id, reason)
        if self._sockets is not None:
            self._sockets.settle(correlation_id, reason)

    async def _serve(self, ingress: Ingress, sock: socket.socket) -> None:
        services = self.services
        sockets = self._sockets = SocketServer(services, SocketRequests(services))
        app = sockets.wrap(make_api(services, ingress.refuse, self._further))
        telling = asyncio.ensure_future(sockets.run())
        closing: list[asyncio.Task[None]] = []

        def stop() -> None:
            services.answers.stop()
            closing.append(asyncio.ensure_future(sockets.aclose()))

        try:
            await serve(app, sock, services.settings, stop)
        finally:
            self._sockets = None
            telling.cancel()


make_transport = ElizaTransport
