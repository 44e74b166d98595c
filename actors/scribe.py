"""Writes down an agent's days, one file each (F162)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors.errors import ToolError
from runtime.actor import Actor
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig

if TYPE_CHECKING:
    from actors.memory_kit import MemoryKit
    from actors.ports import LogBook
    from runtime.clock import Clock

LOG = EventLog("memory")

DAY = 86_400.0


class WriteDown(msgspec.Struct, frozen=True):
    """An entry for the day it belongs to."""

    at: float
    """Unix seconds."""

    text: str


class Tidy(msgspec.Struct, frozen=True):
    """A note to itself: remove what is too old."""


class Scribe(Actor):
    """Keeps the files in the order of the entries, and the disk off everybody's way.

    Takes: `WriteDown`, from the memory.
    Sends: nothing.
    Keeps: nothing. Files of days long past go, once a day.
    Fails: never by a disk that fails; the entry is in the store all the same.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1_000)

    def __init__(self, agent: str, book: LogBook, kit: MemoryKit, clock: Clock) -> None:
        super().__init__()
        self._agent = agent
        self._book = book
        self._keep = kit.config.log_days * DAY
        self._metrics = kit.metrics
        self._clock = clock

    def on_start(self) -> None:
        """Look for what is too old, now and every day."""
        if self._keep:
            self.note(Tidy())
            self.every(DAY, Tidy())

    async def on_receive(self, message: object) -> None:
        """Write one entry, or remove what is too old."""
        match message:
            case WriteDown(at=at, text=text):
                await self._write(at, text)
            case Tidy():
                await self._tidy()
            case _:
                super().on_receive(message)

    async def _write(self, at: float, text: str) -> None:
        try:
            await self._book.append(self._agent, at, text)
            self._metrics.log(self._agent, "ok")
        except ToolError as error:
            self._metrics.log(self._agent, "failed")
            LOG.warning("daily log not written", agent=self._agent, why=str(error))

    async def _tidy(self) -> None:
        before = self._clock.wall() - self._keep
        try:
            removed = await self._book.prune(self._agent, before)
        except ToolError as error:
            LOG.warning("daily logs not tidied", agent=self._agent, why=str(error))
            return
        if removed:
            self._metrics.logs_removed(removed)
            LOG.info("old daily logs removed", agent=self._agent, count=removed)
