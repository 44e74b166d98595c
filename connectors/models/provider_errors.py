"""The errors of a provider: whom they speak of, of which kind they are, what they say.

Pure. Tells what may be tried again from what may not, and writes a short text
without secrets: the key never, of the provider's own words at most 200 characters.
Each format reads its provider's errors into a `Said`; what that means is here, and so
is how OpenAI's errors are read, whose shape many others have.

How long a provider asks us to wait comes in one of several forms: a header with seconds
or a date, one with milliseconds, or a duration in the body.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from actors.errors import ModelBusyError, ModelError, ModelFault, ModelRefusedError
from runtime.secret import SHORTEST_SECRET

MAX_SNIPPET = 200

MAY_PASS: frozenset[ModelFault] = frozenset(
    {"rate", "overload", "network", "protocol", "timeout"}
)
"""What trying again can help."""

BY_STATUS: dict[int, ModelFault] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    409: "overload",
    413: "context",
    425: "overload",
    429: "rate",
    504: "timeout",
}

# Source: OpenAI and those who speak its language (vLLM, llama.cpp, LM Studio,
# OpenRouter), Anthropic ("prompt is too long", "exceed context limit"), Google ("input
# token count … exceeds the maximum number of tokens"), Ollama ("exceeds the context
# length").
TOO_LONG = re.compile(
    r"context.?(length|window|size|limit)|maximum context|prompt is too long"
    r"|too many tokens|input token count .{0,40}exceeds|exceed_context_size",
    re.IGNORECASE,
)
# Source: OpenAI ("image input is not supported", "image_url is only supported by
# certain models"), OpenRouter ("No endpoints found that support image input"), Ollama
# ("this model is missing data required for image input"), vLLM ("is not a multimodal
# model"), DeepSeek ("unknown variant `image_url`"). A picture that is broken, or of an
# unknown format, is none of this.
SEES_NOTHING = re.compile(
    r"(does not|doesn't|do not|no endpoints found that) support (image|vision|multi)"
    r"|is not a (multi-?modal|vision)|missing data required for image"
    r"|image(s|_url| inputs?| content)? (is|are) (not|only) supported"
    r"|unknown variant .?image_url",
    re.IGNORECASE,
)
MAY_SEE_NOTHING = frozenset({400, 404, 415, 422, 500})
"""Statuses under which providers say so."""

NOTHING_THERE = frozenset({404, 405})
"""Statuses under which servers say that they know no such address."""

MAY_BE_TOO_LONG = frozenset({0, 400, 404, 413, 422, 500})
"""Statuses under which providers say so; 0: in mid-answer, without a status."""


class Said(msgspec.Struct, frozen=True):
    """An error as a provider words it, read by its format."""

    message: str | None = None
    kind: ModelFault | None = None
    """What its own codes say; None leaves it to the status and the wording."""

    retry_after: float | None = None
    """Seconds it asks us to wait, where the body says so."""

    status: int = 0
    """The HTTP status that a stream which has begun can no longer send; 0: none."""


class ErrorContext(msgspec.Struct, frozen=True):
    """Whom an error's text speaks of, and what it must not say."""

    name: str
    """Host and model."""

    key: str = ""
    key_place: str = ""
    """Where the key is from, as `the environment variable X`; empty: nobody said."""

    likely_base: str = ""
    """The base_url that was probably meant; empty: that of the settings looks right."""

    def busy(
        self,
        text: str,
        kind: ModelFault,
        *,
        retry_after: float | None = None,
        plain: str = "",
    ) -> ModelBusyError:
        """Make the error for what may be tried again; `plain` is of the text."""
        plain = f"{self.name}: {plain}" if plain else ""
        return ModelBusyError(
            f"{self.name}: {text}", kind=kind, plain=plain, retry_after=retry_after
        )

    def broken(self, text: str) -> ModelBusyError:
        """Make the error for an answer that is none by its protocol."""
        own = "broke the protocol"
        return self.busy(f"{own}: {text}", "protocol", plain=own)

    def refused(
        self, text: str, kind: ModelFault, *, plain: str = ""
    ) -> ModelRefusedError:
        """Make the error for what trying again cannot help; `plain` is of the text."""
        plain = f"{self.name}: {plain}" if plain else ""
        return ModelRefusedError(f"{self.name}: {text}", kind=kind, plain=plain)

    def status_error(
        self, status: int, body: bytes, said: Said, retry_after: float | None
    ) -> ModelError:
        """Make the error for a response other than 200.

        Args:
            body: the body, or its beginning.
            retry_after: seconds that a header asked us to wait, or None.
        """
        if 300 <= status < 400:
            return self.refused(
                f"redirects (HTTP {status}), which is not followed; give base_url "
                "as the provider documents it",
                "bad_request",
            )
        quote = self.quote(body if said.message is None else said.message)
        wait = retry_after if said.retry_after is None else said.retry_after
        kind = said.kind or kind_of(status, said.message)
        if status in NOTHING_THERE and "model" not in (said.message or "").lower():
            quote += self.elsewhere
        return self._error(kind, f"HTTP {status}", quote, wait)

    def stream_error(self, said: Said) -> ModelError:
        """Make the error for one that came in an answer that had begun."""
        kind = said.kind or kind_of(said.status, said.message)
        where = f"HTTP {said.status}" if said.status else "in mid-answer"
        return self._error(kind, where, self.quote(said.message or ""), None)

    def _error(
        self, kind: ModelFault, where: str, quote: str, retry_after: float | None
    ) -> ModelError:
        if kind in MAY_PASS:
            text = f"busy ({where})"
            return self.busy(text + quote, kind, retry_after=retry_after, plain=text)
        match kind:
            case "auth":
                text = f"the key was not accepted ({where}); check {self.key_named}"
            case "quota":
                text = f"the account's quota is used up ({where})"
            case "context":
                text = (
                    f"the conversation is too long for the model's context length "
                    f"({where}); send less of it"
                )
            case "vision":
                text = (
                    f"the model cannot see pictures ({where}); say so in its settings"
                )
            case "content":
                text = f"its content filter refused the request ({where})"
            case _:
                text = f"refused the request ({where})"
        return self.refused(text + quote, kind, plain=text)

    @property
    def key_named(self) -> str:
        """The setting of the key, and where that takes it from."""
        if not self.key:
            return "the setting api_key: there is none"
        origin = f", which takes it from {self.key_place}" if self.key_place else ""
        return f"the setting api_key{origin}"

    @property
    def elsewhere(self) -> str:
        """What to do where something else answers than a model; often empty."""
        base = self.likely_base
        return f"; set base_url to {base!r}, if its API is there" if base else ""

    def quote(self, said: bytes | str) -> str:
        """Cut the provider's words short, without the key; empty if it said nothing."""
        text = said if isinstance(said, str) else said.decode("utf-8", "replace")
        if text.lstrip()[:1] == "<":
            return ": (an HTML page instead of an error message)"
        if len(self.key) >= SHORTEST_SECRET:
            # Before it is cut, or the first half of the key could remain.
            text = text.replace(self.key, "[key]")
        shown = "".join(c if c.isprintable() else " " for c in text)
        shown = " ".join(shown.split())
        return f": {shown[:MAX_SNIPPET]}" if shown else ""


def kind_of(status: int, message: str | None) -> ModelFault:
    """Tell what an error is of which no code says it.

    Args:
        status: the HTTP status; 0 for one that came in mid-answer without any.
        message: the provider's words, if it said any.
    """
    if status in MAY_BE_TOO_LONG and message and TOO_LONG.search(message):
        return "context"
    if status in MAY_SEE_NOTHING and message and SEES_NOTHING.search(message):
        return "vision"
    if status in BY_STATUS:
        return BY_STATUS[status]
    if status == 0 or status >= 500:
        return "overload"
    return "protocol" if status < 300 else "bad_request"


MAX_RETRY_AFTER: Final = 86_400.0
"""Seconds; a provider that asks for more is asked again tomorrow."""

NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")


def read_headers(headers: Mapping[str, str], now: float) -> float | None:
    """Find the wait in a response's headers.

    Args:
        headers: by name, which is found in any case.
        now: Unix seconds, for a header that names a date.

    Returns:
        Seconds from now, between 0 and a day; None for garbage or nothing.
    """
    # OpenAI's and Azure's own, finer than the standard's.
    exact = headers.get("retry-after-ms", "").strip()
    if NUMBER.fullmatch(exact):
        return min(float(exact) / 1000, MAX_RETRY_AFTER)
    return read_retry_after(headers.get("retry-after"), now)


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
    if NUMBER.fullmatch(text):
        return min(float(text), MAX_RETRY_AFTER)
    try:
        date = email.utils.parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=dt.UTC)
        return min(max(date.timestamp() - now, 0.0), MAX_RETRY_AFTER)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def read_duration(value: str) -> float | None:
    """Read a duration as protobuf writes it in JSON: `12s`, `0.5s`.

    Returns:
        Seconds between 0 and a day; None for garbage.
    """
    number, unit, rest = value.strip().partition("s")
    if unit and not rest and NUMBER.fullmatch(number):
        return min(float(number), MAX_RETRY_AFTER)
    return None


OPENAI_CODES: dict[str, ModelFault] = {
    # OpenAI
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "access_terminated": "quota",
    "rate_limit_exceeded": "rate",
    "context_length_exceeded": "context",
    "string_above_max_length": "context",
    "invalid_api_key": "auth",
    "content_policy_violation": "content",
    "invalid_prompt": "content",
    "bio_policy": "content",
    "misalignment_policy_violation": "content",
    "image_content_policy_violation": "content",
    # Azure
    "content_filter": "content",
    "ResponsibleAIPolicyViolation": "content",
    # llama.cpp
    "exceed_context_size_error": "context",
    # types, which come without a code
    "authentication_error": "auth",
    "permission_error": "auth",
    "server_error": "overload",
    "overloaded_error": "overload",
}
"""Code or type → what it is; where both are known the code counts."""

WRONG_REQUEST = frozenset(
    {
        "invalid_request_error",
        "not_found_error",
        "model_not_found",
        # of pictures, where a status can no longer be sent
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
    }
)
"""Types and codes that say no more than a status of 400 does."""


class Flagged(msgspec.Struct, frozen=True):
    """OpenRouter's reasons why a text was not let through."""

    reasons: list[str] | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """The object under `error`."""

    message: str | None = None
    type: str | None = None
    code: str | int | float | None = None
    metadata: Flagged | None = None


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """An error response as the API documents it, and as others write it."""

    error: ErrorBody | str | None = None
    message: str | None = None
    detail: str | None = None


def read_openai_error(body: bytes) -> Said:
    """Find the error in a response of OpenAI, or of whoever speaks its language."""
    try:
        envelope = msgspec.json.decode(body, type=ErrorEnvelope)
    except (ValueError, RecursionError):
        return Said()
    if isinstance(envelope.error, ErrorBody):
        return said_by(envelope.error)
    return Said(envelope.error or envelope.message or envelope.detail)


def said_by(error: ErrorBody | str) -> Said:
    """Read the object under `error`."""
    if isinstance(error, str):
        return Said(error)
    # Some put the HTTP status here that they can no longer send.
    code = error.code if isinstance(error.code, int) else 0
    status = code if 400 <= code < 600 else 0
    if not status and WRONG_REQUEST & {error.type, error.code}:
        status = 400
    kind = OPENAI_CODES.get(str(error.code)) or OPENAI_CODES.get(error.type or "")
    if error.metadata is not None and error.metadata.reasons:
        kind = "content"
    return Said(error.message, kind, status=status)
