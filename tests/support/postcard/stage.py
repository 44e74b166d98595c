"""A person in front of a desk, for the contract suites of transports."""

from __future__ import annotations

import trio

from connectors.chat.platforms import TransportParts, platform_in
from tests.fakes.chat.ingress import FakeIngress
from tests.support.postcard.office import OFFICES, Office
from tests.support.postcard.platform import PostcardConfig


class PostcardStage:
    """An office with one agent's desk and one person."""

    can_repeat = True

    def __init__(self, parts: TransportParts) -> None:
        self.parts = parts
        self.office = OFFICES["stage"] = Office()
        config = PostcardConfig(office="stage", agent="anna")
        platform = platform_in("tests.support.postcard")
        self.transport = platform.make_transport("postcard", config, parts)
        self.ingress = FakeIngress()
        self.listening = trio.CancelScope()
        self.ended = trio.Event()

    async def write(self, text: str, key: str = "") -> None:
        self.office.write(text, key)

    def acknowledged(self) -> int:
        return len(self.office.stamped)

    def shown(self) -> str:
        return "\n".join(self.office.sent.values())

    async def wait_change(self) -> None:
        await self.office.wait_change()
