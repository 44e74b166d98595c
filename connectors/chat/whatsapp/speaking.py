"""By which number something is said, and what its refusal means to a courier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.errors import (
    DeliveryBusyError,
    DeliveryRefusedError,
)
from actors.rules.recent import Recent
from connectors.chat.faults import RefusedError
from connectors.chat.whatsapp import content
from connectors.chat.whatsapp.errors import WindowError
from connectors.chat.whatsapp.uploads import Uploads
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from connectors.blobs import BlobFolder
    from connectors.chat.whatsapp.number import Number
    from connectors.chat.whatsapp.shared import Shared

LOG = EventLog("whatsapp")

MEND_WAIT = 60.0
"""Seconds until an account is tried again that its operator must mend."""

# Chosen: as a courier asks anyway; nobody at Meta is asked for it.
WINDOW_LOOK = 30.0
"""Seconds between looks whether somebody has written again."""

MOST_EXPLAINED = 1_000

OUTSIDE = (
    "this person has not written for 24 hours, and WhatsApp takes nothing for them but"
    " templates (131047)"
)


class Speaking:
    """The numbers, which of them speaks, and to whom none may.

    Args:
        shared: what all numbers share.
        blobs: has the bytes of files that agents send; None: nobody has.
    """

    def __init__(self, shared: Shared, blobs: BlobFolder | None) -> None:
        self._shared = shared
        self._uploads = Uploads(blobs)
        self._explained: Recent[str, bool] = Recent(MOST_EXPLAINED)

    def choose(self, chat: str) -> tuple[Number, str]:
        """Give the number and the person of a chat.

        Raises:
            DeliveryRefusedError: it is none of ours.
        """
        try:
            number_id, person = content.parted(chat)
        except ValueError as error:
            raise DeliveryRefusedError(str(error)) from error
        number = self._shared.numbers.get(number_id)
        if number is None:
            text = f"no agent has the number {number_id}: see [connectors.…accounts]"
            raise DeliveryRefusedError(text)
        return number, person

    async def send(self, delivery: Delivery, number: Number, person: str) -> str:
        """Say one message; gives its id.

        Raises:
            DeliveryRefusedError: the bytes of its file are gone.
            PlatformError: as `Graph.ask`.
        """
        file = delivery.file
        media = None if file is None else await self._uploads.bring(file, number)
        marker = content.marker_of(delivery.id)
        words = prefixed(delivery.text, delivery.agent, number).rstrip()
        reply_to = self._shown_above(delivery)
        self._shared.said.intend(marker, delivery.address.chat)
        body = content.message(person, words, marker, reply_to, media)
        try:
            return await number.send(body)
        except WindowError:
            raise
        except RefusedError:
            if not reply_to:
                raise
        # What it was to stand below may be gone, and the words count.
        body = content.message(person, words, marker, media=media)
        return await number.send(body)

    def _shown_above(self, delivery: Delivery) -> str:
        """Give what an answer is shown below: what it answers, unless that is clear."""
        newest = self._shared.newest.get(delivery.address.chat, "")
        is_clear = delivery.part > 0 or delivery.reply_to == newest
        return "" if is_clear else delivery.reply_to

    def check_window(self, delivery: Delivery) -> None:
        """Keep or give up what may not be said now.

        Raises:
            DeliveryBusyError: it is kept until the person writes again.
            DeliveryRefusedError: it is given up.
        """
        now = self._shared.clock.wall()
        if self._shared.windows.is_closed(delivery.address.chat, now):
            raise self.outside(delivery)

    def outside(self, delivery: Delivery) -> DeliveryBusyError | DeliveryRefusedError:
        """Say that somebody's window is closed, to the operator once."""
        shared = self._shared
        is_kept = shared.config.outside_window == "keep"
        if delivery.id not in self._explained:
            self._explained[delivery.id] = True
            number, _ = self.choose(delivery.address.chat)
            shared.figures.event(number.agent, "window_closed")
            LOG.warning(
                "not said yet" if is_kept else "not said",
                delivery=delivery.id,
                correlation_id=delivery.correlation_id,
                chat=delivery.address.chat,
                why=OUTSIDE,
                what_then="it is said should they write within a day"
                if is_kept
                else "callboard queue retry, once they have written",
            )
        if is_kept:
            return DeliveryBusyError(OUTSIDE, retry_after=WINDOW_LOOK)
        return DeliveryRefusedError(OUTSIDE)


def prefixed(text: str, agent: str, number: Number) -> str:
    """Say who speaks, where another's number says it."""
    return text if agent in {"", number.agent} else f"{agent}: {text}"
