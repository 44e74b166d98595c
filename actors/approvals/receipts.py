"""Tool receipts: proof that a tool was called, and its result; pure.

A receipt is an HMAC-SHA256 over all that can be claimed of a call, under a key that
only the runtime has. A model can write that it called a tool; it cannot write this.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

import msgspec

from actors.messages.inbound import Image

# Written into each receipt: what an older release signed stays what it was.
SCHEMA = "callboard-tool-receipt-1"


class ToolReceipt(msgspec.Struct, frozen=True):
    """The proof that is stored beside the result of a finished call."""

    name: str
    arguments: str
    """SHA-256 of the arguments as the model wrote them, in hex."""

    at: float
    """Unix seconds of its end."""

    receipt: str
    """HMAC-SHA256, in hex."""


class ReceiptClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody says of a tool call, to be checked against its receipt."""

    conversation: str
    """The session's key."""

    message: str
    """Id of the message that was answered."""

    call_id: str
    name: str
    arguments: str
    result: str
    """SHA-256 of the result, in hex; see `digest_of_result`."""

    at: float


def digest_of_arguments(arguments: bytes) -> str:
    """Hash a call's arguments."""
    return hashlib.sha256(arguments).hexdigest()


def digest_of_result(text: str, images: Iterable[Image], *, is_error: bool) -> str:
    """Hash all of a result that the model is shown."""
    parts: list[str | bytes | bool] = [is_error, text.encode("utf-8", "surrogatepass")]
    for image in images:
        parts += [image.media_type, image.content]
    return hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest()


def sign(key: bytes, claim: ReceiptClaim) -> str:
    """Make the receipt for a call."""
    # Why msgpack: it says how long each part is, so no two claims look the same.
    words = msgspec.msgpack.encode((SCHEMA, *msgspec.structs.astuple(claim)))
    return hmac.new(key, words, hashlib.sha256).hexdigest()


def is_genuine(key: bytes, claim: ReceiptClaim, receipt: str) -> bool:
    """Whether this runtime signed exactly that."""
    signed = sign(key, claim).encode()
    return hmac.compare_digest(signed, receipt.encode("utf-8", "surrogatepass"))
