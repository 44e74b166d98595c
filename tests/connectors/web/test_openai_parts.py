"""Pictures, recordings and documents in a request become attachments, or a 400."""

from __future__ import annotations

import base64
import contextlib
import json

import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import Attachment
from connectors.web.openai.protocol import (
    ClientConversation,
    decode_request,
    read_conversation,
)
from connectors.web.server import ApiError
from tests.fakes.media import OGG, PNG

Content = list[object] | str


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def read(*contents: Content) -> ClientConversation:
    """Read a request whose messages of the user have these contents."""
    messages: list[object] = []
    for content in contents:
        messages += [{"role": "user", "content": content}]
        messages += [{"role": "assistant", "content": "ok"}]
    body = {"model": "anna", "messages": messages[:-1]}
    return read_conversation(decode_request(json.dumps(body).encode()))


def part(kind: str, **fields: object) -> Content:
    return [{"type": "text", "text": "look"}, {"type": kind, kind: fields}]


@pytest.mark.parametrize(
    ("content", "attachment"),
    [
        (
            part("image_url", url=f"data:image/png;base64,{encoded(PNG)}"),
            Attachment("image", "picture", "image/png", content=PNG),
        ),
        (
            part("image_url", url=f"DATA:image/png;Base64,{encoded(PNG)}"),
            Attachment("image", "picture", "image/png", content=PNG),
        ),
        (
            part("image_url", url="https://example.org/cat.png", detail="low"),
            Attachment("image", "picture", "", url="https://example.org/cat.png"),
        ),
        (
            part("input_audio", data=encoded(OGG), format="ogg"),
            Attachment("audio", "recording.ogg", "audio/ogg", content=OGG),
        ),
        (
            part("file", file_data=encoded(b"words"), filename="a.txt"),
            Attachment("document", "a.txt", "", content=b"words"),
        ),
        (
            part("file", file_data="data:text/plain,some%20words", filename="a.txt"),
            Attachment("document", "a.txt", "text/plain", content=b"some words"),
        ),
    ],
)
def test_what_comes_along_is_an_attachment(
    content: Content, attachment: Attachment
) -> None:
    assert read(content) == ClientConversation("look", (), (attachment,))


def test_words_are_not_needed_where_something_comes_along() -> None:
    conversation = read([{"type": "image_url", "image_url": "data:image/png,x"}])
    assert conversation.text == ""
    assert len(conversation.attachments) == 1


def test_in_earlier_messages_only_its_place_is_kept() -> None:
    conversation = read(part("image_url", url="data:image/png,x"), "and now?")
    assert conversation.text == "and now?"
    assert conversation.attachments == ()
    assert conversation.history[0].text == "look\n[Image: picture]"


@pytest.mark.parametrize(
    ("content", "param"),
    [
        (part("image_url", url="file:///etc/passwd"), ".image_url"),
        (part("image_url", url="data:nonsense"), ".image_url"),
        (part("image_url", url="data:image/png;base64,%%%"), ".image_url"),
        (part("image_url", url="https://e.org/" + "x" * 9_000), ".image_url"),
        (part("input_audio", data="no base64!"), ".input_audio.data"),
        (part("file", file_id="file-1"), ".file"),
        (part("file", file_data="%"), ".file.file_data"),
        (part("video"), ""),
        (part("image_url"), ".image_url.url"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_name(content: Content, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        read(content)
    assert caught.value.status == 400
    assert caught.value.param == f"messages[0].content[1]{param}"


@given(st.binary(max_size=100))
def test_any_content_comes_back_as_it_was(content: bytes) -> None:
    found = read(part("file", file_data=encoded(content), filename="x"))
    assert found.attachments[0].content == content


@given(st.text(max_size=100))
def test_any_text_as_an_address_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ApiError):
        assert read(part("image_url", url=text)).attachments
