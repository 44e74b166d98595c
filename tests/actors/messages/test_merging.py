"""Proves how the words of several messages become one question."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.messages.busy_policies import (
    HEADER,
    SHORT,
    Style,
    meanwhile,
    merge,
    shortened,
)


@pytest.mark.parametrize(
    ("style", "merged"),
    [
        ("alone", "a"),
        ("lines", "a\nb"),
        ("paragraphs", "a\n\nb"),
        ("numbered", f"{HEADER}\n---\n#1: a\n---\n#2: b"),
    ],
)
def test_each_style(style: Style, merged: str) -> None:
    assert merge(("a", "b"), style) == merged


@given(text=st.text(), style=st.sampled_from(("lines", "paragraphs", "numbered")))
def test_one_alone_stays_as_it_is(text: str, style: Style) -> None:
    assert merge((text,), style) == text


@given(text=st.text(max_size=300))
def test_what_is_shortened_is_one_short_line(text: str) -> None:
    short = shortened(text)
    assert len(short) <= SHORT
    assert len(short.splitlines()) <= 1


def test_who_wrote_meanwhile_is_said() -> None:
    assert meanwhile("zoe", "stop").endswith(":)\nzoe: stop")
    assert meanwhile("", "[zoe]: stop").endswith(":)\n[zoe]: stop")
