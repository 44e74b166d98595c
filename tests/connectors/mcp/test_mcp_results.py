"""Proves that whatever a server answers, a model gets a bounded result of it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import ToolResult
from connectors.mcp.session import EMPTY, LARGEST_IMAGE, MOST_PARTS, result_of

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()
WEBP = base64.b64encode(b"RIFF\x0a\0\0\0WEBPVP8 ").decode()

words = st.sampled_from(
    ["type", "text", "data", "uri", "resource", "content", "isError", "blob", "name"]
)
kinds = st.sampled_from(["text", "image", "audio", "resource", "resource_link", PNG])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | kinds,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5)
    ),
    max_leaves=25,
)


@given(answer=anything, most=st.integers(1, 100))
def test_any_answer_gives_a_bounded_result(answer: object, most: int) -> None:
    result = result_of(answer, most)
    assert len(result.text) <= most + 60
    assert result.text or result.images


@given(content=st.lists(anything, max_size=5), structured=anything)
def test_any_content_gives_a_result(content: list[object], structured: object) -> None:
    answer = {"content": content, "structuredContent": structured, "isError": True}
    assert result_of(answer, 1_000).is_error


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([text("a"), text("b")], "a\n\nb"),
        ([text("a\x00\u202eb")], "ab"),
        ([], EMPTY),
        ([{"type": "audio", "data": PNG}], "[a sound was left out]"),
        ([{"type": "hologram"}], "[a part of an unknown kind was left out]"),
        (["text"], "[a part of an unknown kind was left out]"),
        (
            [{"type": "resource", "resource": {"uri": "file:///a", "text": "hello"}}],
            "[resource file:///a]\nhello",
        ),
        (
            [{"type": "resource_link", "uri": "file:///a", "name": "A"}],
            "[resource A at file:///a]",
        ),
        (
            [{"type": "resource", "resource": {"uri": "x", "blob": "AAAA"}}],
            "[resource x] [3 bytes that are no picture were left out]",
        ),
        (
            [{"type": "image", "data": "?", "mimeType": "image/png"}],
            "[content was left out: it is no base64]",
        ),
    ],
)
def test_each_kind_of_content_is_shown(content: list[Any], shown: str) -> None:
    assert result_of({"content": content}, 1_000) == ToolResult(shown)


def test_pictures_are_known_by_their_bytes() -> None:
    content = [
        {"type": "image", "data": PNG, "mimeType": "text/html"},
        {"type": "resource", "resource": {"uri": "a", "blob": WEBP}},
    ]
    result = result_of({"content": content}, 1_000)
    assert [image.media_type for image in result.images] == ["image/png", "image/webp"]
    assert result.text == "[resource a]"


def test_too_many_and_too_large_pictures_are_left_out() -> None:
    image = {"type": "image", "data": PNG}
    huge = {"type": "image", "data": "A" * (LARGEST_IMAGE * 2)}
    result = result_of({"content": [image] * 10 + [huge]}, 1_000)
    assert len(result.images) == 8
    assert result.text.count("left out") == 3


def test_too_many_parts_are_left_out() -> None:
    result = result_of({"content": [text("a")] * (MOST_PARTS + 3)}, 1_000)
    assert result.text.endswith("[3 more parts were left out]")
    whole = result_of({"content": [text("a")] * MOST_PARTS}, 1_000)
    assert whole.text.split() == ["a"] * MOST_PARTS


def test_a_long_text_is_cut_and_says_so() -> None:
    for count, end in ((9, ""), (10, ""), (11, "1"), (50, "40")):
        said = f"\n[cut: {end} more characters]" if end else ""
        found = result_of({"content": [text("x" * count)]}, 10)
        assert found.text == "x" * min(count, 10) + said


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([text('{"a": 1}')], '{"a": 1}'),
        ([text("one")], 'one\n\n{"a":1}'),
        ([], '{"a":1}'),
    ],
)
def test_structured_content_is_shown_once(said: list[Any], shown: str) -> None:
    answer = {"content": said, "structuredContent": json.loads('{"a": 1}')}
    assert result_of(answer, 1_000).text == shown
