"""Whatever Telegram sends: it is a message, a button, or there is a reason why not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from connectors.chat.telegram.events import (
    Malformed,
    Moved,
    Pressed,
    TelegramMessage,
    User,
    cut_out,
    read,
    read_update,
    read_updates,
    with_agents,
)
from connectors.chat.telegram.inbound import specifics

BOT = User(7, is_bot=True, first_name="Anna", username="anna_bot")
ZOE = {"id": 1, "first_name": "Zoe", "last_name": "Doe", "username": "zoe_1"}
GROUP = {"id": -100123, "type": "supergroup", "title": "All"}


def message(**fields: Any) -> dict[str, Any]:
    """Give a message of Zoe's in a group."""
    return {"message_id": 5, "chat": GROUP, "date": 9, "from": ZOE, **fields}


def heard(**fields: Any) -> Any:
    """Say what an update with such a message is."""
    body = msgspec.json.encode({"update_id": 3, "message": message(**fields)})
    return read(read_update(body), [BOT])


def spoken(**fields: Any) -> TelegramMessage:
    """Give a message that was said."""
    found = heard(**fields)
    assert isinstance(found, TelegramMessage)
    return found


def mark(kind: str, offset: int, length: int, **fields: Any) -> dict[str, Any]:
    """Give an entity."""
    return {"type": kind, "offset": offset, "length": length, **fields}


def test_a_message_is_read_with_who_said_it_and_where() -> None:
    found = spoken(text="hi")
    assert (found.chat, found.sender_id, found.sender_name) == (-100123, 1, "Zoe Doe")
    assert (found.text, found.sent_at, found.is_direct) == ("hi", 9, False)
    assert found.message_id == 5
    told = {"username": "zoe_1", "chat_title": "All"}
    assert specifics(found) == told
    chat = {"id": 1, "type": "private"}
    assert specifics(spoken(text="hi", chat=chat)) == {"username": "zoe_1"}
    anonymous = {"sender_chat": GROUP, "from": {"id": 1087968824, "first_name": "G"}}
    assert specifics(spoken(text="hi", **anonymous))["is_anonymous"] == "true"
    assert spoken(text="hi", chat={"id": 1, "type": "private"}).is_direct


@pytest.mark.parametrize(
    ("code", "language"),
    [("es", "es"), ("pt-br", "pt"), ("DE", "de"), ("uk", ""), ("", ""), (None, "")],
)
def test_the_language_of_somebodys_client_is_read(
    code: str | None, language: str
) -> None:
    sender = ZOE if code is None else ZOE | {"language_code": code}
    assert spoken(text="hi", **{"from": sender}).language == language


@pytest.mark.parametrize(
    ("fields", "is_called"),
    [
        (
            {"text": "\U0001f98a @Anna_Bot hi", "entities": [mark("mention", 3, 9)]},
            True,
        ),
        (
            {"text": "\U0001f98a @anna_bot hi", "entities": [mark("mention", 2, 9)]},
            False,
        ),
        ({"text": "@ben_bot hi", "entities": [mark("mention", 0, 8)]}, False),
        (
            {"text": "Anna", "entities": [mark("text_mention", 0, 4, user={"id": 7})]},
            True,
        ),
        ({"text": "/x@anna_bot", "entities": [mark("bot_command", 0, 11)]}, True),
        ({"text": "/x", "entities": [mark("bot_command", 0, 2)]}, False),
        ({"text": "@anna_bot", "entities": []}, False),
        (
            {
                "caption": "@anna_bot",
                "photo": [{"file_id": "a"}],
                "caption_entities": [mark("mention", 0, 9)],
            },
            True,
        ),
        ({"text": "yes", "reply_to_message": message(**{"from": {"id": 7}})}, True),
        ({"text": "yes", "reply_to_message": message()}, False),
    ],
)
def test_who_is_called_stands_in_the_marks(
    fields: dict[str, Any], *, is_called: bool
) -> None:
    assert spoken(**fields).called == ({BOT.id} if is_called else set())


def test_a_thread_of_replies_is_no_topic() -> None:
    assert spoken(text="a", message_thread_id=4).topic == 0
    in_topic = {"message_thread_id": 4, "is_topic_message": True}
    first = message(message_id=4, text="opened")
    found = spoken(text="a", **in_topic, reply_to_message=first)
    assert (found.topic, found.reply_to, found.quoted) == (4, 0, "")
    other = message(message_id=2, text="what?")
    found = spoken(text="a", **in_topic, reply_to_message=other)
    assert (found.reply_to, found.quoted, found.quoted_sender) == (
        2,
        "what?",
        "Zoe Doe",
    )
    part = spoken(text="a", reply_to_message=other, quote={"text": "what"})
    assert part.quoted == "what"


def test_of_a_photo_the_largest_is_taken() -> None:
    sizes = [
        {"file_id": name, "width": w, "height": w} for name, w in (("a", 9), ("b", 90))
    ]
    (file,) = spoken(photo=sizes).files
    assert (file.kind, file.file_id, file.media_type) == ("image", "b", "image/jpeg")
    (voice,) = spoken(voice={"file_id": "v", "file_size": 12}).files
    assert (voice.kind, voice.media_type, voice.size) == ("audio", "audio/ogg", 12)


AT = {"latitude": 52.5, "longitude": 13.4}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"location": AT}, "[location: 52.5 13.4]"),
        (
            {
                "location": AT,
                "venue": {"location": AT, "title": "Inn", "address": "Main St 1"},
            },
            "[location: Inn, Main St 1, 52.5 13.4]",
        ),
        (
            {"contact": {"phone_number": "+1", "first_name": "Sam", "last_name": "B"}},
            "[contact: Sam B, +1]",
        ),
        ({"sticker": {"file_id": "s", "emoji": "\U0001f98a"}}, "[sticker: \U0001f98a]"),
        ({"sticker": {"file_id": "s"}}, "[sticker]"),
        (
            {
                "poll": {
                    "question": "Tea?",
                    "options": [{"text": "yes"}, {"text": "no"}],
                }
            },
            "[poll: Tea?, yes, no]",
        ),
        ({"dice": {"emoji": "\U0001f3af", "value": 6}}, "[dice: \U0001f3af, 6]"),
        ({"story": {"chat": {"id": 7, "type": "private"}, "id": 3}}, "[story]"),
        ({"checklist": {"title": "Trip", "tasks": []}}, "[checklist: Trip]"),
        ({"game": {"title": "Chess", "photo": []}}, "[game: Chess]"),
        ({"paid_media": {"star_count": 5, "paid_media": []}}, "[paid media]"),
    ],
)
def test_what_is_no_text_comes_as_words(fields: dict[str, Any], text: str) -> None:
    assert spoken(**fields).text == text
    reply = spoken(text="where?", reply_to_message=message(**fields))
    assert reply.quoted == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/start@anna_bot now", "/start@anna now"),
        ("@Anna_Bot what is up, @ben_bot?", "@anna what is up, @ben?"),
        ("@anna_bot: /help", "@anna: /help"),
        ("@annabot", "@annabot"),
        ("write to joe@anna_bot.com or joe@anna_bot", None),
        ("@anna_bot.example", None),
        ("@zoe hi", None),
    ],
)
def test_what_calls_our_bots_names_their_agents(
    text: str, expected: str | None
) -> None:
    names = {"anna_bot": "anna", "Ben_bot": "ben", "": "cara"}
    assert with_agents(text, names) == (expected or text)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"from": {"id": 7}, "text": "a"}, "own"),
        ({"new_chat_title": "All"}, "service"),
        ({"chat": {"id": -1, "type": "channel"}, "text": "a"}, "channel"),
        ({"migrate_to_chat_id": -5}, Moved(-100123, -5)),
        ({"text": 5}, "malformed"),
    ],
)
def test_what_is_no_message_has_a_reason(fields: dict[str, Any], found: object) -> None:
    assert heard(**fields) == found


def test_edits_channels_and_buttons() -> None:
    query = {"id": "q", "from": ZOE, "message": message(), "data": "skill:a:b"}
    updates: list[dict[str, Any]] = [
        {"update_id": 1, "edited_message": message(text="a")},
        {"update_id": 2, "channel_post": message(text="a")},
        {"update_id": 3, "callback_query": query},
        {"update_id": 4, "poll": {}},
    ]
    found = [read(read_update(msgspec.json.encode(each)), [BOT]) for each in updates]
    assert found[:2] == ["edit", "channel"]
    assert found[2] == Pressed("q", 1, "Zoe Doe", -100123, 5, 0, "skill:a:b")
    assert found[3] == "unknown"


def test_one_odd_update_does_not_hide_the_others() -> None:
    body = b"""{"ok": true, "result": [{"update_id": 1, "message": 5}, {"a": 1},
        {"update_id": 2, "x": "\\ud800", "message": {"chat": 1}}, {"update_id": 3}]}"""
    answer = read_updates(body)
    assert [each.update_id for each in answer.result or ()] == [1, 2, 3]
    assert [isinstance(each, Malformed) for each in answer.result or ()] == [1, 1, 0]


def test_a_refusal_says_when_to_ask_again() -> None:
    body = b'{"ok":false,"error_code":429,"parameters":{"retry_after":3}}'
    answer = read_updates(body)
    assert (answer.ok, answer.error_code, answer.parameters.retry_after) == (
        False,
        429,
        3,
    )
    with pytest.raises(ValueError, match="Expecting value"):
        read_updates(b"<html>")


@given(st.text(alphabet="aé\U0001f98a\U0001f468 ", max_size=20), st.data())
def test_a_part_is_cut_out_by_utf16(text: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    offset, length = (
        len(part.encode("utf-16-le")) // 2 for part in (text[:begin], text[begin:end])
    )
    assert cut_out(text, offset, length) == text[begin:end]


@given(st.text(max_size=10), st.integers(-5, 25), st.integers(-5, 25))
def test_an_odd_count_cuts_no_letter(text: str, offset: int, length: int) -> None:
    assert cut_out(text, offset, length) in text
