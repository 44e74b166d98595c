"""A chat platform in memory for very many conversations, of which it keeps nothing.

A few people write at once, each message in a conversation of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.messages.deliveries import Abilities
from actors.messages.inbound import Address, Inbound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.messages.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress
    from runtime.clock import Clock

AT_ONCE = 64


class Crowd:
    """Implements `actors.transport.Transport`.

    Args:
        connector: the name of its account.
        agent: whom they write to.
        clock: for the time on the messages.
    """

    presence = None
    """It can show nothing but messages."""

    def __init__(self, connector: str, agent: str, clock: Clock) -> None:
        self._connector = connector
        self._agent = agent
        self._clock = clock
        self._ingress: Ingress | None = None
        self._has_ingress = trio.Event()
        self._answers: dict[str, trio.Event] = {}

    @property
    def abilities(self) -> Abilities:
        """Say that a repeated answer is one answer."""
        return Abilities(is_idempotent=True)

    def show_typing(self, typing: Typing) -> None:
        """Look at nothing; `abilities` says so."""

    async def look_up(self, delivery: Delivery) -> str | None:
        """Say whether it was said; nobody asks."""
        await trio.lowlevel.checkpoint()
        return None if delivery.correlation_id in self._answers else delivery.id

    async def listen(self, ingress: Ingress) -> None:
        """Stay until cancelled."""
        self._ingress = ingress
        self._has_ingress.set()
        await trio.sleep_forever()

    async def write(self, first: int, count: int) -> None:
        """Write so many messages and hear all answers.

        Args:
            first: number of the first conversation.
            count: how many there are.
        """
        await self._has_ingress.wait()
        numbers = iter(range(first, first + count))
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._write_some, numbers)

    async def deliver(self, delivery: Delivery) -> str:
        """Take an answer; its reader writes on."""
        self._answers.pop(delivery.correlation_id).set()
        await trio.lowlevel.checkpoint()
        return "heard"

    def show_draft(self, draft: Draft) -> None:
        """Look at a draft and do nothing."""

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Hear what became of a message."""

    async def _write_some(self, numbers: Iterator[int]) -> None:
        assert self._ingress is not None
        for number in numbers:
            name = f"chat-{number}"
            inbound = Inbound(
                id=name,
                platform=self._connector,
                platform_id=name,
                address=Address(self._connector, name),
                sender_id=name,
                sender_name=name,
                text=f"message in conversation number {number}",
                received_at=self._clock.wall(),
                agent=self._agent,
            )
            answered = self._answers[name] = trio.Event()
            await self._ingress.accept(inbound)
            await answered.wait()
