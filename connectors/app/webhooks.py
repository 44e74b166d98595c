"""Sends webhooks: signs each try, by the guarded way out.

Where it may connect to is decided in `fetch/fetcher.py`, by the addresses themselves.
Only the operator's own word (`private`) lets one webhook, and nobody else, reach a
place that is not public. What is told of a failure names the host and nothing more of
the address, which may hold a token.

Tells other programs of what happens at the edges, outside of any actor's commit.

Makes what `web/webhooks.py` needs of the settings: which webhooks there are.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec

from actors.journal.notices import (
    Announcer,
    Happened,
    Subscription,
    announced,
    wake_notifiers,
)
from actors.journal.parts import in_one_part
from actors.messages.inbound import Address
from actors.services import Services
from actors.webhooks.messages import Post, Receiver, WebhookMetrics
from actors.webhooks.retry import PostResult, WebhookRetryPolicy
from actors.webhooks.signature import (
    ID_HEADER,
    SHORTEST_KEY,
    SIGNATURE_HEADER,
    TIME_HEADER,
    key_of,
    sign,
)
from connectors.chat.platforms import IncomingWebhook
from connectors.config.app import AppConfig
from connectors.config.hooks import WebhookInConfig, WebhookOutConfig
from connectors.config.tools import FetchConfig
from connectors.fetch.addresses import read_url
from connectors.fetch.messages import (
    Fetch,
    Fetched,
    FetchError,
    FetchRequest,
    LateFetcher,
)
from runtime.actor.ref import ActorRef
from runtime.clock import Clock
from runtime.store.rows import Commit, Committed
from runtime.telemetry.logs import EventLog

AT_ONCE = 4
"""Events of one webhook that are sent at the same time."""

REPLAY_WINDOW = 300.0
"""Seconds by which a sender's clock may differ, as Standard Webhooks recommend."""

AGENT = "callboard-webhooks/1"
MOST_ANSWER = 65_536
"""Bytes that are read of an answer; nothing of it is used."""

HOUR, DAY = 3600.0, 86_400.0

KEEP_DEAD = 30 * DAY
"""Seconds for which events that were given up can be sent by hand."""


class Poster:
    """Sends the events of one webhook; an `actors.webhooks.messages.Post`.

    Args:
        wall: gives Unix seconds.
    """

    def __init__(
        self, url: str, key: bytes, fetch: Fetch, wall: Callable[[], float]
    ) -> None:
        self._url = url
        self._key = key
        self._fetch = fetch
        self._wall = wall

    async def __call__(self, name: str, body: bytes, traceparent: str) -> PostResult:
        """Send one event; tell what came of it."""
        at = int(self._wall())
        headers = (
            ("content-type", "application/json"),
            ("user-agent", AGENT),
            (ID_HEADER, name),
            (TIME_HEADER, str(at)),
            (SIGNATURE_HEADER, sign(self._key, name, at, body)),
            *((("traceparent", traceparent),) if traceparent else ()),
        )
        request = FetchRequest(
            url=self._url, method="POST", headers=headers, body=body, wants_body=False
        )
        try:
            fetched = await self._fetch(request)
        except FetchError as error:
            return PostResult(0, str(error))
        return PostResult(fetched.status, "", retry_after_of(fetched))


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
            max_at_once=AT_ONCE,
        ),
        (f"{host}:{target.port}",) if webhook.private else (),
    )


def make_receiver(
    name: str, webhook: WebhookOutConfig, post: Post, metrics: WebhookMetrics
) -> Receiver:
    """Make what sends one webhook."""
    return Receiver(
        name=name,
        post=post,
        policy=WebhookRetryPolicy(
            attempts=webhook.attempts,
            first_wait=webhook.first_wait,
            longest_wait=webhook.longest_wait,
            keep=webhook.keep_hours * HOUR,
        ),
        at_once=AT_ONCE,
        most=webhook.max_waiting,
        keep_dead=KEEP_DEAD,
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


LOG = EventLog("webhooks")


class Announcing:
    """Has events stored and sent; on the kernel's thread only.

    Args:
        find: finds an actor by its name.
    """

    def __init__(
        self, services: Services, find: Callable[[str], ActorRef | None]
    ) -> None:
        self._services = services
        self._find = find

    def tell(self, *happened: Happened) -> None:
        """Store events, without waiting; each is sent once that is durable."""
        entries = announced(happened, self._services)
        if not entries:
            return

        def done(outcome: Committed | Exception) -> None:
            if isinstance(outcome, Committed):
                wake_notifiers(self._find, entries)
            else:
                LOG.warning("event not stored, and told to nobody", why=str(outcome))

        commit = Commit(at=self._services.clock.wall(), entries=entries)
        commit = in_one_part(commit, entries[0].part, entries[0].id)
        self._services.store.submit(commit, done)


def doors_of(config: AppConfig) -> dict[str, IncomingWebhook]:
    """Give the webhooks that come in, by name."""
    return {
        name: door_of(webhook, config)
        for name, webhook in config.webhooks.incoming.items()
    }


def door_of(webhook: WebhookInConfig, config: AppConfig) -> IncomingWebhook:
    """Make one."""
    connector, _, chat = webhook.chat.partition("/")
    before = webhook.previous_secret
    nobodys = secrets.token_bytes(2 * SHORTEST_KEY)
    return IncomingWebhook(
        scheme=webhook.scheme,
        keys=(
            key_of(webhook.secret.reveal()),
            nobodys if before is None else key_of(before.reveal()),
        ),
        window=REPLAY_WINDOW,
        agents=tuple(dict.fromkeys(webhook.agents)),
        address=Address(connector, chat),
        platform=str(type(config.connectors[connector]).__struct_config__.tag),
        task=webhook.task,
        events=webhook.events,
        fields=webhook.fields,
        max_chars=webhook.max_chars,
        is_group=not webhook.own_conversation,
        per_minute=webhook.per_minute,
        max_open=webhook.max_open,
    )
