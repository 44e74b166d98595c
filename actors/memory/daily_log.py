"""The actor that writes the daily log: one file for each agent and day."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from actors.errors import ToolError
from actors.memory.kit import MemoryKit
from actors.ports import LogBook
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.clock import Clock
from runtime.telemetry.logs import EventLog

LOG = EventLog("memory")

DAY = 86_400.0


class WriteLogEntry(msgspec.Struct, frozen=True):
    """An entry for the file of its day."""

    at: float
    """Unix seconds."""

    text: str


class RemoveOldLogs(msgspec.Struct, frozen=True):
    """A note to itself: delete files older than the settings keep."""


class Scribe(Actor):
    """Writes log entries in their order, away from the actors that cause them.

    Takes: `WriteLogEntry`, from the memory.
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
            self.note(RemoveOldLogs())
            self.every(DAY, RemoveOldLogs())

    async def on_receive(self, message: object) -> None:
        """Write one entry, or remove what is too old."""
        match message:
            case WriteLogEntry(at=at, text=text):
                await self._write(at, text)
            case RemoveOldLogs():
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
