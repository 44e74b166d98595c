"""Whether a call comes from Slack; pure.

Source: docs.slack.dev, "Verifying requests from Slack": `v0=` and the HMAC-SHA256 of
`v0:<timestamp>:<raw body>`, as hexadecimal digits. It fails closed: whatever is missing
or odd is a wrong signature.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

WINDOW = 300
"""Seconds by which Slack's clock may differ from ours."""

LONGEST = 200
"""Characters of a header that are looked at."""

Verdict = Literal["right", "bad_signature", "stale"]


def signed(secret: str, timestamp: str, body: bytes) -> str:
    """Give the signature of a call."""
    basis = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), basis, hashlib.sha256).hexdigest()


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> Verdict:
    """Check a call.

    Args:
        secret: the app's; an empty one is never right.
        headers: by their small names.
        body: every byte as it came.
        now: Unix seconds.

    Returns:
        `stale` only if the signature is right: nobody else learns of our clock.
    """
    timestamp = headers.get("x-slack-request-timestamp", "")
    given = headers.get("x-slack-signature", "")
    is_whole = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15
    if not secret or not is_whole or len(given) > LONGEST:
        return "bad_signature"
    expected = signed(secret, timestamp, body).encode()
    if not hmac.compare_digest(expected, given.encode(errors="replace")):
        return "bad_signature"
    return "right" if abs(now - int(timestamp)) <= WINDOW else "stale"
