"""One thing that happened in a conversation, as programs and pages get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.deliveries import Delivery
from actors.ledger import Run
from actors.messages import Usage
from connectors.office.moments import moment

if TYPE_CHECKING:
    from actors.messages import ToolCall
    from runtime.rows import StoredDelivery


class Call(msgspec.Struct, frozen=True):
    """A tool that the model asked for."""

    name: str
    arguments: str
    """JSON text, as the model wrote it."""

    @classmethod
    def of(cls, call: ToolCall) -> Call:
        """Take over what is worth telling."""
        return cls(call.name, call.arguments.decode("utf-8", "replace"))


class Scene(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened; times in ISO 8601, local with offset."""

    at: str | None
    what: str
    """`heard`, `round`, `leave`, `tool`, `answered`, `deferred`, `failed`, `dropped`,
    `cancelled`, `delivery`, `compacted`, `flushed`, `reset`, or a kind of event that
    this release does not know."""

    message: str = ""
    """Id of the message that it belongs to."""

    who: str = ""
    """The person, the agent or the tool."""

    text: str = ""
    reason: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    run: Run | None = None
    due_at: str | None = None
    delivery: str = ""
    state: str = ""
    receipt: str = ""
    attempts: int = 0
    proof: str = ""
    """What a tool's receipt proves: `ok`, `bad`, or `unchecked` without the key."""


def delivery_scene(row: StoredDelivery, message: str) -> Scene:
    """Tell what became of a delivery; its words only if they are no agent's."""
    try:
        delivery = msgspec.json.decode(row.body, type=Delivery)
        text = "" if delivery.agent else delivery.text
    except ValueError:
        text = "(cannot be read by this release)"
    return Scene(
        at=moment(row.settled_at or row.at),
        what="delivery",
        message=message,
        text=text,
        delivery=row.id,
        state=row.state,
        receipt=row.receipt,
        attempts=row.attempts,
    )
