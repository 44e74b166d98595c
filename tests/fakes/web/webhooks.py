"""Webhooks as a test signs them, and a door for them."""

from __future__ import annotations

import json
from typing import Any

from actors.messages.inbound import Address
from actors.webhooks.signature import key_of, sign, sign_github
from connectors.chat.platforms import IncomingWebhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  of the specification
KEY = key_of(SECRET)
OLD_KEY = b"the key of last year"
KEYS = (KEY, OLD_KEY)
NOW = 1_700_000_000

BODY = json.dumps({"type": "deploy.done", "data": {"sha": "c0ffee"}}).encode()


def door(**fields: Any) -> IncomingWebhook:
    """Make a door to anna."""
    given: dict[str, Any] = {
        "scheme": "standard",
        "keys": KEYS,
        "window": 300.0,
        "agents": ("anna",),
        "address": Address("fake", "room"),
        "platform": "fake",
        "task": "Tell what was deployed.",
        "events": (),
        "fields": (),
        "max_chars": 8_000,
        "is_group": True,
        "per_minute": 60,
        "max_open": 100,
    }
    return IncomingWebhook(**{**given, **fields})


def signed(
    body: bytes = BODY, *, key: bytes = KEY, name: str = "d1", at: float = NOW
) -> dict[str, str]:
    """Give the headers of the standard scheme."""
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(at)),
        "webhook-signature": sign(key, name, int(at), body),
        "content-type": "application/json",
    }


def signed_by_github(
    body: bytes = BODY, *, key: bytes = KEY, event: str = "push"
) -> dict[str, str]:
    """Give the headers of GitHub's scheme."""
    return {
        "x-hub-signature-256": sign_github(key, body),
        "x-github-event": event,
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "content-type": "application/json",
    }
