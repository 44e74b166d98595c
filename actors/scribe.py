"""Writes down an agent's days, one file each (F162)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors.errors import ToolError
from runtime.actor import Actor
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig

if TYPE_CHECKING:
    from actors.memory_kit import MemoryMetrics
    from actors.ports import LogBook

LOG = EventLog("memory")


class WriteDown(msgspec.Struct, frozen=True):
    """An entry for the day it belongs to."""

    at: float
    """Unix seconds."""

    text: str


class Scribe(Actor):
    """Keeps the files in the order of the entries, and the disk off everybody's way.

    Takes: `WriteDown`, from the memory.
    Sends: nothing.
    Keeps: nothing.
    Fails: never by a disk that fails; the entry is in the store all the same.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1_000)

    def __init__(self, agent: str, book: LogBook, metrics: MemoryMetrics) -> None:
        super().__init__()
        self._agent = agent
        self._book = book
        self._metrics = metrics

    async def on_receive(self, message: object) -> None:
        """Write one entry."""
        if not isinstance(message, WriteDown):
            super().on_receive(message)
            return
        try:
            await self._book.append(self._agent, message.at, message.text)
            self._metrics.log(self._agent, "ok")
        except ToolError as error:
            self._metrics.log(self._agent, "failed")
            LOG.warning("daily log not written", agent=self._agent, why=str(error))
