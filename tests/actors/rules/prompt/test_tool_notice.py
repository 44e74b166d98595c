"""Proves that a notice of a tool call is one short line without secrets."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import ToolCall
from actors.rules.prompt.tools import (
    HIDDEN,
    MOST,
    MOST_ASKED,
    name_of,
    started,
    summary,
)


def call(arguments: object, name: str = "shell") -> ToolCall:
    return ToolCall("c", name, msgspec.json.encode(arguments))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"command": "ls /home"}, "🔧 `shell`: ls /home"),
        ({}, "🔧 `shell`"),
        ({"a": 1, "b": ["x", None]}, "🔧 `shell`: a: 1, b: [x, null]"),
        ({"path": "a\x1b\u202eb"}, "🔧 `shell`: a b"),
        ({"path": "ls #\nrm x"}, "🔧 `shell`: ls # ⏎ rm x"),
        ({"path": "echo `rm x`"}, "🔧 `shell`: echo ˋrm xˋ"),
        ({"url": "x", "api_key": "abc"}, f"🔧 `shell`: url: x, api_key: {HIDDEN}"),
        ({"Authorization": "abc"}, f"🔧 `shell`: {HIDDEN}"),
        ({"headers": {"Cookie": "abc"}}, "🔧 `shell`: {…}"),
        ("text", "🔧 `shell`: text"),
    ],
)
def test_a_call_is_told_in_a_line(arguments: object, line: str) -> None:
    assert started(call(arguments), str) == line


def test_the_values_of_secrets_are_taken_out_before_it_is_cut() -> None:
    secret = "s3cret-value"  # noqa: S105  no real one
    long = {"command": "x" * (MOST - 5) + secret}
    told = summary(call(long), lambda text: text.replace(secret, "***"))
    assert "s3c" not in told
    assert len(told) <= MOST


def test_what_stands_at_the_end_of_a_long_call_is_seen_too() -> None:
    told = summary(call({"command": f"ls {'x' * 5_000}; rm -rf ."}), str, MOST_ASKED)
    assert told.startswith("ls xxx")
    assert " and more characters " in told
    assert told.endswith("; rm -rf .")
    assert len(told) <= MOST_ASKED


@given(st.binary(max_size=400), st.text(max_size=100))
def test_whatever_a_model_writes_it_is_one_bounded_line(
    arguments: bytes, name: str
) -> None:
    line = started(ToolCall("c", name, arguments), str)
    assert len(line) <= MOST + 64 + 6
    assert len(line.splitlines()) == 1
    assert line.count("`") == 2
    assert name_of(name) in line
