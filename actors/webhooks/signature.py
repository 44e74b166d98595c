"""Checks the signatures of incoming webhooks and signs outgoing ones; pure.

Scheme `standard` is Standard Webhooks (standardwebhooks.com, 1.0.0): HMAC-SHA256 over
id, time and body, so each delivery is accepted once and only while it is fresh. Scheme
`github` is GitHub's `X-Hub-Signature-256`, which signs the body alone: there the
signature serves as the id, because whoever repeats a body can make up another id.

Whatever a request lacks, the same digests are computed and compared: the time of the
answer tells nobody what was wrong, or whether the webhook exists.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

Scheme = Literal["standard", "github"]
Reason = Literal["bad_signature", "stale", "future"]
Keys = tuple[bytes, bytes]
"""A webhook's key and the one before; where there was none, a random one. Always two,
so that nobody sees how many there are."""

PREFIX = "whsec_"
"""Begins a secret whose rest is the key in base64."""

SHORTEST_KEY = 16
"""Bytes. A shorter key can be guessed from one signed body."""

MOST_SIGNATURES = 8
"""Most signatures of one request that are checked: senders give one for each key."""

ID_HEADER = "webhook-id"
TIME_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
GITHUB_SIGNATURE = "x-hub-signature-256"
GITHUB_EVENT = "x-github-event"
GITHUB_DELIVERY = "x-github-delivery"

# Why no full stop: it separates id, time and body in the signed text, so an id with one
# could be read as a shorter id with another time.
ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,128}")
TIME = re.compile(r"[0-9]{1,12}")


class Signed(msgspec.Struct, frozen=True):
    """A request with a right signature."""

    key: str
    """Identifies it among all requests of its webhook; made by a holder of the key."""

    event: str = ""
    """The event's name, from the header; empty: the body has it."""

    delivery: str = ""
    """The sender's id, for people."""


class Rejected(msgspec.Struct, frozen=True):
    """A request that is refused."""

    reason: Reason


def key_of(secret: str) -> bytes:
    """Give the key of a secret.

    Args:
        secret: `whsec_` and base64, or any text, whose UTF-8 is the key.

    Raises:
        ValueError: wrong base64, or the key is too short; the text does not hold the
            secret.
    """
    key = secret.encode()
    if secret.startswith(PREFIX):
        encoded = secret.removeprefix(PREFIX)
        try:
            key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"what follows {PREFIX} is not base64") from error
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"its key is shorter than {SHORTEST_KEY} bytes")
    return key


def sign(key: bytes, name: str, at: int, body: bytes) -> str:
    """Make the signature of scheme `standard`.

    Args:
        name: the delivery's id; has no full stop.
        at: Unix seconds of this attempt.
    """
    digest = _digest(key, f"{name}.{at}.".encode() + body)
    return f"v1,{base64.b64encode(digest).decode()}"


def sign_github(key: bytes, body: bytes) -> str:
    """Make the signature of scheme `github`."""
    return f"sha256={_digest(key, body).hex()}"


def verify(
    scheme: Scheme,
    keys: Keys,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    window: float,
) -> Signed | Rejected:
    """Decide whether a request is accepted.

    Args:
        keys: one of them must have signed it.
        headers: by name in lower case.
        now: Unix seconds.
        window: seconds by which the sender's clock may differ, both ways.
    """
    if scheme == "github":
        return _verify_github(keys, headers, body)
    return _verify_standard(keys, headers, body, now, window)


def _verify_standard(
    keys: Keys, headers: Mapping[str, str], body: bytes, now: float, window: float
) -> Signed | Rejected:
    name, at = headers.get(ID_HEADER, ""), headers.get(TIME_HEADER, "")
    signed = f"{name}.{at}.".encode("utf-8", "replace") + body
    is_right = _is_one_of(keys, signed, _standard(headers.get(SIGNATURE_HEADER, "")))
    if not (is_right and ID.fullmatch(name) and TIME.fullmatch(at)):
        return Rejected("bad_signature")
    # Why after the signature: a stranger learns nothing from the answer.
    if int(at) < now - window:
        return Rejected("stale")
    if int(at) > now + window:
        return Rejected("future")
    return Signed(key=name, delivery=name)


def _verify_github(
    keys: Keys, headers: Mapping[str, str], body: bytes
) -> Signed | Rejected:
    given = headers.get(GITHUB_SIGNATURE, "")
    if not _is_one_of(keys, body, _github(given)):
        return Rejected("bad_signature")
    return Signed(
        key=hashlib.sha256(body).hexdigest(),
        event=headers.get(GITHUB_EVENT, ""),
        delivery=headers.get(GITHUB_DELIVERY, ""),
    )


def _standard(header: str) -> tuple[bytes, ...]:
    """Read the HMAC-SHA256 signatures of a header; others are ignored."""
    found: list[bytes] = []
    for each in header.split(" ")[:MOST_SIGNATURES]:
        version, _, encoded = each.partition(",")
        if version == "v1":
            found.append(_bytes_of(encoded))
    return tuple(found)


def _bytes_of(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _github(header: str) -> tuple[bytes, ...]:
    algorithm, _, encoded = header.partition("=")
    try:
        return (bytes.fromhex(encoded),) if algorithm == "sha256" else ()
    except ValueError:
        return ()


def _is_one_of(keys: Keys, signed: bytes, given: tuple[bytes, ...]) -> bool:
    """Tell whether one of the keys made one of the signatures; never stops early."""
    is_right = False
    for key in keys:
        expected = _digest(key, signed)
        for each in given or (b"",):
            is_right |= hmac.compare_digest(expected, each)
    return is_right


def _digest(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()
