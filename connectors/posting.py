"""Sends webhooks: signs each try, by the guarded way out.

Where it may connect to is decided in `fetch/network.py`, by the addresses themselves.
Only the operator's own word (`private`) lets one webhook, and nobody else, reach a
place that is not public. What is told of a failure names the host and nothing more of
the address, which may hold a token.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from actors.notices import Announcer, Subscription
from actors.notifying import Receiver
from actors.rules.notifying import Policy, Posted
from actors.rules.webhook_signature import (
    ID_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    key_of,
    sign,
)
from connectors.fetch.errors import FetchError
from connectors.fetch.late import LateFetcher
from connectors.fetch.messages import FetchRequest
from connectors.fetch.urls import read_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack

    from actors.notifying import Post
    from actors.webhook_metrics import WebhookMetrics
    from connectors.config import AppConfig
    from connectors.fetch.messages import Fetch, Fetched
    from connectors.tool_config import FetchConfig
    from connectors.webhook_config import WebhookOutConfig
    from runtime.clock import Clock

AGENT = "callboard-webhooks/1"
MOST_ANSWER = 65_536
"""Bytes that are read of an answer; nothing of it is used."""

HOUR, DAY = 3600.0, 86_400.0


class Poster:
    """Sends the events of one webhook; an `actors.notifying.Post`.

    Args:
        url: where to.
        key: what it is signed with.
        fetch: the way out.
        wall: gives Unix seconds.
    """

    def __init__(
        self, url: str, key: bytes, fetch: Fetch, wall: Callable[[], float]
    ) -> None:
        self._url = url
        self._key = key
        self._fetch = fetch
        self._wall = wall

    async def __call__(self, name: str, body: bytes) -> Posted:
        """Send one event; tell what came of it."""
        at = int(self._wall())
        headers = (
            ("content-type", "application/json"),
            ("user-agent", AGENT),
            (ID_HEADER, name),
            (TIME_HEADER, str(at)),
            (SIGNATURE_HEADER, sign(self._key, name, at, body)),
        )
        request = FetchRequest(
            url=self._url, method="POST", headers=headers, body=body, wants_body=False
        )
        try:
            fetched = await self._fetch(request)
        except FetchError as error:
            return Posted(0, str(error))
        return Posted(fetched.status, "", retry_after_of(fetched))


def retry_after_of(fetched: Fetched) -> float:
    """Read how many seconds a receiver asks to wait; 0: it does not say so.

    Only of numbers: a date would need both clocks to be right.
    """
    text = fetched.headers.get("retry-after", "").strip()
    seconds = float(text) if text.isascii() and text.isdigit() else 0.0
    return seconds if math.isfinite(seconds) else 0.0


def make_receivers(
    config: AppConfig, clock: Clock, metrics: WebhookMetrics, stack: AsyncExitStack
) -> tuple[Receiver, ...]:
    """Make what sends the webhooks of the settings; nothing is connected yet."""
    found: list[Receiver] = []
    for name, webhook in config.webhooks.out.items():
        fetcher = way_to(webhook, config.fetch)
        stack.push_async_callback(fetcher.aclose)
        key = key_of(webhook.secret.reveal())
        post = Poster(webhook.url, key, fetcher.fetch, clock.wall)
        found.append(make_receiver(name, webhook, post, metrics))
    return tuple(found)


def way_to(webhook: WebhookOutConfig, fetch: FetchConfig) -> LateFetcher:
    """Give one webhook a way out of its own.

    What one webhook may reach because it is `private`, no other and no agent may.
    """
    target = read_url(webhook.url)
    host = f"[{target.host}]" if ":" in target.host else target.host
    return LateFetcher(
        msgspec.structs.replace(
            fetch,
            timeout=webhook.timeout,
            max_bytes=MOST_ANSWER,
            max_at_once=webhook.at_once,
        ),
        (f"{host}:{target.port}",) if webhook.private else (),
    )


def make_receiver(
    name: str, webhook: WebhookOutConfig, post: Post, metrics: WebhookMetrics
) -> Receiver:
    """Make what sends one webhook.

    Args:
        name: in the settings.
        webhook: its settings.
        post: sends one event.
        metrics: what is counted.
    """
    return Receiver(
        name=name,
        post=post,
        policy=Policy(
            attempts=webhook.attempts,
            first_wait=webhook.first_wait,
            longest_wait=webhook.longest_wait,
            keep=webhook.keep_hours * HOUR,
        ),
        at_once=webhook.at_once,
        most=webhook.max_waiting,
        keep_dead=webhook.keep_dead_days * DAY,
        metrics=metrics,
    )


def announcer_of(config: AppConfig) -> Announcer:
    """Say who is told of what."""
    return Announcer(
        tuple(
            Subscription(
                name=name,
                events=webhook.events,
                agents=webhook.agents,
                has_texts=webhook.texts,
            )
            for name, webhook in config.webhooks.out.items()
        )
    )
