"""The pure rules of Discord: places, payloads, refusals, and what is sent."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from connectors.chat.accounts import ReadMarks
from connectors.chat.discord import inbound as slash, markup
from connectors.chat.discord.events import (
    DiscordMessage,
    DiscordScene,
    DiscordSkipped,
    at,
    command_of,
    name_of,
    number,
    read,
    readable,
    seconds_of,
    span,
)
from connectors.chat.requests import is_within

KEYS = st.sampled_from(
    (
        *("id", "channel_id", "author", "type", "content", "member", "mentions"),
        *("attachments", "embeds", "message_reference", "referenced_message"),
        *("message_snapshots", "sticker_items", "roles", "user", "guild_id"),
        *("data", "name"),
    )
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("123456789012"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@given(payload=st.dictionaries(KEYS, ODD))
def test_any_payload_is_a_message_or_a_reason(payload: dict[str, object]) -> None:
    found = read(payload, {})
    assert isinstance(found, DiscordMessage | DiscordSkipped)
    chosen = command_of(payload)
    assert chosen is None or chosen.text.startswith("/")
    if isinstance(found, DiscordMessage):
        assert isinstance(readable(found.text, found, DiscordScene(), {}), str)


@given(
    steps=st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=60),
    held_at=st.integers(0, 60),
)
def test_the_place_never_passes_what_is_under_way(
    steps: list[tuple[int, bool]], held_at: int
) -> None:
    marks, open_ones, before = ReadMarks(5), list[int](), 5
    for index, (message, is_end) in enumerate(steps):
        if index == held_at:
            marks.hold()
        if is_end and open_ones:
            marks.end(open_ones.pop(message % len(open_ones)))
        elif message > marks.place:
            marks.begin(message)
            open_ones.append(message)
        assert marks.place >= before or marks.is_held
        assert all(each > marks.place for each in open_ones)
        before = marks.place
    marks.release()
    for each in open_ones:
        marks.end(each)
    assert marks.place >= before


def test_a_held_place_stays_until_it_is_let_go() -> None:
    marks = ReadMarks(5)
    marks.hold()
    marks.begin(9)
    marks.end(9)
    assert (marks.place, marks.is_held) == (5, True)
    marks.release()
    assert marks.place == 9


def test_ids_are_places_in_time() -> None:
    assert at(1_767_225_600.0) == 1_456_081_449_779_200_000 or at(1.0) == 0
    now = 1_790_000_000.5
    assert seconds_of(at(now)) == pytest.approx(now, abs=0.001)
    assert at(now + 10) - at(now) == span(10)


@pytest.mark.parametrize("text", ["", "x", "-1", "１２", "1" * 21, "1.0"])
def test_what_is_no_id_is_none(text: str) -> None:
    assert number(text) == 0


def test_a_forward_a_sticker_an_embed_and_a_poll_are_read() -> None:
    base: dict[str, object] = {
        "id": "1",
        "channel_id": "2",
        "author": {"id": "3", "username": "zoe", "bot": True},
        "content": "",
    }
    passed = {"message": {"content": "hello"}}
    forward = {**base, "message_reference": {"type": 1, "message_id": "9"}}
    forward["message_snapshots"] = [passed]
    sticker = {**base, "sticker_items": [{"name": "wave"}]}
    embed = {**base, "embeds": [{"title": "Build", "description": "failed"}]}
    answers = [{"answer_id": 1, "poll_media": {"text": "yes"}}]
    poll = {**base, "poll": {"question": {"text": "Tea?"}, "answers": answers}}
    said = [read(each, {}) for each in (forward, sticker, embed, poll)]
    texts = [each.text for each in said if isinstance(each, DiscordMessage)]
    assert texts == [
        "[forwarded] hello",
        "[sticker: wave]",
        "Build\nfailed",
        "[poll: Tea?, yes]",
    ]
    assert isinstance(said[0], DiscordMessage)
    assert said[0].reply_to == ""


def test_somebody_is_called_as_near_as_they_are_known() -> None:
    user: dict[str, object] = {"id": "3", "username": "zoe", "global_name": "Zoë"}
    called = [name_of(user, {"nick": "Z"}), name_of(user, {})]
    for name in ("global_name", "username"):
        user[name] = " \u200b"  # nothing that anybody sees
        called.append(name_of(user, {"nick": ""}))
    assert called == ["Z", "Zoë", "zoe", "3"]


@given(text=st.text(max_size=1_900))
def test_what_is_sent_fits_and_calls_nobody(text: str) -> None:
    message = markup.message(text, "key")
    said = str(message["content"])
    assert 0 < len(said) <= 2_000
    assert said.strip()
    assert "@everyone" not in said


def test_commands_are_as_discord_takes_them() -> None:
    found = slash.commands()
    assert 0 < len(found) <= 100
    for each in found:
        assert str(each["name"]).islower()
        assert 0 < len(str(each["description"])) <= 100


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("https://cdn.discordapp.com/attachments/1/2/cat.png?ex=1", True),
        ("https://cdn.discordapp.com.evil.example/cat.png", False),
        ("https://evil.example/https://cdn.discordapp.com/", False),
        ("http://cdn.discordapp.com/cat.png", False),
        ("https://cdn.discordapp.com:8443/cat.png", False),
        ("https://[broken", False),
        ("", False),
    ],
)
def test_files_lie_where_discords_files_do(url: str, *, is_one: bool) -> None:
    assert is_within(url, ("https://cdn.discordapp.com",)) is is_one
