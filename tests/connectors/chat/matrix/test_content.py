"""What is sent: formatted, related, and calling nobody who is not meant."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from actors.messages.inbound import Address
from connectors.chat.matrix import content
from connectors.chat.matrix.content import as_html
from tests.support.chat.matrix_bed import ROOM, ZOE, delivery
from tests.support.tiers import examples

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("hello", ""),
        ("two\n\nparagraphs", "<p>two</p>\n<p>paragraphs</p>"),
        ("**so**", "<p><strong>so</strong></p>"),
        ("`a<b`", "<p><code>a&lt;b</code></p>"),
        ("a\nb", "<p>a<br />\nb</p>"),
        ("~~no~~", "<p><s>no</s></p>"),
        ("<b>raw</b>", "<p>&lt;b&gt;raw&lt;/b&gt;</p>"),
        ("![x](https://evil/?q=1)", '<p><a href="https://evil/?q=1">x</a></p>'),
        ("[x](javascript:alert)", ""),
    ],
)
def test_markdown_becomes_html_that_loads_nothing(text: str, html: str) -> None:
    assert as_html(text) == html


def test_a_reply_calls_who_it_answers_and_nobody_else() -> None:
    said = content.message(
        delivery("@room **hi**", reply_to="$0"), (ZOE,), is_reply=True
    )
    assert said["m.mentions"] == {"user_ids": [ZOE]}
    assert said["m.relates_to"] == {"m.in_reply_to": {"event_id": "$0"}}
    assert (said["msgtype"], said["format"]) == ("m.text", "org.matrix.custom.html")
    alone = content.message(delivery("@room hi", reply_to="$0"), (), is_reply=False)
    assert (alone["m.mentions"], "m.relates_to" in alone) == ({}, False)


def test_the_runtimes_own_words_are_notices() -> None:
    said = content.message(delivery("busy", agent="", kind="notice"), (), is_reply=True)
    assert said["msgtype"] == "m.notice"


def test_an_answer_stays_in_its_thread() -> None:
    there = Address("matrix", ROOM, "$root")
    said = content.message(delivery("hi", address=there), (), is_reply=False)
    related = cast("Json", said["m.relates_to"])
    assert (related["rel_type"], related["event_id"]) == ("m.thread", "$root")
    assert related["m.in_reply_to"] == {"event_id": "$root"}
    assert related["is_falling_back"] is True


@settings(max_examples=examples(40, deep=400))
@given(st.text(min_size=1, max_size=content.MOST_CHARS))
def test_whatever_is_said_fits_into_an_event(text: str) -> None:
    most = text * (content.MOST_CHARS // len(text))
    whole = content.message(delivery(most), (ZOE,), is_reply=True)
    assert content.size_of(whole) <= content.MOST_BYTES
    assert whole["body"] == most
    assert content.size_of(content.edit("$1", most)) <= content.MOST_BYTES


@pytest.mark.parametrize("letter", ["\x01", "&", "*", "🦊", "`", "|"])
def test_the_worst_letters_fit_too(letter: str) -> None:
    most = letter * content.MOST_CHARS
    whole = content.message(delivery(most), (ZOE,), is_reply=True)
    assert content.size_of(whole) <= content.MOST_BYTES
    assert content.size_of(content.edit("$1", most)) <= content.MOST_BYTES


def test_an_edit_says_all_anew_and_calls_nobody() -> None:
    said = content.edit("$1", "now **this**")
    new = cast("Json", said["m.new_content"])
    assert said["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$1"}
    assert (said["body"], new["body"]) == ("* now **this**", "now **this**")
    assert new["formatted_body"] == "<p>now <strong>this</strong></p>"
    assert said["m.mentions"] == new["m.mentions"] == {}


@given(st.text(), st.text())
def test_ids_of_requests_are_short_and_differ(one: str, other: str) -> None:
    first, second = content.transaction(one), content.transaction(other)
    assert (first == second) == (one == other)
    assert max(len(first), len(second)) <= 255
