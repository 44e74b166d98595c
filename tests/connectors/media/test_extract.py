"""A document's words are found, whatever it is, and nothing breaks the reader."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from connectors.media import extract
from connectors.media.reader import PROGRAM
from tests.fakes.media import pdf

PAGE = b"""<!doctype html><html><head><title>T</title><style>p{}</style></head>
<body><h1>Plan</h1><p>First &amp; <b>foremost</b>.</p><script>alert(1)</script>
<table><tr><td>a</td><td>b</td></tr></table><ul><li>one</li><li>two</li></ul>"""


@pytest.mark.parametrize(
    ("kind", "document", "words"),
    [
        ("text/plain", "grüße".encode(), "grüße"),
        ("text/plain", "grüße".encode("cp1252"), "grüße"),
        ("text/plain", b"\xff\xfea\x00b\x00", "ab"),
        ("text/markdown", b"# Plan\n\n- one", "# Plan\n\n- one"),
        ("text/csv", b"a,b\n1,2\n", "a,b\n1,2"),
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("text/html", PAGE, "Plan\n\nFirst & foremost.\n\na b\n\none\n\ntwo"),
        ("text/html", b"<p>open <b>bold", "open bold"),
        ("text/plain", b"a\x1b[31mb\x00c", "a[31mbc"),
        ("application/pdf", pdf("Hello PDF", "Page two"), "Hello PDF\n\nPage two"),
    ],
)
def test_words_are_found_in_every_kind(kind: str, document: bytes, words: str) -> None:
    assert extract.extract(kind, document, 1000) == words


def test_a_kind_that_is_unknown_is_said_so() -> None:
    with pytest.raises(extract.ExtractError, match="application/zip") as caught:
        extract.extract("application/zip", b"PK\x03\x04", 10)
    assert caught.value.code == extract.UNKNOWN


def test_only_as_much_as_asked_for_comes_back_and_one_more() -> None:
    assert extract.extract("text/plain", b"x" * 100, 10) == "x" * 11
    assert len(extract.extract("text/html", b"<p>" + b"x" * 100, 10)) == 11


@given(st.binary(max_size=300), st.sampled_from(["text/html", "text/plain"]))
def test_no_text_breaks_the_reader(document: bytes, kind: str) -> None:
    words = extract.extract(kind, document, 50)
    assert len(words) <= 51
    assert all(c >= " " or c in "\n\t" for c in words)


def run(arguments: list[str], document: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-I", str(PROGRAM), *arguments],
        input=document,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "document", "code"),
    [
        (["text/plain", "100"], b"words", 0),
        (["application/pdf", "100"], b"%PDF-1.4 nonsense", extract.UNREADABLE),
        (["application/zip", "100"], b"PK", extract.UNKNOWN),
    ],
)
def test_the_program_ends_with_a_code_and_at_most_one_line(
    arguments: list[str], document: bytes, code: int
) -> None:
    ended = run(arguments, document)
    assert ended.returncode == code, ended.stderr
    assert ended.stdout == (document if code == 0 else b"")
    assert b"Traceback" not in ended.stderr
