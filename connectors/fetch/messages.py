"""What is asked of the way out, and what comes back.

Apart from `fetcher.py`, so that whoever only speaks of it needs no HTTP client.

Why something was not fetched.

FetchError
├── FetchRefusedError      ours: the address, port or answer is not allowed; never
│   └── FetchTooLargeError the answer is above the limit
└── FetchFailedError       theirs: DNS, connection, TLS, protocol; perhaps later
    └── FetchTimeoutError  not done in the time allowed
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import msgspec

from connectors.fetch.media_types import decode_text

Headers = tuple[tuple[str, str], ...]


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to fetch."""

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Headers = ()
    """Sent to the first site only, but for the harmless ones."""

    body: bytes = b""
    """Of a POST, which never follows a redirect."""

    max_bytes: int = 0
    """Most bytes of the answer; 0, or more than `[fetch] max_bytes`: that one."""

    wants_body: bool = True
    """Whether the answer's body is used; else one that is too large is no error."""

    owner: str = ""
    """Whose share of the places it takes: a person; empty: nobody's in particular."""

    timeout: float = 0.0
    """Seconds for all of it; 0, or more than `[fetch] timeout`: that one."""


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """What came back, whatever its status."""

    url: str
    """Where it came from, after redirects."""

    status: int
    headers: Mapping[str, str]
    """By name in small letters."""

    body: bytes
    """Unpacked."""

    media_type: str
    """What the body is, by its bytes."""

    @property
    def is_success(self) -> bool:
        """Whether it is what was asked for, and no error page."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body's letters."""
        return decode_text(self.body, self.headers.get("content-type", ""))


Fetch = Callable[[FetchRequest], Awaitable[Fetched]]
"""What `Fetcher.fetch` is, for those who are given it; raises `FetchError`."""


class FetchError(Exception):
    """Nothing came back; the text says what, where and why, without secrets."""


class FetchRefusedError(FetchError):
    """It must not be fetched, and trying again cannot help."""


class FetchTooLargeError(FetchRefusedError):
    """The answer, as sent or as unpacked, is above the limit."""


class FetchFailedError(FetchError):
    """The other side could not be reached or broke the protocol."""


class FetchTimeoutError(FetchFailedError):
    """It was not done in the time allowed."""
