"""Proves that words are never markup that nobody meant, in any chat."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from connectors.web.page.chat.messages import message_html
from tests.fakes.web.page import ANNA, open_page, reading

TAGS = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "code", "hr", "blockquote"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *("strong", "em", "s", "a", "br"),
}
ATTRIBUTES = {"class", "href", "target", "rel", "start"}

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](https://evil.example/?q=secret)",
    '<th style="text-align:left"><a href="javascript:alert(1)">x</a>',
    '| <a href="javascript:1"> |\n|:-:|\n| </td><script>1</script> |',
    '```"><script>alert(1)</script>\nx\n```',
    '</article><article id="m-fake" data-changed="9">',
    "event: gone\ndata: x\n\nid: 5",
]
WORDS = st.text(st.sampled_from("ab<>&\"'`*_[]()|:-#\n!/="), max_size=200)


class Reader(HTMLParser):
    """Reads HTML as a browser does, and notes what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def check(text: str, *, is_agent: bool) -> None:
    found = read(message_html(text, is_agent=is_agent))
    assert found.tags <= TAGS
    assert set(found.attributes) <= ATTRIBUTES
    for href in found.attributes.get("href", ()):
        assert href.startswith(("http://", "https://", "mailto:")), href


@given(text=st.one_of(st.text(max_size=200), WORDS, st.sampled_from(HOSTILE)))
def test_only_safe_tags_come_of_any_words(text: str) -> None:
    check(text, is_agent=True)
    check(text, is_agent=False)


@given(text=WORDS)
def test_what_people_write_stands_as_they_wrote_it(text: str) -> None:
    assert read(message_html(text, is_agent=False)).text == text


def test_tables_and_links_are_shown_without_a_style_and_lead_away() -> None:
    html = message_html("| a |\n|:-:|\n| [x](https://e.org) |", is_agent=True)
    assert '<th class="align-center">' in html
    assert 'target="_blank" rel="noopener noreferrer" href="https://e.org"' in html


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_words_are_words_in_the_chat_and_its_stream(text: str) -> None:
    async with open_page() as bed, reading(bed.client) as stream:
        await bed.say(text)
        inbound = await bed.ingress.next()
        await stream.next()
        await bed.answer(inbound, text, agent="<b>anna</b>")
        pieces = [(await stream.next()).data, (await bed.client.get(ANNA)).text]
        for html in pieces:
            found = read(html.partition("<article")[1] + html.partition("<article")[2])
            assert not {"img", "b", "iframe", "style"} & found.tags
            assert "m-fake" not in found.attributes["id"]
            assert not [name for name in found.attributes if name.startswith("on")]
            links = found.attributes.get("href", set())
            assert not [each for each in links if "javascript" in each]
