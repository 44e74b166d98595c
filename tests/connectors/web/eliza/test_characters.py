"""Proves what becomes of agents as clients describe them, whatever they write."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from connectors.web.eliza.services.runs import (
    IGNORED_FIELDS,
    KNOWN_FIELDS,
    slug_of,
    wish_of,
)
from connectors.web.eliza.socketio.logs import LogEntry, LogFilter
from connectors.web.server import ApiError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    sorted(KNOWN_FIELDS | IGNORED_FIELDS | {"plugins", "settings"})
)


@given(st.text(max_size=60))
def test_a_name_becomes_one_that_the_settings_could_have_or_is_empty(name: str) -> None:
    slug = slug_of(name)
    assert re.fullmatch(r"[a-z0-9_-]{0,32}", slug)
    assert slug_of(slug) == slug


@given(st.dictionaries(FIELDS, JSON, max_size=6))
def test_whatever_is_written_is_a_wish_or_is_refused(given: dict[str, Any]) -> None:
    status, left_out = 400, tuple[str, ...]()
    try:
        left_out = wish_of(given).left_out
    except ApiError as error:
        status = error.status
    assert status == 400
    assert set(left_out) <= {"plugins", "settings"}
    assert all(given[name] for name in left_out)


def test_each_part_of_a_character_is_told_under_its_heading() -> None:
    wish = wish_of(
        {
            "name": "Dora",
            "system": "You search.",
            "bio": "finds things",
            "lore": ["was lost once"],
            "topics": ["maps"],
            "adjectives": ["calm"],
            "style": {"all": ["short"], "post": []},
            "settings": {"secrets": {"KEY": "x"}},
            "id": "7",
        }
    )
    assert wish.fields.prompt == (
        "You search.\n\nAbout you:\nfinds things\n\nWhat you have seen:\nwas lost once"
        "\n\nWhat you know about:\nmaps\n\nWhat you are like:\ncalm"
        "\n\nHow you write (all):\nshort"
    )
    assert wish.left_out == ("settings",)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (LogFilter(), True),
        (LogFilter(level=40), True),
        (LogFilter(level=41), False),
        (LogFilter(agent="anna"), True),
        (LogFilter(agent="ben"), False),
        (LogFilter(since=7), True),
        (LogFilter(since=8), False),
    ],
)
def test_a_line_fits_a_filter_at_its_very_edge(wanted: LogFilter, fits: bool) -> None:  # noqa: FBT001
    entry = LogEntry(number=1, time=7, level=40, msg="x", agent="anna")
    assert wanted.fits(entry) is fits
