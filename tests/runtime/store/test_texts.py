"""Proves that half a character in JSON is called so, and nothing else is."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from connectors.chat.websocket.frames import FrameError, read
from connectors.web.openai.protocol import decode_request
from connectors.web.server import ApiError
from runtime.store.text import why_no_json

ERROR = ValueError("it ends too early")

ALONE = {
    r'{"a": "\ud800"}': r"\ud800",
    r'{"a": "\uDC00 and more"}': r"\uDC00",
    r'{"a": "\ud83d\ud83d\ude00"}': r"\ud83d",
    r'{"a": "\ud83d\ude00\ude00"}': r"\ude00",
    r'{"a": "\\\udbff"}': r"\udbff",
    r'{"\ud800": 1}': r"\ud800",
}


@pytest.mark.parametrize("body", ALONE)
@pytest.mark.parametrize("is_text", [True, False])
def test_half_a_character_is_named(body: str, *, is_text: bool) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(body)
    said = why_no_json(body if is_text else body.encode(), ERROR)
    assert said == (
        f"{ALONE[body]} is half of a surrogate pair and stands alone, which is no valid"
        " Unicode text; send the whole character"
    )


@pytest.mark.parametrize(
    "body", [r'{"a": "\\ud800', r'{"a": "\ud83d\ude00', r'{"a": "\ud8', "", "\\", "é{"]
)
def test_of_anything_else_the_reader_s_own_words_are_told(body: str) -> None:
    assert why_no_json(body, ERROR) == "it ends too early"


@given(st.text(max_size=20))
def test_whole_characters_are_never_called_half(text: str) -> None:
    assert why_no_json(json.dumps(text), ERROR) == "it ends too early"


@given(st.binary(max_size=40))
def test_any_bytes_will_do(body: bytes) -> None:
    assert why_no_json(body, ERROR)


def test_what_is_no_utf_8_is_told_with_its_place_in_the_whole() -> None:
    with pytest.raises(ApiError, match=r"JSON: byte 12 is not UTF-8; write it as"):
        decode_request(b'{"model": "a\xff"}')


def test_programs_are_told() -> None:
    body = rb'{"model": "anna", "messages": [{"role": "user", "content": "\ud800"}]}'
    with pytest.raises(ApiError, match=r"JSON: \\ud800 is half of a surrogate pair"):
        decode_request(body)


def test_clients_of_the_websocket_are_told() -> None:
    with pytest.raises(FrameError, match=r"JSON: \\ud800 is half of a surrogate pair"):
        read(r'{"type": "message", "content": "\ud800"}')
