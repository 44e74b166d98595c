"""A chat platform in memory: people write, answers stand in a list."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from actors.errors import ChatError, DeliveryBusyError
from actors.messages.deliveries import Abilities, Delivery, Draft, Typing
from actors.messages.inbound import (
    Address,
    Attachment,
    Inbound,
    Quoted,
    TranscriptLine,
)
from actors.transport import Ingress, Presence
from runtime.errors import KernelError


class FakeTransport:
    """Implements `actors.transport.Transport` without any platform.

    Args:
        name: of the connector account.
        agent: whom its people address; empty: routes decide.
    """

    def __init__(self, name: str = "fake", agent: str = "") -> None:
        self.name = name
        self.agent = agent
        self.is_direct = True
        self.roles: tuple[str, ...] = ()
        """What whoever writes is on it."""

        self.language = ""
        self.caller = ""
        """What it says of whoever writes."""
        self.history: tuple[TranscriptLine, ...] = ()
        """What whoever writes sends along."""

        self.can = Abilities(is_idempotent=True)
        self.acknowledged: list[str] = []
        """Platform ids, in order; also of those that were accepted before."""

        self.refused: list[tuple[str, Exception]] = []
        """Platform ids that were not taken, and why."""

        self.deliveries: list[Delivery] = []
        self.drafts: list[Draft] = []
        self.settled: list[tuple[str, str]] = []
        self.typing: list[Typing] = []
        self.looked_up: list[str] = []
        """Ids of deliveries that somebody asked about."""

        self.error: Exception | None = None
        """Raised by delivering, as long as it is set."""

        self.new_id: Callable[[], str] | None = None
        """Makes the ids of messages; None: counted up, which does not tell when."""

        self._known: dict[str, str] = {}
        """The ids of messages that people wrote here, by correlation id."""

        self._written: deque[Inbound] = deque()
        self._changed = trio.Event()
        self._is_listening = False
        self._count = 0

    def write(
        self,
        text: str,
        *,
        chat: str = "room",
        sender: str = "zoe",
        key: str = "",
        attachments: tuple[Attachment, ...] = (),
        quoted: Quoted | None = None,
    ) -> Inbound:
        """Have a person write; the same `key` twice is the same message again.

        A chat as `room/t1` is the thread `t1` of a room.
        """
        room, _, thread = chat.partition("/")
        self._count += 1
        new_id = self.new_id() if self.new_id else f"{self.name}-{self._count}"
        inbound = Inbound(
            id=new_id,
            correlation_id=new_id,
            platform="fake",
            platform_id=key or new_id,
            address=Address(self.name, room, thread),
            sender_id=sender,
            sender_name=sender,
            caller=self.caller,
            language=self.language,
            text=text,
            received_at=float(self._count),
            agent=self.agent,
            attachments=attachments,
            quoted=quoted,
            history=self.history,
            is_direct=self.is_direct,
            roles=self.roles,
        )
        self._known[inbound.correlation_id] = inbound.platform_id
        self._written.append(inbound)
        self._note_change()
        return inbound

    @property
    def abilities(self) -> Abilities:
        """What it can do; a repeated delivery is kept once."""
        return self.can

    @property
    def presence(self) -> Presence | None:
        """Give nothing: it can show nothing but messages."""
        return None

    def show_typing(self, typing: Typing) -> None:
        """Keep that somebody began to write."""
        self.typing.append(typing)

    async def look_up(self, delivery: Delivery) -> str | None:
        """Tell whether a delivery was said."""
        await trio.lowlevel.checkpoint()
        self.looked_up.append(delivery.id)
        known = any(each.id == delivery.id for each in self.deliveries)
        return f"receipt-{delivery.id}" if known else None

    async def listen(self, ingress: Ingress) -> None:
        """Hand in what people write, one after the other."""
        self._is_listening = True
        try:
            while True:
                while not self._written:
                    await self._changed.wait()
                inbound = self._written.popleft()
                try:
                    await ingress.accept(inbound)
                except (ChatError, KernelError) as error:
                    self.refused.append((inbound.platform_id, error))
                else:
                    self.acknowledged.append(inbound.platform_id)
                self._note_change()
        finally:
            self._is_listening = False

    async def deliver(self, delivery: Delivery) -> str:
        """Keep an answer; one that is repeated is kept once."""
        await trio.lowlevel.checkpoint()
        if not self._is_listening:  # as where a client is closed: it may open again
            raise DeliveryBusyError("the fake platform is not open")
        if self.error is not None:
            raise self.error
        if all(known.id != delivery.id for known in self.deliveries):
            self.deliveries.append(delivery)
        self._note_change()
        return f"receipt-{delivery.id}"

    def show_draft(self, draft: Draft) -> None:
        """Keep a draft."""
        self.drafts.append(draft)

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Keep what became of a message."""
        await trio.lowlevel.checkpoint()
        self.settled.append((inbound.correlation_id, reason))
        self._note_change()

    async def wait_deliveries(self, count: int) -> list[Delivery]:
        """Wait until so many answers are here; fails after five seconds."""
        with trio.fail_after(5):
            while len(self.deliveries) < count:
                await self._changed.wait()
        return self.deliveries

    async def wait_change(self) -> None:
        """Wait until anything happens."""
        await self._changed.wait()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
