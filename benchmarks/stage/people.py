"""A chat platform in memory, for the line: people who write, wait, and write again.

Notes when each message was handed in, when the model was asked and had answered,
and when the answer was said. Times are nanoseconds of the stopwatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.messages.deliveries import Abilities
from actors.messages.inbound import Address, Inbound
from benchmarks.stopwatch import now_ns

if TYPE_CHECKING:
    from actors.messages.deliveries import Delivery, Draft, Typing
    from actors.messages.inbound import ModelAnswer, ModelRequest
    from actors.ports import Model, Speak
    from actors.transport import Ingress
    from runtime.clock import Clock

CONNECTOR = "people"


class Way(msgspec.Struct):
    """When one message was where."""

    handed_in: int
    asked: int = 0
    answered: int = 0
    said: int = 0


class TimedModel:
    """A model that notes when it is asked and when it has answered.

    Args:
        model: what really answers.
        ways: by correlation id.
    """

    def __init__(self, model: Model, ways: dict[str, Way]) -> None:
        self._model = model
        self._ways = ways

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Answer as the model does."""
        way = self._ways[request.correlation_id]
        way.asked = now_ns()
        answer = await self._model.answer(request, speak)
        way.answered = now_ns()
        return answer

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


class People:
    """Implements `actors.transport.Transport`: so many chats, one person in each.

    Args:
        chats: how many people write at once.
        share: how many messages each writes, the next when one has been answered.
        agent: whom they write to.
        clock: for the time on the messages.
    """

    presence = None
    """It can show nothing but messages."""

    def __init__(self, chats: int, share: int, agent: str, clock: Clock) -> None:
        self.ways: dict[str, Way] = {}
        self.done = trio.Event()
        self._chats = chats
        self._share = share
        self._agent = agent
        self._clock = clock
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
        """Let all of them write; then the platform ends."""
        async with trio.open_nursery() as nursery:
            for chat in range(self._chats):
                nursery.start_soon(self._converse, ingress, f"chat-{chat}")
        self.done.set()

    async def deliver(self, delivery: Delivery) -> str:
        """Take an answer; its reader writes on."""
        self.ways[delivery.correlation_id].said = now_ns()
        self._answers[delivery.correlation_id].set()
        await trio.lowlevel.checkpoint()
        return f"receipt-{delivery.id}"

    def show_draft(self, draft: Draft) -> None:
        """Look at a draft and do nothing."""

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Hear what became of a message."""

    async def _converse(self, ingress: Ingress, chat: str) -> None:
        for number in range(self._share):
            name = f"{chat}-{number}"
            inbound = Inbound(
                id=name,
                platform=CONNECTOR,
                platform_id=name,
                address=Address(CONNECTOR, chat),
                sender_id=chat,
                sender_name=chat,
                text=f"message number {number}",
                received_at=self._clock.wall(),
                agent=self._agent,
            )
            self._answers[name] = trio.Event()
            self.ways[name] = Way(now_ns())
            await ingress.accept(inbound)
            await self._answers[name].wait()
            del self._answers[name]
