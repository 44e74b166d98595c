"""Has one message stored, however long that takes, and tells its sender of trouble.

Used by connectors whose platform keeps a message until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import trio

from actors.errors import (
    NOT_STORED,
    ChatError,
    MessageRefusedError,
    OverloadedError,
    StoppingError,
)
from actors.messages import Inbound
from connectors.chat.album import without_files
from connectors.chat.waits import Waits
from runtime.errors import KernelError, StoreUnavailableError

if TYPE_CHECKING:
    from actors.transport import Ingress
    from runtime.logs import EventLog

LATER = (OverloadedError, StoppingError, StoreUnavailableError)
"""Nothing was stored, and it is tried again: the platform keeps the message."""

Ended = Literal["handed_in", "refused", "lost"]
"""How it ended: stored; the domain never takes it; or it could not be stored."""

Trouble = Literal["waits", "refused", "lost"]
"""Of what a sender is told."""

Fill = Callable[[Inbound], Awaitable[Inbound]]
"""Fetches what came with a message."""

Tell = Callable[[Inbound, str, Trouble], Awaitable[object]]
"""Says something where a message was written, as well as it goes."""


@dataclass(frozen=True)
class Entrance:
    """The way of one account's messages into the company."""

    log: EventLog
    count: Callable[[Ended], object]
    """Takes note of how a message ended."""

    tell: Tell
    """Asked only where somebody waits for an answer."""

    async def hand_in(
        self, inbound: Inbound, ingress: Ingress, fill: Fill | None
    ) -> None:
        """Have a message stored.

        Args:
            inbound: as it came, with nothing fetched.
            ingress: who stores it.
            fill: asked only for those who may write: a stranger has us carry nothing;
                None: there is nothing to fetch.
        """
        try:
            if fill is not None and await self._insist(ingress.is_admitted, inbound):
                inbound = await fill(inbound)
            await self._store(inbound, ingress)
        except MessageRefusedError as error:
            self.count("refused")
            await self._tell(inbound, str(error), "refused")
        except (ChatError, KernelError) as error:
            # It would be refused for ever, and hold back all that comes after it.
            self.count("lost")
            self.log.fault("message not taken", error, message=inbound.platform_id)
            await self._tell(inbound, "this message could not be taken", "lost")
        else:
            self.count("handed_in")

    async def _store(self, inbound: Inbound, ingress: Ingress) -> None:
        """Have a message stored; without its files if it cannot be with them."""
        try:
            await self._insist(ingress.accept, inbound)
        except KernelError as error:
            if not inbound.attachments:
                raise
            # Why once more: the words are worth an answer, and say what is missing.
            self.log.fault("files not taken", error, message=inbound.platform_id)
            await self._insist(ingress.accept, without_files(inbound))

    async def _insist(
        self, ask: Callable[[Inbound], Awaitable[bool]], inbound: Inbound
    ) -> bool:
        """Ask the company about a message until it answers; the sender is told once."""
        waits = Waits()
        is_told = False
        while True:
            try:
                return await ask(inbound)
            except LATER as error:
                why = str(error) or "?"
                self.log.warning("message waits", message=inbound.platform_id, why=why)
                if not is_told and not isinstance(error, StoppingError):
                    is_told = True
                    await self._tell(inbound, words_of(error), "waits")
                await trio.sleep(waits.next())

    async def _tell(self, inbound: Inbound, words: str, trouble: Trouble) -> None:
        """Tell somebody who waits for an answer that there is none yet."""
        if is_for_agent(inbound):
            await self.tell(inbound, f"⚠️ {words}", trouble)


def words_of(error: Exception) -> str:
    """Tell somebody why a message waits."""
    is_of_the_store = isinstance(error, StoreUnavailableError)
    why = NOT_STORED if is_of_the_store else str(error) or type(error).__name__
    return f"{why}. It waits here, and is tried again by itself."


def is_for_agent(inbound: Inbound) -> bool:
    """Whether somebody speaks to an agent, as far as the platform tells."""
    quoted = inbound.quoted
    is_named = bool(inbound.agent or inbound.mentions)
    return inbound.is_direct or is_named or (quoted is not None and bool(quoted.agent))
