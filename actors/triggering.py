"""What an edge says of a webhook that came in, and what it is answered."""

from __future__ import annotations

import msgspec

from actors.messages import Address


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: start what this webhook is for. Answered by `Triggered`.

    Only of requests whose signature was right.
    """

    webhook: str
    """Name in the settings."""

    key: str
    """What tells this delivery from all others of the webhook."""

    agents: tuple[str, ...]
    """Who is told, each with a task of its own; at least one."""

    address: Address
    """Where they answer."""

    platform: str
    """Kind of the connector that is."""

    text: str
    """What they are told."""

    is_group: bool = True
    """Whether it belongs to the chat's own conversation; else to one of its own."""

    per_minute: int
    """Most deliveries of this webhook in a minute."""

    max_open: int
    """Most tasks of this webhook that may wait for their end."""


class Triggered(msgspec.Struct, frozen=True):
    """The tasks are stored, and will be done."""

    ids: tuple[str, ...]
    """Of their messages, in the order of the agents."""

    is_new: bool
    """False: this delivery was stored before; these are the ids of then."""
