"""What stands in the frames of the plain WebSocket, whoever sends them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from connectors.chat.websocket import frames
from connectors.chat.websocket.frames import Ack, FrameError, Hello, Ping, Say
from connectors.chat.websocket.session import ClientPace

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)

MANY = ",".join(['{"content":"aGk="}'] * 11)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ('{"type": "message", "content": "hi"}', Say("hi")),
        ('{"type":"message","content":"hi","id":"7","more":[]}', Say("hi", "7")),
        ('{"type": "hello", "drafts": true}', Hello(drafts=True)),
        (
            '{"type": "message", "content": "", "files": [{"content": "aGk="}]}',
            Say("", files=(frames.File(b"hi"),)),
        ),
        ('{"type": "ack", "id": 3}', Ack(3)),
        ('{"type": "ping"}', Ping()),
    ],
)
def test_frames_are_read_as_they_are_meant(text: str, frame: frames.Frame) -> None:
    assert frames.read(text) == frame


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "bad_json"),
        ("hi", "bad_json"),
        ('{"type": "ping", "more": ' + "[" * 50_000, "bad_json"),
        ('{"type": "message", "content": "\\ud800"}', "bad_json"),
        ("[]", "bad_frame"),
        ('{"content": "hi"}', "bad_frame"),
        ('{"type": 7}', "bad_frame"),
        ('{"type": "message"}', "bad_frame"),
        ('{"type": "message", "content": 7}', "bad_frame"),
        ('{"type": "message", "content": " \\n"}', "empty"),
        ('{"type": "shout", "content": "hi"}', "unknown_type"),
        ('{"type": "hello", "client": "zoe"}', "bad_client"),
        ('{"type": "hello", "client": "zoe/../../../../etc"}', "bad_client"),
        ('{"type": "ack", "id": "3"}', "bad_frame"),
        ('{"type":"message","content":"a","files":[{"content":"?"}]}', "bad_frame"),
        ('{"type":"message","content":"a","files":[{"content":""}]}', "bad_files"),
        (
            f'{{"type":"message","content":"a","files":[{MANY}]}}',
            "bad_files",
        ),
    ],
)
def test_what_is_no_frame_is_told_with_what_to_do(text: str, code: str) -> None:
    with pytest.raises(FrameError) as caught:
        frames.read(text)
    assert caught.value.code == code
    assert caught.value.cure


@given(st.text() | ANY.map(lambda each: msgspec.json.encode(each).decode()))
def test_no_text_does_harm(text: str) -> None:
    try:
        frame = frames.read(text)
    except FrameError as error:
        told = msgspec.json.decode(frames.error(error, "7"))
        assert told["type"] == "error"
        assert told["id"] == "7"
    else:
        assert isinstance(frame, Hello | Say | Ack | Ping)


@given(st.text())
def test_what_a_conversation_is_called_does_not_tell_the_clients_id(name: str) -> None:
    chat = frames.chat_of(name)
    assert len(chat) == 32
    assert set(chat) <= set("0123456789abcdef")
    assert frames.chat_of(name) == chat != frames.chat_of(name + "x")


@given(st.integers(1, 20), st.lists(st.floats(0, 200), max_size=60).map(sorted))
def test_no_minute_has_more_messages_than_allowed(
    most: int, times: list[float]
) -> None:
    pace = ClientPace(most)
    taken: list[float] = []
    for now in times:
        wait = pace.wait(now)
        inside = [each for each in taken if now - each < 60]
        assert (wait > 0) == (len(inside) >= most)
        if not wait:
            taken.append(now)


def test_without_a_limit_any_number_is_taken() -> None:
    pace = ClientPace(0)
    assert not any(pace.wait(0.0) for _ in range(1000))
