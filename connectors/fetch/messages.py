"""What is asked of the way out, and what comes back.

Apart from `fetcher.py`, so that whoever only speaks of it needs no HTTP client. A body
is what its own bytes say; what the server calls it only settles the rest, as a decoder
must never be given something because of a name alone.

FetchError
├── FetchRefusedError      ours: the address, port or answer is not allowed; never
│   └── FetchTooLargeError the answer is above the limit
└── FetchFailedError       theirs: DNS, connection, TLS, protocol; perhaps later
    └── FetchTimeoutError  not done in the time allowed
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, cast

import msgspec

if TYPE_CHECKING:
    from connectors.config.tools import FetchConfig
    from connectors.fetch.fetcher import Fetcher

UNKNOWN = "application/octet-stream"
LOOKED_AT = 1024
"""Bytes at the beginning that decide."""

MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"\x00\x00\x01\x00", "image/x-icon"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftyp", "video/mp4"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/x-executable"),
)
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What every model that sees takes."""

BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# Without going back (`*+`, `(?>`): a page of comments would be tried in all ways.
HTML = re.compile(
    rb"\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype html|html|head|body|title|script|meta|"
    rb"div|table|h1|p|br|a|iframe|style|font)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
TEXTS = re.compile(
    r"text/[a-z0-9.+-]+|application/([a-z0-9.+-]+\+)?(json|xml|yaml|x-yaml|toml|"
    r"javascript|ecmascript|x-ndjson|jsonl|markdown|sql|x-sh)"
)


# Source: the Encoding standard's names, as far as Python has them. No others: some of
# Python's codecs take the square of the length (punycode), or are no text.
CHARSETS = re.compile(
    r"utf-?(8|16|16le|16be|16-le|16-be)|(us-)?ascii|latin-?[0-9]+|"
    r"iso-?8859-?[0-9]{1,2}|(windows-|cp)(125[0-8]|866|874|932|936|949|950)|"
    r"koi8-[ru]|macintosh|mac-cyrillic|ibm866|tis-620|"
    r"(x-)?s(hift)?-?jis|euc-?(jp|kr)|iso-2022-(jp|kr)|gb(2312|k|18030)|hz(-gb-2312)?|"
    r"big5(-?hkscs)?|johab"
)


def media_type(body: bytes, declared: str = "") -> str:
    """Say what a body is.

    Args:
        body: all of it, or its beginning.
        declared: the header `Content-Type`.

    Returns:
        A media type in small letters, without parameters; `application/octet-stream`
        for what is neither known nor text.
    """
    start = body[:LOOKED_AT]
    is_words = is_text(start)
    for at, magic, kind in MAGIC:
        # A text about a BMW is no picture.
        is_sure = not (is_words and magic.isalnum()) or magic.startswith(b"GIF8")
        if is_sure and start.startswith(magic, at):
            return kind
    said = declared.partition(";")[0].strip().lower()
    if not is_words:
        return UNKNOWN
    if HTML.match(start.removeprefix(b"\xef\xbb\xbf")):
        return said if said == "application/xhtml+xml" else "text/html"
    return said if TEXTS.fullmatch(said) else "text/plain"


def is_text(start: bytes) -> bool:
    """Tell text from anything else."""
    if any(start.startswith(mark) for mark, _ in BOMS):
        return True
    return BINARY.search(start) is None


def decode_text(body: bytes, declared: str = "") -> str:
    """Read a body's letters; what cannot be read is a replacement character.

    Args:
        declared: the header `Content-Type`, which may name the charset.
    """
    for mark, charset in BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace")
    for charset in (named_charset(declared), html_charset(body), "utf-8"):
        if CHARSETS.fullmatch(charset.lower().replace("_", "-")):
            with suppress(LookupError, ValueError):
                return body.decode(charset)
    return body.decode("utf-8", "replace")


def named_charset(declared: str) -> str:
    """Find the charset in a `Content-Type`; empty if there is none."""
    found = re.search(r"charset\s*=\s*[\"']?([A-Za-z0-9._-]{1,40})", declared)
    return found[1] if found else ""


def html_charset(body: bytes) -> str:
    """Find the charset that a page names itself; empty if there is none."""
    found = re.search(
        rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([A-Za-z0-9._-]{1,40})",
        body[:LOOKED_AT],
        re.IGNORECASE,
    )
    return found[1].decode("ascii") if found else ""


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


FETCH = "connectors.fetch.fetcher"

MakeFetcher = Callable[..., "Fetcher"]


class LateFetcher:
    """Fetches as `Fetcher` does, which is loaded with the first request.

    Its HTTP client takes a fifth of the whole start, and most companies need none.
    """

    def __init__(self, config: FetchConfig, doors: tuple[str, ...] = ()) -> None:
        self._config = config
        self._doors = doors
        self._made: Fetcher | None = None

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch one answer; see `Fetcher.fetch`."""
        if self._made is None:
            make = cast("MakeFetcher", importlib.import_module(FETCH).Fetcher)
            self._made = make(self._config, doors=self._doors)
        return await self._made.fetch(request)

    async def aclose(self) -> None:
        """Close what was opened."""
        if self._made is not None:
            await self._made.aclose()
