"""What a Chat Completions provider's errors mean to us.

Pure. Tells what may be tried again from what may not, and writes a short text
without secrets: the key never, of the provider's own words at most 200 characters.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from typing import Final

import msgspec

from actors.errors import ModelBusyError, ModelError, ModelRefusedError

MAX_SNIPPET = 200
MAX_RETRY_AFTER: Final = 86_400.0
"""Seconds; a provider that asks for more is asked again tomorrow."""

BUSY = frozenset({408, 409, 425, 429})
QUOTA = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
)
REFUSED_TYPES = frozenset(
    {
        "authentication_error",
        "invalid_request_error",
        "model_not_found",
        "not_found_error",
        "permission_error",
    }
)
TOO_LONG = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|too many tokens",
    re.IGNORECASE,
)
SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")


class ErrorBody(msgspec.Struct, frozen=True):
    """The object under `error`."""

    message: str | None = None
    type: str | None = None
    code: str | int | float | None = None


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """An error response as the API documents it, and as others write it."""

    error: ErrorBody | str | None = None
    message: str | None = None
    detail: str | None = None


class Provider(msgspec.Struct, frozen=True):
    """Whom an error's text speaks of, and what it must not say."""

    name: str
    """Host and model."""

    key: str = ""

    def busy(self, text: str, *, retry_after: float | None = None) -> ModelBusyError:
        """Make the error for what may be tried again."""
        return ModelBusyError(f"{self.name}: {text}", retry_after=retry_after)

    def refused(self, text: str) -> ModelRefusedError:
        """Make the error for what trying again cannot help."""
        return ModelRefusedError(f"{self.name}: {text}")

    def status_error(
        self, status: int, body: bytes, *, retry_after: float | None
    ) -> ModelError:
        """Make the error for a response other than 200.

        Args:
            status: the HTTP status.
            body: the body, or its beginning.
            retry_after: seconds the provider asked us to wait, or None.
        """
        said = read_error(body)
        quote = self.quote(body if said.message is None else said.message)
        if 300 <= status < 400:
            return self.refused(
                f"redirects (HTTP {status}), which is not followed; give base_url "
                "as the provider documents it"
            )
        if status in {401, 403}:
            return self.refused(
                f"the key was not accepted (HTTP {status}); check the setting "
                f"api_key{quote}"
            )
        if status == 402 or said.code in QUOTA or said.type in QUOTA:
            return self.refused(f"the account's quota is used up{quote}")
        if status in BUSY or status >= 500 or status < 400:
            return self.busy(f"busy (HTTP {status}){quote}", retry_after=retry_after)
        return self.request_error(said, f"HTTP {status}", quote)

    def stream_error(self, said: ErrorBody | str) -> ModelError:
        """Make the error for one that came in mid-stream."""
        if isinstance(said, str):
            return self.busy(f"an error in mid-answer{self.quote(said)}")
        if isinstance(said.code, int) and 400 <= said.code < 600:
            # Some put the HTTP status here that they can no longer send.
            body = msgspec.json.encode({"error": said})
            return self.status_error(said.code, body, retry_after=None)
        quote = self.quote(said.message or "")
        if said.code in QUOTA or said.type in QUOTA:
            return self.refused(f"the account's quota is used up{quote}")
        if said.type in REFUSED_TYPES or is_too_long(said):
            return self.request_error(said, "in mid-answer", quote)
        return self.busy(f"an error in mid-answer{quote}")

    def request_error(self, said: ErrorBody, where: str, quote: str) -> ModelError:
        """Make the error for a request that will never be taken."""
        if is_too_long(said):
            return self.refused(
                "the conversation is too long for the model's context length; "
                f"send less of it{quote}"
            )
        return self.refused(f"refused the request ({where}){quote}")

    def quote(self, said: bytes | str) -> str:
        """Cut the provider's words short, without the key; empty if it said nothing."""
        text = said if isinstance(said, str) else said.decode("utf-8", "replace")
        if text.lstrip()[:1] == "<":
            return ": (an HTML page instead of an error message)"
        if self.key:
            # Before it is cut, or the first half of the key could remain.
            text = text.replace(self.key, "[key]")
        shown = "".join(c if c.isprintable() else " " for c in text)
        shown = " ".join(shown.split())
        return f": {shown[:MAX_SNIPPET]}" if shown else ""


def read_error(body: bytes) -> ErrorBody:
    """Find the error in a response's body, whatever shape it has."""
    try:
        envelope = msgspec.json.decode(body, type=ErrorEnvelope)
    except (ValueError, RecursionError):
        return ErrorBody()
    if isinstance(envelope.error, ErrorBody):
        return envelope.error
    return ErrorBody(message=envelope.error or envelope.message or envelope.detail)


def is_too_long(said: ErrorBody) -> bool:
    """Tell whether a request was refused for its length."""
    if said.code == "context_length_exceeded":
        return True
    return bool(said.message and TOO_LONG.search(said.message))


def read_retry_after(value: str | None, now: float) -> float | None:
    """Read a `Retry-After` header.

    Args:
        value: the header; None if there is none.
        now: Unix seconds, for a header that names a date.

    Returns:
        Seconds from now, between 0 and a day; None for garbage.
    """
    # Source: RFC 9110 10.2.3 allows both a date and a number of seconds.
    text = (value or "").strip()
    if SECONDS.fullmatch(text):
        return min(float(text), MAX_RETRY_AFTER)
    try:
        date = email.utils.parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=dt.UTC)
        return min(max(date.timestamp() - now, 0.0), MAX_RETRY_AFTER)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
