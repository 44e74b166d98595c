"""The web channel: the ElizaOS messaging API as a place where people write.

The kernel's side: what is kept (`channels.py`, `speech.py`) lives here, requests live
on the edge's loop and ask for it. An answer that is delivered stands in its channel,
is told to whoever has joined that, and ends the requests that wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from actors.deliveries import Abilities
from actors.errors import DeliveryBusyError, DeliveryRefusedError
from connectors.blobs import bytes_of
from connectors.chat.limits import takes_files
from connectors.crossing import BridgeBusyError, BridgeClosedError, BridgeError
from connectors.web.eliza.api import make_api
from connectors.web.eliza.awaiting import Awaiting
from connectors.web.eliza.channels import Channels
from connectors.web.eliza.employing import Employing
from connectors.web.eliza.figures import WebCounters, WebFigures
from connectors.web.eliza.forgetting import Forgetting
from connectors.web.eliza.history import History
from connectors.web.eliza.jobs import Jobs
from connectors.web.eliza.keys import Keys
from connectors.web.eliza.log_ring import LogRing
from connectors.web.eliza.memories import Memories
from connectors.web.eliza.parts import Parts
from connectors.web.eliza.runs import Runs
from connectors.web.eliza.sent import attachment_of, linked
from connectors.web.eliza.sessions import Sessions
from connectors.web.eliza.shelf import Room
from connectors.web.eliza.socket_talk import Talk
from connectors.web.eliza.sockets import LONGEST_FRAME, Sockets
from connectors.web.eliza.speech import Speech
from connectors.web.eliza.tidying import forget_old, tidy
from connectors.web.eliza.upload_routes import HERE
from connectors.web.eliza.uploads import FullError, Uploads, name_of
from connectors.web.server import HttpSettings, open_socket, serve
from runtime.errors import StoreError, StoreUnavailableError
from runtime.ids import IdSource
from runtime.logs import EventLog

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from starlette.routing import BaseRoute

    from actors.deliveries import Delivery, Draft, Typing
    from actors.ingress import Earlier
    from actors.transport import Ingress
    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.web.backstage import Backstage
    from connectors.web.eliza.shapes import Json
    from connectors.web.eliza.telling import News
    from connectors.web_config import WebConfig
    from runtime.clock import Clock
    from runtime.store import Store

LOG = EventLog("web")

NOT_LISTENING = "the web channel is not listening"
DAY = 86_400.0
SILENCE = "nothing to say"


@dataclass(frozen=True)
class Surroundings:
    """What the transport is given by the company."""

    bridge: Bridge
    store: Store
    clock: Clock
    agents: Callable[[], tuple[str, ...]]
    """Names those that people can speak to now; called from both sides."""

    backstage: Backstage
    """The company itself; on the kernel's side."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send."""

    counters: WebCounters | None = None
    """Where it is counted what is asked and told; None: nowhere."""


class WebTransport:
    """The server for clients of the ElizaOS API; see the port.

    Args:
        name: of the connector, as in the settings.
        config: its settings.
        given: what the company gives.
    """

    presence = None
    """What is said stays as it is: pieces are shown before, not by edits."""

    def __init__(self, name: str, config: WebConfig, given: Surroundings) -> None:
        self._config = config
        self._given = given
        self._settings = settings_of(name, config)
        room = Room(given.store, given.clock, name)
        self.history = History(given.store, given.clock, name)
        self.channels = Channels(room, config, given.agents, self.history, self._tell)
        self.speech = Speech(name, self.channels, self.history, self._tell)
        self.sessions = Sessions(room, config.max_jobs, self.channels)
        self.jobs = Jobs(room, config.max_jobs, self.channels, self.speech)
        self.speech.on_answer = self.jobs.answered
        around = (name, self.channels, self.history, given.store, given.backstage)
        self.memories = Memories(*around)
        self.forgetting = Forgetting(*around[:3], self.memories, *around[3:])
        self.runs = Runs(
            name, self.channels, self.memories, given.store, given.backstage
        )
        self.employing = Employing(name, given.store, given.backstage)
        self.logs = LogRing(given.backstage.services.redact)
        self.awaiting = Awaiting(
            IdSource(given.clock),
            self._earlier,
            config.answer_timeout,
            self._settings.heartbeat,
        )
        self.keys = Keys(config)
        self.figures = WebFigures(given.counters, name)
        self.uploads = Uploads(Path(config.uploads), config.max_uploads_bytes)
        self._sockets: Sockets | None = None
        """Only touched on the edge's thread."""

        self._further: list[BaseRoute] = []
        self._reserved: socket.socket | None = None
        self._bound = trio.Event()
        self._address = ("", 0)

    @property
    def abilities(self) -> Abilities:
        """What it can do: an answer is kept once under one id; silence is told."""
        return Abilities(
            is_idempotent=True, counts_answers=True, files=takes_files("web")
        )

    def mount(self, routes: Iterable[BaseRoute]) -> None:
        """Serve further routes beside the API, as a page at `/`; before `listen`."""
        self._further.extend(routes)

    def reserve(self) -> None:
        """Take the address now, so that one that is taken stops the program's start.

        Raises:
            ListenError: the address cannot be listened on.
        """
        self._reserved = open_socket(self._settings)

    def release(self) -> None:
        """Give back what `reserve` took, if `listen` has not used it."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    @property
    def is_reserved(self) -> bool:
        """Whether its address is taken, and waits for `listen`."""
        return self._reserved is not None

    async def wait_listening(self) -> tuple[str, int]:
        """Wait until clients can connect; gives host and port."""
        await self._bound.wait()
        return self._address

    async def listen(self, ingress: Ingress) -> None:
        """Serve until cancelled; then end what waits and close the port.

        Raises:
            ListenError: the address cannot be listened on.
            BridgeClosedError: the edge's loop is not running or died.
            StoreError: what there is cannot be read.
        """
        sock = self._reserved or open_socket(self._settings)
        self._reserved = None
        try:
            for each in (self.channels, self.sessions, self.jobs):
                await each.load()
            self.speech.ingress = ingress
            host, port = sock.getsockname()[:2]
            self._address = (str(host), int(port))
            self._bound.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tidy, self._tidy_once)
                with self.logs.filling():
                    await self._given.bridge.call(self._serve, ingress, sock)
                nursery.cancel_scope.cancel()
        finally:
            self.speech.ingress = None
            sock.close()
            self._bound = trio.Event()

    async def deliver(self, delivery: Delivery) -> str:
        """Say an answer in its channel; see the port."""
        if self.speech.ingress is None:
            raise DeliveryBusyError(NOT_LISTENING)
        receipt, said = SILENCE, delivery
        if delivery.kind != "silence":
            shown = await self._bring(delivery)
            receipt = await self._keep(delivery, shown)
            said = linked(delivery, shown)
        with contextlib.suppress(BridgeError):
            # Who waited is told by the end of the loop; the answer is kept.
            await self._given.bridge.call(self._deliver, said)
        return receipt

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: there is no need to ask; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"{delivery.id} is simply said again")

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of an answer to who waits for it, and in its channel."""
        with contextlib.suppress(BridgeError):
            self._given.bridge.post_edge(self._show_draft, draft)

    def show_typing(self, typing: Typing) -> None:
        """Do nothing: `abilities` says so; see the port."""

    async def settle(self, correlation_id: str, reason: str) -> None:
        """End what waits, because nothing more will be said."""
        try:
            await self.jobs.settled(correlation_id, reason)
        except StoreError as error:
            # The job ends by its own time, then.
            LOG.warning("job not ended yet", why=str(error))
        with contextlib.suppress(BridgeError):
            await self._given.bridge.call(self._settle, correlation_id, reason)

    async def _bring(self, delivery: Delivery) -> Json:
        """Put a delivery's file where clients of its channel find it.

        Returns:
            What they are told of it; nothing if there is none.

        Raises:
            DeliveryRefusedError: its bytes are gone, or there is no room for them.
            DeliveryBusyError: the disk fails.
        """
        file, channel = delivery.file, delivery.address.chat
        if file is None or self.channels.find(channel) is None:
            return {}
        path = bytes_of(self._given.blobs, file)
        name = name_of(delivery.id, file.media_type)
        keep = partial(self.uploads.keep, "channels", channel, name, path)
        try:
            await trio.to_thread.run_sync(keep)
        except FullError as error:
            raise DeliveryRefusedError(str(error)) from error
        except OSError as error:
            raise DeliveryBusyError(f"the file was not kept: {error}") from error
        return attachment_of(file, f"{HERE}/channels/{channel}/{name}")

    async def _keep(self, delivery: Delivery, shown: Json) -> str:
        try:
            message = await self.speech.answer(delivery, shown)
        except StoreUnavailableError as error:
            raise DeliveryBusyError(str(error)) from error
        except StoreError as error:
            raise DeliveryRefusedError(str(error)) from error
        if message is None:
            text = f"the channel {delivery.address.chat} was deleted"
            raise DeliveryRefusedError(text)
        return message.id

    async def _tidy_once(self) -> int:
        await self.sessions.forget_ended()
        await self.jobs.forget_ended()
        await self._tidy_uploads()
        return await forget_old(self.channels, self.speech, self._config)

    async def _tidy_uploads(self) -> None:
        now = self._given.clock.wall()
        kept = frozenset(each.id for each in self.channels.every())
        before = now - self._config.keep_days * DAY
        try:
            await trio.to_thread.run_sync(self.uploads.tidy, kept, now, before)
        except OSError as error:
            LOG.warning("old files not deleted yet", why=error.strerror or "?")

    async def _earlier(self, message_id: str) -> Earlier | None:
        """Ask what became of a message; on the edge's side."""
        return await self._given.bridge.ask_kernel(self.speech.earlier, message_id)

    def _tell(self, news: News) -> None:
        """Tell whoever has joined a channel; on the kernel's side."""
        try:
            self._given.bridge.post_edge(self._tell_edge, news)
        except BridgeBusyError as error:
            LOG.warning("event not told", kind=news.event, why=str(error))
        except BridgeClosedError:
            pass  # without the loop nobody has joined; they find it in the history

    def _tell_edge(self, news: News) -> None:
        if self._sockets is not None:
            self._sockets.tell(news)

    def _show_draft(self, draft: Draft) -> None:
        self.awaiting.waiting.draft(draft)
        if self._sockets is not None:
            self._sockets.draft(draft)

    async def _deliver(self, delivery: Delivery) -> None:
        self.awaiting.waiting.deliver(delivery)
        if self._sockets is not None:
            self._sockets.end_draft(delivery.reply_id)

    async def _settle(self, correlation_id: str, reason: str) -> None:
        self.awaiting.waiting.settle(correlation_id, reason)
        if self._sockets is not None:
            self._sockets.settle(correlation_id, reason)

    def parts(self, ingress: Ingress) -> Parts:
        """Give what the routes are made from.

        Args:
            ingress: told who was not let in.
        """
        given = self._given
        return Parts(
            config=self._config,
            settings=self._settings,
            clock=given.clock,
            bridge=given.bridge,
            keys=self.keys,
            channels=self.channels,
            speech=self.speech,
            sessions=self.sessions,
            jobs=self.jobs,
            memories=self.memories,
            forgetting=self.forgetting,
            runs=self.runs,
            employing=self.employing,
            backstage=given.backstage,
            logs=self.logs,
            tell=self._tell,
            awaiting=self.awaiting,
            figures=self.figures,
            uploads=self.uploads,
            refused=ingress.refuse,
        )

    async def _serve(self, ingress: Ingress, sock: socket.socket) -> None:
        parts = self.parts(ingress)
        sockets = self._sockets = Sockets(parts, Talk(parts))
        app = sockets.wrap(make_api(parts, self._further))
        telling = asyncio.ensure_future(sockets.run())
        closing: list[asyncio.Task[None]] = []

        def stop() -> None:
            self.awaiting.stop()
            closing.append(asyncio.ensure_future(sockets.aclose()))

        try:
            await serve(app, sock, self._settings, stop)
        finally:
            self._sockets = None
            telling.cancel()


def settings_of(name: str, config: WebConfig) -> HttpSettings:
    """Say how the server listens."""
    keys = [config.api_key, *(each.key for each in config.keys.values())]
    first = next((each.reveal() for each in keys if each is not None), "")
    return HttpSettings(
        name=name,
        host=config.host,
        port=config.port,
        api_key=first,
        max_body_bytes=config.max_body_bytes,
        body_timeout=config.body_timeout,
        max_connections=config.max_connections,
        answer_timeout=config.answer_timeout,
        max_frame_bytes=LONGEST_FRAME,
    )
