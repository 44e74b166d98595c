"""Cuts HTML into words and tags, in time that grows with its length alone.

Pure. No parser of a library: a page is written by strangers, and each one tried could
be kept busy for long by little. lexbor took 2.4 s for 150 KB of nested `<div>`,
Python's `html.parser` 3 s for 60 KB of `<!--`, libxml2 35 s for 900 KB of attributes.
No tree is needed to read a page, and a scan that never goes back cannot be slow.

Source: the tokens are those of the HTML standard, 13.2.5, as far as text needs them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import msgspec

TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)")
ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>][^\s>]*+))?)?)"""
)
END = re.compile(r"[\s/]*+>")
UNCLOSED_QUOTE = re.compile(r"""[\s/]*+[^\s/>=]++\s*+=\s*+["']""")

RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "noscript", "iframe", "xmp")
}
"""Elements in which no tag counts but their own end."""

KEPT = frozenset({"href", "alt", "hidden", "style", "aria-hidden", "role", "start"})
"""Attributes that a reader needs; the others are passed over."""

MAX_ATTRIBUTES = 200
"""Of one tag; it is skipped to its end after them."""


class TextToken(msgspec.Struct, frozen=True):
    """Words between tags; entities are letters already."""

    text: str


class Start(msgspec.Struct, frozen=True):
    """A tag that opens an element."""

    name: str
    attributes: dict[str, str]


class EndTag(msgspec.Struct, frozen=True):
    """A tag that closes an element."""

    name: str


Token = TextToken | Start | EndTag


def tokens(page: str) -> Iterator[Token]:
    """Give what a page is made of, in order; nothing is an error."""
    at = 0
    while at < len(page):
        tag = page.find("<", at)
        if tag < 0:
            yield TextToken(letters(page[at:]))
            return
        if tag > at:
            yield TextToken(letters(page[at:tag]))
        found = TAG.match(page, tag)
        if found is None:
            at, text = no_tag(page, tag)
            if text:
                yield TextToken(text)
        elif found[1]:
            yield EndTag(found[2].lower())
            at = after(page, found.end(), ">")
        else:
            name = found[2].lower()
            attributes, at = read_attributes(page, found.end())
            yield Start(name, attributes)
            if name in RAW:
                words, at = raw(page, at, name)
                yield TextToken(words)
                yield EndTag(name)


def no_tag(page: str, at: int) -> tuple[int, str]:
    """Pass over a comment or a declaration; anything else is a sign like another.

    Returns:
        Where it goes on, and the text it was.
    """
    if page.startswith("<!--", at):
        # `<!-->` and `<!--->` are whole comments.
        return after(page, at + 2, "-->"), ""
    if page.startswith("<![CDATA[", at):
        return after(page, at, "]]>"), ""
    if page.startswith(("<!", "<?", "</"), at):
        return after(page, at, ">"), ""
    return at + 1, "<"


def after(page: str, at: int, mark: str) -> int:
    """Find the place after a mark; the end of the page where there is none."""
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


def raw(page: str, at: int, name: str) -> tuple[str, int]:
    """Read up to the end tag of an element in which no other tag counts."""
    end = RAW[name].search(page, at)
    if end is None:
        return page[at:], len(page)
    words = page[at : end.start()]
    if name in {"title", "textarea"}:
        words = letters(words)
    return words, after(page, end.end(), ">")


def read_attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """Read a tag from behind its name to its end.

    Returns:
        The attributes that a reader needs, and where the tag is over.
    """
    found: dict[str, str] = {}
    for _ in range(MAX_ATTRIBUTES):
        end = END.match(page, at)
        if end is not None:
            return found, end.end()
        attribute = ATTRIBUTE.match(page, at)
        if attribute is None:
            break
        if UNCLOSED_QUOTE.match(page, at) and attribute.lastindex in {None, 1}:
            return found, len(page)  # a quote that is never closed takes all the rest
        at = attribute.end()
        name = attribute[1].lower()
        if name in KEPT and name not in found:
            value = attribute[2] or attribute[3] or attribute[4] or ""
            found[name] = letters(value)
    return found, after(page, at, ">")


def letters(text: str) -> str:
    """Put letters in the place of entities."""
    try:
        return html.unescape(text)
    except ValueError:  # a number of more digits than Python reads
        return text
