"""An ingress that keeps what it was given, and fails or waits to order."""

from __future__ import annotations

import trio

from actors.messages.inbound import Inbound
from actors.transport import Earlier, RefusedAttempt


class FakeIngress:
    """Stands for the connector actor: stores in a list instead of a database."""

    def __init__(self) -> None:
        self.accepted: list[Inbound] = []
        self.answered: dict[tuple[str, str], Earlier] = {}
        """By connector and platform id: what became of it."""

        self.withdrawn: list[tuple[str, str]] = []
        """Connector and platform id of what was deleted."""

        self.refused: list[RefusedAttempt] = []
        self.error: Exception | None = None
        """Raised instead of accepting, as long as it is set."""

        self.strangers: set[str] = set()
        """Ids of senders who may not write."""

        self.unsure: Exception | None = None
        """Raised instead of telling who is admitted, as long as it is set."""

        self.unreadable: Exception | None = None
        """Raised instead of withdrawing, as long as it is set."""

        self.turned_away: list[Inbound] = []
        """What strangers wrote; nothing of it is kept."""

        self.gate: trio.Event | None = None
        """Accepting waits for it, as a slow disk would make it wait."""

        self.gates: dict[str, trio.Event] = {}
        """The same for what these senders write."""

        self.is_asked = trio.Event()
        """Set by the first message, before it is stored."""

        self.remembers = False
        """Whether what was accepted is known, and waits for its answers."""

        self._keys: dict[tuple[str, str], Inbound] = {}
        self._given = 0
        self._news = trio.Event()

    async def is_admitted(self, inbound: Inbound) -> bool:
        """Tell whether its sender is no stranger."""
        await trio.lowlevel.checkpoint()
        if self.unsure is not None:
            raise self.unsure
        return inbound.sender_id not in self.strangers

    async def accept(self, inbound: Inbound) -> bool:
        """Keep a message; False if its key was there before, or from a stranger."""
        self.is_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if inbound.sender_id in self.gates:
            await self.gates[inbound.sender_id].wait()
        if self.error is not None:
            raise self.error
        if inbound.sender_id in self.strangers:
            self.turned_away.append(inbound)
            self._news.set()
            return False
        key = (inbound.address.connector, inbound.platform_id)
        if key in self._keys:
            return False
        self._keys[key] = inbound
        self.accepted.append(inbound)
        self._news.set()
        return True

    async def earlier(self, connector: str, platform_id: str) -> Earlier | None:
        """Tell what a test says became of a message."""
        await trio.lowlevel.checkpoint()
        key = (connector, platform_id)
        if self.remembers and key in self._keys and key not in self.answered:
            return Earlier(self._keys[key], "", ())
        return self.answered.get(key)

    async def withdraw(self, connector: str, platform_id: str) -> None:
        """Keep what was deleted."""
        await trio.lowlevel.checkpoint()
        if self.unreadable is not None:
            raise self.unreadable
        self.withdrawn.append((connector, platform_id))

    def refuse(self, attempt: RefusedAttempt) -> None:
        """Keep who was not let in."""
        self.refused.append(attempt)

    async def next(self) -> Inbound:
        """Give the next message that was accepted; fails after five seconds."""
        with trio.fail_after(5):
            return await self.next_or_wait()

    async def next_or_wait(self) -> Inbound:
        """Give the next message that was accepted, however long that takes."""
        while self._given == len(self.accepted):
            self._news = trio.Event()
            await self._news.wait()
        self._given += 1
        return self.accepted[self._given - 1]
