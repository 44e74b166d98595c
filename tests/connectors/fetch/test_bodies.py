"""Proves that bodies are unpacked within limits, and known by their own bytes."""

from __future__ import annotations

import contextlib
import gzip
import time
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from connectors.fetch.fetcher import body_for
from connectors.fetch.messages import (
    UNKNOWN,
    FetchFailedError,
    FetchTooLargeError,
    decode_text,
    media_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def raw_deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate ": raw_deflate,
}


def unpacked(encoding: str, packed: bytes, size: int, limit: int = 10_000) -> bytes:
    body = body_for(encoding, limit)
    for at in range(0, len(packed), size):
        body.feed(packed[at : at + size])
    return body.finish()


@given(
    content=st.binary(max_size=300),
    encoding=st.sampled_from([*PACKERS, "", "identity"]),
    size=st.integers(1, 50),
)
def test_a_body_is_the_same_in_any_pieces(
    content: bytes, encoding: str, size: int
) -> None:
    pack = PACKERS.get(encoding, bytes)
    assert unpacked(encoding, pack(content), size) == content


@given(size=st.integers(1, 500), parts=st.integers(1, 5))
def test_several_gzip_parts_are_one_body(size: int, parts: int) -> None:
    packed = b"".join(gzip.compress(b"%d;" % part) for part in range(parts))
    assert unpacked("gzip", packed + b"\0\0\0", size).count(b";") == parts


@given(kilobytes=st.integers(1, 3_000), size=st.integers(1, 4_000))
def test_a_bomb_is_never_unpacked_past_the_limit(kilobytes: int, size: int) -> None:
    packed = gzip.compress(b"\0" * kilobytes * 1024)
    body = body_for("gzip", 100_000)
    with pytest.raises(FetchTooLargeError):  # noqa: PT012  the piece differs
        for at in range(0, len(packed), size):
            body.feed(packed[at : at + size])
        assert len(body.finish()) <= 100_000
        raise FetchTooLargeError


def test_many_empty_parts_are_refused() -> None:
    with pytest.raises(FetchFailedError, match="too many parts"):
        unpacked("gzip", gzip.compress(b"") * 100, 5_000)


@given(packed=st.binary(min_size=1, max_size=100), size=st.integers(1, 9))
def test_garbage_is_an_error_or_a_body(packed: bytes, size: int) -> None:
    with contextlib.suppress(FetchFailedError, FetchTooLargeError):
        assert len(unpacked("gzip", packed, size)) <= 10_000


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, br", "x"])
def test_what_was_not_asked_for_is_refused(encoding: str) -> None:
    with pytest.raises(FetchFailedError, match="not asked for"):
        body_for(encoding, 10)


@pytest.mark.parametrize(
    ("body", "declared", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n...", "text/html", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/png", "image/jpeg"),
        (b"GIF89a", "", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "", "audio/wav"),
        (b"%PDF-1.7", "text/plain", "application/pdf"),
        (b"PK\x03\x04", "text/plain", "application/zip"),
        (b"\0\0\0\x18ftypmp42", "", "video/mp4"),
        (b"\x7fELF\x02", "image/png", "application/x-executable"),
        (b"plain words", "image/png", "text/plain"),
        (b"BMW makes cars", "", "text/plain"),
        (b"MZ, ID3 and fLaC", "text/markdown", "text/markdown"),
        (b"BM\x9a\0\0\0\0\0\0\0\x36", "", "image/bmp"),
        (b"plain words", "", "text/plain"),
        (b"", "", "text/plain"),
        (b"\x00\x01\x02", "text/plain", UNKNOWN),
        (b"<html>", "text/plain", "text/html"),
        (b"  <!-- x -->\n<!DOCTYPE html>", "", "text/html"),
        (b"\xef\xbb\xbf<p>x", "", "text/html"),
        (b"<html>", "application/xhtml+xml", "application/xhtml+xml"),
        (b'{"a": 1}', "application/json; charset=utf-8", "application/json"),
        (b'{"a": 1}', "Application/LD+JSON", "application/ld+json"),
        (b"# x", "text/markdown", "text/markdown"),
        (b"<svg>", "image/svg+xml", "text/plain"),
        (b"<?xml version='1.0'?><rss/>", "application/rss+xml", "application/rss+xml"),
    ],
)
def test_a_body_is_known_by_its_bytes(body: bytes, declared: str, kind: str) -> None:
    assert media_type(body, declared) == kind


HEADS = (
    (b"GIF87a\x01\0\x01\0", "image/gif"),
    (b"II*\0\x08\0\0\0", "image/tiff"),
    (b"MM\0*\0\0\0\x08", "image/tiff"),
    (b"\0\0\x01\0\x01\0\x10\x10", "image/x-icon"),
    (b"\0\0\0\x1cftypavif\0\0\0\0", "image/avif"),
    (b"\0\0\0\x18ftypheic\0\0\0\0", "image/heic"),
    (b"\0\0\0\x20ftypisom\0\0\x02\0", "video/mp4"),
    (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "application/gzip"),
    (b"OggS\0\x02\0\0", "audio/ogg"),
    (b"ID3\x04\0\0\0\0\0\x23", "audio/mpeg"),
    (b"\xff\xfb\x90\x64", "audio/mpeg"),
    (b"fLaC\0\0\0\x22", "audio/flac"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81", "video/webm"),
    (b"MZ\x90\0\x03\0\0\0", "application/x-executable"),
)
"""How files of these kinds begin."""


@pytest.mark.parametrize(("head", "kind"), HEADS)
def test_a_file_is_known_by_how_it_begins_and_only_there(
    head: bytes, kind: str
) -> None:
    assert media_type(head, "text/plain") == kind
    assert media_type(b"\x01" + head, "text/plain") == UNKNOWN


@pytest.mark.parametrize(
    ("body", "declared", "text"),
    [
        ("gr\u00fcn".encode(), "", "gr\u00fcn"),
        ("gr\u00fcn".encode("latin-1"), "text/html; charset=ISO-8859-1", "gr\u00fcn"),
        ("gr\u00fcn".encode("utf-16"), "text/plain", "gr\u00fcn"),
        ("\ufeffgr\u00fcn".encode(), "text/plain; charset=latin-1", "gr\u00fcn"),
        (
            b'<meta charset="latin-1">\xfc',
            "text/html",
            '<meta charset="latin-1">\u00fc',
        ),
        (b"gr\xfcn", "", "gr\ufffdn"),
        (b"gr\xfcn", "text/plain; charset=klingon", "gr\ufffdn"),
        (b"abc", "text/plain; charset=rot13", "abc"),
        (b"abc", "text/plain; charset=zlib_codec", "abc"),
    ],
)
def test_letters_are_read_as_the_server_says(
    body: bytes, declared: str, text: str
) -> None:
    assert decode_text(body, declared) == text


@given(body=st.binary(max_size=100), declared=st.text(max_size=30))
def test_any_body_has_a_kind_and_letters(body: bytes, declared: str) -> None:
    assert "/" in media_type(body, declared)
    decode_text(body, declared).encode()
    decode_text(body, f"text/plain; charset={declared}")


SLOW = [
    b"<!---->",
    b"<!-- ",
    b"<meta ",
    b"<meta charset",
    b" ",
    b"charset = ",
    b"\n<!--x-->",
]


@pytest.mark.parametrize("piece", SLOW)
def test_a_hostile_beginning_takes_no_time(piece: bytes) -> None:
    began = time.thread_time()
    body = piece * (100_000 // len(piece)) + b"."
    assert media_type(body, "text/html")
    decode_text(body, "text/html")
    assert time.thread_time() - began < 5.0  # the square takes minutes


@pytest.mark.parametrize(
    "charset", ["punycode", "idna", "unicode_escape", "utf-7", "raw_unicode_escape"]
)
def test_what_no_page_is_written_in_is_not_decoded(charset: str) -> None:
    """Some of Python's codecs take the square of the length."""
    began = time.thread_time()
    body = b"abc-" + b"a" * 1_000_000
    assert decode_text(body, f"text/html; charset={charset}") == body.decode()
    assert time.thread_time() - began < 5.0  # the square takes minutes


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("Shift_JIS", "\u65e5\u672c"),
        ("EUC-JP", "\u65e5\u672c"),
        ("iso-2022-jp", "\u65e5\u672c"),
        ("gb2312", "\u4e2d\u6587"),
        ("GB18030", "\u4e2d\u6587"),
        ("big5", "\u4e2d\u6587"),
        ("euc-kr", "\ud55c"),
        ("koi8-r", "\u044f"),
        ("windows-1251", "\u044f"),
        ("iso-8859-15", "\u20ac"),
        ("UTF8", "\u20ac"),
        ("us-ascii", "x"),
    ],
)
def test_what_pages_are_written_in_is_decoded(charset: str, text: str) -> None:
    body = text.encode(charset)
    assert decode_text(body, f'text/html; charset="{charset}"') == text
