"""The desk of one agent at an office; see `actors/transport.py`."""

from __future__ import annotations

from functools import partial
from typing import Literal

from actors.errors import (
    ChatError,
    DeliveryBusyError,
    MessageRefusedError,
    StoppingError,
)
from actors.messages.deliveries import Abilities, Delivery, Draft, Typing
from actors.messages.inbound import Address, Inbound
from actors.transport import Ingress
from connectors.chat.accounts import Family, PlatformCounters, PlatformMetrics
from connectors.chat.inbound import words_of
from connectors.chat.markup.render import rendered
from connectors.chat.platforms import TransportParts
from connectors.files.blobs import bytes_of
from runtime.errors import KernelError
from tests.support.postcard.markup import Postcard
from tests.support.postcard.office import OFFICES, Card, Office
from tests.support.postcard.platform import PLATFORM, PostcardConfig

METRICS = partial(
    PlatformCounters,
    events=Family("callboard_postcard_events", "What became of cards.", "outcome"),
    heard=Family("callboard_postcard_heard_seconds", "When the last card came."),
    up=Family("callboard_postcard_up", "1 while somebody sits at the desk."),
)


class PostcardTransport:
    """The desk of one agent.

    Args:
        name: of the connector.
        config: its settings.
        parts: what the app gives.
    """

    presence = None
    """A card that is sent is never changed."""

    def __init__(
        self, name: str, config: PostcardConfig, parts: TransportParts
    ) -> None:
        self._name = name
        self._agent = config.agent
        self._parts = parts
        self._office = OFFICES.setdefault(config.office, Office())
        counters = parts.once(METRICS)
        self._metrics = PlatformMetrics[Literal["taken", "refused"]](counters, name)
        self._is_listening = False

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        limits = PLATFORM.limits
        return Abilities(
            is_idempotent=True,
            max_part_chars=limits.part,
            measure=limits.measure,
            files=PLATFORM.takes_files,
        )

    async def listen(self, ingress: Ingress) -> None:
        """Hand in cards one after the other, until cancelled."""
        self._is_listening = True
        self._metrics.show(self._agent, is_up=True)
        try:
            while True:
                while not self._office.waiting:
                    await self._office.wait_change()
                await self._hand_in(self._office.waiting[0], ingress)
                self._office.stamped.append(self._office.waiting.popleft().id)
                self._office.note_change()
        finally:
            self._is_listening = False
            self._metrics.show(self._agent, is_up=False)

    async def _hand_in(self, card: Card, ingress: Ingress) -> None:
        clock = self._parts.clock
        self._metrics.heard(self._agent, clock.wall())
        number = self._parts.ids.new()
        inbound = Inbound(
            id=number,
            correlation_id=number,
            platform=PLATFORM.kind,
            platform_id=card.id,
            address=Address(self._name, card.sender),
            sender_id=card.sender,
            sender_name=card.sender,
            text=card.text,
            received_at=clock.wall(),
            agent=self._agent,
            wants_drafts=False,
        )
        try:
            await ingress.accept(inbound)
        except StoppingError:
            raise
        except (ChatError, KernelError) as error:
            self._metrics.event(self._agent, "refused")
            is_final = isinstance(error, MessageRefusedError)
            words = str(error) if is_final else words_of(error)
            self._office.sent[f"refused {number}"] = f"⚠️ {words}"
        else:
            self._metrics.event(self._agent, "taken")

    async def deliver(self, delivery: Delivery) -> str:
        """Send one card; see the port."""
        if not (self._is_listening and self._office.is_open):
            raise DeliveryBusyError("nobody is at the desk")
        file = delivery.file
        path = None if file is None else bytes_of(self._parts.blobs, file)
        if delivery.id not in self._office.sent:
            text = rendered(delivery.text, Postcard(), PLATFORM.limits.text)
            self._office.sent[delivery.id] = f"{delivery.agent}: {text}"
            self._office.files += [] if path is None else [path.read_bytes()]
            self._office.note_change()
        return delivery.id

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: nobody asks, as it knows our ids; see the port."""
        raise DeliveryBusyError(f"{delivery.id} cannot be looked up")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: a card is sent when it is written."""

    def show_typing(self, typing: Typing) -> None:
        """Do nothing: nobody sees it."""

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Do nothing: nobody waits for a last card."""


def make_transport(
    name: str, config: PostcardConfig, parts: TransportParts
) -> PostcardTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        parts: what the app gives.
    """
    return PostcardTransport(name, config, parts)
