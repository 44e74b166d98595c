"""What is said to who sends events, and by what it sends them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from actors.rules.notifying import Policy, Posted
from actors.webhook_metrics import WebhookMetrics

Post = Callable[[str, bytes], Awaitable[Posted]]
"""Sends an event to one receiver: its id and its body. Never raises, but to be
cancelled; knows address and key."""


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook that is sent."""

    name: str
    post: Post
    policy: Policy
    at_once: int
    """Most events sent at the same time."""

    most: int
    """Most events that may wait, and most that are kept of those given up."""

    keep_dead: float
    """Seconds for which those are kept."""

    metrics: WebhookMetrics


class NewNotices(msgspec.Struct, frozen=True):
    """Told: the rows with these ids are durable."""

    ids: tuple[str, ...]


class LookForNotices(msgspec.Struct, frozen=True):
    """Told by the store's keeper: another program changed rows."""
