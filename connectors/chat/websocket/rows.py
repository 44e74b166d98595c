"""The rows of what was said to clients, and how they are read; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from runtime.entries import StoredEntry

LOG = EventLog("websocket")

CLIENTS, SAID, PLACES = "socket_client", "socket_said", "socket_place"

T = TypeVar("T")


class Client(msgspec.Struct, frozen=True):
    """The body of a row: one client."""

    chat: str
    last: int = 0
    """The number of the last message that was said to it."""

    has: int = 0
    """The number of the last message that it has."""

    seen_at: float = 0.0
    """Unix seconds of when it was here last."""

    is_passing: bool = False
    """Whether it cannot come back: it never said who it is."""


class Said(msgspec.Struct, frozen=True):
    """The body of a row: one message for a client."""

    number: int
    text: str
    agent: str
    delivery: str
    reply_to: str = ""
    """What the client called the message that this answers."""

    trouble: str = ""
    is_aside: bool = False


class Place(msgspec.Struct, frozen=True):
    """The body of a row: where a delivery stands."""

    chat: str
    number: int


def read(row: StoredEntry, shape: type[T]) -> T | None:
    """Read a row; what cannot be read is left out, and said."""
    try:
        return msgspec.json.decode(row.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        LOG.fault("row cannot be read", error, kind=row.kind, id=row.id)
        return None


def said_id(number: int) -> str:
    """Write a number so that rows sort by it."""
    return f"{number:015d}"


def said_of(number: int, delivery: Delivery) -> Said:
    """Give what is kept of a delivery."""
    prefix = f"{delivery.address.chat}/"
    theirs = delivery.reply_to.removeprefix(prefix + "=")
    is_theirs = delivery.reply_to.startswith(prefix + "=")
    return Said(
        number=number,
        text=delivery.text,
        agent=delivery.agent,
        delivery=delivery.id,
        reply_to=theirs if is_theirs else "",
        trouble=delivery.trouble,
        is_aside=delivery.is_aside,
    )
