"""A stage for each transport that has a `Presence`: one suite plays on all."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import trio

from tests.fakes.presence import Screen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from actors.messages import Address
    from actors.transport import Transport


class PresenceStage(Protocol):
    """A chat with a person in it, in front of a transport that listens."""

    address: Address
    """Of the chat."""

    agent: str
    """An agent that is in the chat."""

    @property
    def transport(self) -> Transport:
        """The transport under test."""
        ...

    async def write(self) -> str:
        """Have the person write; give the platform's id of the message."""
        ...

    async def read(self, receipt: str) -> str | None:
        """Give what a message of ours reads now; None: it is not there."""
        ...

    async def signs(self, message: str) -> list[str]:
        """Give the signs of our agents at a message."""
        ...


class FakeStage:
    """The fake platform with messages that can be edited."""

    agent = "anna"

    def __init__(self) -> None:
        self.transport = Screen()
        self.transport._is_listening = True
        self.address = self.transport.write("hello").address

    async def write(self) -> str:
        await trio.lowlevel.checkpoint()
        return self.transport.write("hello").platform_id

    async def read(self, receipt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        return self.transport.texts.get(receipt)

    async def signs(self, message: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        signs = self.transport.hand.signs
        return [sign for (at, _), sign in signs.items() if at == message]


@asynccontextmanager
async def open_presence(name: str) -> AsyncGenerator[PresenceStage]:
    """Open the stage of a transport until the block ends."""
    assert name == "fake"
    await trio.lowlevel.checkpoint()
    yield FakeStage()
