"""Whether a webhook is from whom it says, and how ours are signed; pure.

Two schemes. `standard` is that of Standard Webhooks (standardwebhooks.com, 1.0.0): an
id, a time and the body are signed with HMAC-SHA256, so each can be taken once and
only while it is fresh. `github` is GitHub's `X-Hub-Signature-256`, which signs the body
alone: there the signature itself says which delivery it is, since whoever repeats a
body can make up another id beside it.

Whatever a request lacks, the same digests are made of its body and compared: from
the time an answer takes nobody learns what was wrong, or whether there is such a
webhook at all.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Scheme = Literal["standard", "github"]
Reason = Literal["bad_signature", "stale", "future"]
Keys = tuple[bytes, bytes]
"""A webhook's key and the one before it; where there was none, one that nobody knows.
Always two: how many there are is not to be seen either."""

PREFIX = "whsec_"
"""What a secret begins with whose rest is the key in base64."""

SHORTEST_KEY = 16
"""Bytes. A shorter one is guessed from one signed body, without asking anybody."""

MOST_SIGNATURES = 8
"""Signatures of one request that are looked at: senders give one for each key."""

ID_HEADER = "webhook-id"
TIME_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
GITHUB_SIGNATURE = "x-hub-signature-256"
GITHUB_EVENT = "x-github-event"
GITHUB_DELIVERY = "x-github-delivery"

# Why no full stop: it parts id, time and body in what is signed, and an id with one
# could be read as a shorter id with another time.
ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,128}")
TIME = re.compile(r"[0-9]{1,12}")


class Signed(msgspec.Struct, frozen=True):
    """A request that is from whom it says."""

    key: str
    """What tells it from all others of its webhook; chosen by who has the key."""

    event: str = ""
    """Of what it tells, as the header says; empty: its body does."""

    delivery: str = ""
    """The sender's id of it, for people."""


class Rejected(msgspec.Struct, frozen=True):
    """A request that is not taken."""

    reason: Reason


def key_of(secret: str) -> bytes:
    """Give the key that a secret stands for.

    Args:
        secret: `whsec_` and base64, or any text, whose UTF-8 is the key.

    Raises:
        ValueError: the base64 is none, or the key is too short; the text does not
            hold the secret.
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
    """Make the signature of the standard scheme.

    Args:
        key: what both sides know.
        name: the delivery's id; without a full stop.
        at: Unix seconds of this attempt.
        body: as it is sent.
    """
    digest = _digest(key, f"{name}.{at}.".encode() + body)
    return f"v1,{base64.b64encode(digest).decode()}"


def sign_github(key: bytes, body: bytes) -> str:
    """Make the signature of GitHub's scheme."""
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
    """Decide whether a request is taken.

    Args:
        scheme: how the sender signs.
        keys: one of which must have signed it.
        headers: by name in small letters.
        body: as it came, before anything was done to it.
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
    # Why after the signature: a stranger learns nothing from asking.
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
    """Read the signatures that are HMAC-SHA256; others are none."""
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
