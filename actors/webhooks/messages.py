"""Messages of webhooks: incoming ones, their answers, receivers of outgoing ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from actors.messages.inbound import Address
from actors.webhooks.retry import PostResult, WebhookRetryPolicy

if TYPE_CHECKING:
    from runtime.telemetry.metrics import Metrics


UNKNOWN = "(unknown)"
"""The label of names that are not in the settings: strangers choose no labels."""


class WebhookMetrics:
    """The counters of incoming and outgoing webhooks."""

    def __init__(self, metrics: Metrics) -> None:
        self.received = metrics.counter(
            "callboard_webhooks_received",
            "Webhooks that came in, by name and what became of them.",
            ("webhook", "outcome"),
        )
        self.sent = metrics.counter(
            "callboard_webhooks_sent",
            "Tries to send a webhook, by name and what came of them.",
            ("webhook", "outcome"),
        )
        self.waiting = metrics.gauge(
            "callboard_webhooks_waiting",
            "Events that are not sent yet, by webhook.",
            ("webhook",),
        )


Post = Callable[[str, bytes, str], Awaitable[PostResult]]
"""Sends an event to one receiver, by id, body and traceparent (empty: none); has its
address and key. Raises nothing but cancellation."""


class Receiver(msgspec.Struct, frozen=True, kw_only=True):
    """One outgoing webhook."""

    name: str
    post: Post
    policy: WebhookRetryPolicy
    at_once: int
    """Most events sent at the same time."""

    most: int
    """Most events that may wait, and most given-up events that are kept."""

    keep_dead: float
    """Seconds that given-up events are kept."""

    metrics: WebhookMetrics


class SendNotices(msgspec.Struct, frozen=True):
    """From the store's keeper: another program changed rows."""


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: start the tasks of an incoming webhook. Answered by `Triggered`.

    The request's signature was right.
    """

    webhook: str
    """Name in the settings."""

    key: str
    """Identifies this delivery among all of the webhook."""

    agents: tuple[str, ...]
    """Agents that get a task each; at least one."""

    address: Address
    """Where they answer."""

    platform: str
    """Kind of that connector."""

    text: str
    """The task."""

    traceparent: str = ""
    """Of the request, as in `Inbound`."""

    is_group: bool = True
    """Whether it belongs to the chat's conversation; else to one of its own."""

    per_minute: int
    """Most deliveries of this webhook in a minute."""

    max_open: int
    """Most tasks of this webhook that may be open."""


class Triggered(msgspec.Struct, frozen=True):
    """The tasks are stored and will be done."""

    ids: tuple[str, ...]
    """Of the tasks' messages, in the order of the agents."""

    is_new: bool
    """False: this delivery was stored before, with these ids."""
