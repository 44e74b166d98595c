"""Every event is a message for us or is left out for a reason, whatever its shape."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from connectors.chat.matrix.events import (
    MatrixFile,
    MatrixMessage,
    MatrixSkipped,
    read,
    without_fallback,
)
from connectors.chat.matrix.listener import read_batch
from connectors.chat.matrix.rooms import Room
from connectors.chat.requests import decode, text
from tests.support.chat.matrix_bed import ANNA, BEN, ZOE

USERS = {ANNA: "anna", BEN: "ben"}
Json = dict[str, Any]


def event(content: object = None, **more: object) -> Json:
    said = {"msgtype": "m.text", "body": "hello"} if content is None else content
    whole = {"event_id": "$1", "sender": ZOE, "type": "m.room.message", "content": said}
    return {**whole, **more}


def spoken(content: Json, **more: object) -> MatrixMessage:
    found = read(event({"msgtype": "m.text", "body": "hi", **content}, **more), USERS)
    assert isinstance(found, MatrixMessage)
    return found


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (event(sender=ANNA), "own"),
        (event(sender=7), "malformed"),
        (event(sender="zoe"), "malformed"),
        (event(event_id=""), "malformed"),
        (event(event_id="$" + "x" * 300), "malformed"),
        (event(event_id="$a\nb"), "malformed"),
        (event({"msgtype": "m.text"}), "malformed"),
        (event({"body": "hi"}), "malformed"),
        (event({"msgtype": "m.text", "body": 5}), "malformed"),
        (event({"msgtype": "m.text", "body": "  "}), "empty"),
        (event({"msgtype": "org.poll", "body": "vote"}), "unknown"),
        (event({}), "redaction"),
        (event("hello"), "redaction"),
        (event(type="m.room.redaction"), "redaction"),
        (event(type="m.reaction"), "reaction"),
        (event(type="m.room.encrypted"), "encrypted"),
        (event(type="m.room.member", state_key=ZOE), "state"),
        (event(type="m.call.invite"), "unknown"),
        (event(type=None), "malformed"),
        (
            event(
                {
                    "msgtype": "m.text",
                    "body": "* hi",
                    "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"},
                }
            ),
            "edit",
        ),
    ],
)
def test_what_is_no_message_is_left_out_for_a_reason(odd: Json, reason: str) -> None:
    assert read(odd, USERS) == MatrixSkipped(reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "mentions"),
    [
        ({"m.mentions": {"user_ids": [BEN, ANNA]}}, ("anna", "ben")),
        ({"m.mentions": {"user_ids": [ZOE, 5]}}, ()),
        ({"m.mentions": {}, "body": f"{ANNA} hello"}, ()),
        ({"body": f"{ANNA}: hello"}, ("anna",)),
        ({"body": f"mail me at x{ANNA}"}, ()),
        (
            {"formatted_body": f'<a href="https://matrix.to/#/{BEN}">Ben</a>: hi'},
            ("ben",),
        ),
        (
            {"formatted_body": '<a href="https://matrix.to/#/%40ben%3Ahs.test">x'},
            ("ben",),
        ),
        (
            {
                "formatted_body": "<mx-reply><a href='https://matrix.to/#/"
                f"{BEN}'>Ben</a> said</mx-reply>yes"
            },
            (),
        ),
    ],
)
def test_who_is_mentioned(content: Json, mentions: tuple[str, ...]) -> None:
    assert spoken(content).mentions == mentions


LINKED = "https://matrix.to/#/@{0}:hs.test"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"[{ANNA}]({LINKED.format('anna')}) hello", "@anna hello"),
        ("[Anna](https://matrix.to/#/%40anna%3Ahs.test): /help", "@anna: /help"),
        (f"ask [Zoe](<{LINKED.format('zoe')}?via=hs.test>)", "ask Zoe"),
        (f"{ANNA} hello, {BEN}. And {ZOE}?", f"@anna hello, @ben. And {ZOE}?"),
        (f"[{ANNA}](https://elsewhere.test/)", "[@anna](https://elsewhere.test/)"),
        ("[a room](https://matrix.to/#/#a:hs)", "[a room](https://matrix.to/#/#a:hs)"),
        ("@anna:hs.test.example", "@anna:hs.test.example"),
    ],
)
def test_mentions_read_as_on_the_screen_whatever_the_client_writes(
    body: str, text: str
) -> None:
    assert spoken({"body": body}).text == text
    assert spoken({"body": body, "m.mentions": {"user_ids": [ANNA]}}).text == text


def test_an_id_at_the_end_of_a_sentence_is_a_mention() -> None:
    assert spoken({"body": f"That is for {ANNA}."}).mentions == ("anna",)


def test_a_call_to_the_whole_room_is_no_mention_of_an_agent() -> None:
    found = spoken({"m.mentions": {"room": True}})
    assert (found.mentions, found.mentions_room) == ((), True)


def test_a_reply_comes_without_the_words_it_replies_to() -> None:
    related = {"m.in_reply_to": {"event_id": "$0"}}
    body = f"> <{ANNA}> first\n> second\n\n> mine\nyes"
    found = spoken({"body": body, "m.relates_to": related})
    assert (found.reply_to, found.text) == ("$0", "> mine\nyes")


def test_a_quotation_that_is_no_reply_stays() -> None:
    assert spoken({"body": "> <@x:y> a\n\nb"}).text == "> <@x:y> a\n\nb"
    assert without_fallback("> just words\n\nb") == "> just words\n\nb"


@pytest.mark.parametrize(("is_falling_back", "reply_to"), [(True, ""), (False, "$0")])
def test_a_thread_and_a_reply_in_it_are_told_apart(
    is_falling_back: bool,  # noqa: FBT001
    reply_to: str,
) -> None:
    related = {
        "rel_type": "m.thread",
        "event_id": "$root",
        "is_falling_back": is_falling_back,
        "m.in_reply_to": {"event_id": "$0"},
    }
    found = spoken({"m.relates_to": related})
    assert (found.thread, found.reply_to) == ("$root", reply_to)


def test_a_place_and_a_sticker_come_as_words() -> None:
    place = {"msgtype": "m.location", "body": "Inn", "geo_uri": "geo:52.5,13.4;u=9"}
    assert spoken(place).text == "[location: Inn, geo:52.5,13.4;u=9]"
    sticker = read(
        event({"body": "a fox", "url": "mxc://a/b"}, type="m.sticker"), USERS
    )
    assert isinstance(sticker, MatrixMessage)
    assert sticker.text == "[sticker: a fox]"


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        (
            "org.matrix.msc3381.poll.start",
            {
                "question": {"org.matrix.msc1767.text": "Tea?"},
                "answers": [{"id": "1", "org.matrix.msc1767.text": "yes"}, 5, {}],
            },
        ),
        (
            "m.poll.start",
            {
                "question": {"m.text": [{"body": "Tea?"}]},
                "answers": [{"m.id": "1", "m.text": [{"body": "yes"}]}],
            },
        ),
    ],
)
def test_a_poll_comes_as_words(kind: str, asked: Json) -> None:
    key = "m.poll" if kind == "m.poll.start" else kind
    found = read(event({key: asked}, type=kind), USERS)
    assert isinstance(found, MatrixMessage)
    assert (found.text, found.kind) == ("[poll: Tea?, yes]", "m.text")
    odd = read(event({key: [asked]}, type=kind), USERS)
    assert isinstance(odd, MatrixMessage)
    assert odd.text == "[poll]"


def test_notices_are_a_programs() -> None:
    assert spoken({"msgtype": "m.notice"}).is_bot
    assert not spoken({}).is_bot


def test_a_file_and_the_words_beside_it() -> None:
    content = {
        "msgtype": "m.image",
        "url": "mxc://hs.test/abc",
        "info": {"mimetype": "image/png", "size": 7},
    }
    alone = spoken({**content, "body": "cat.png"})
    assert (alone.text, alone.file) == (
        "",
        MatrixFile("image", "cat.png", "image/png", "hs.test", "abc", 7),
    )
    titled = spoken({**content, "body": "my cat", "filename": "cat.png"})
    assert (titled.text, titled.file) == ("my cat", alone.file)


@pytest.mark.parametrize("url", [None, "https://x/y", "mxc://a/b/../c", "mxc://a"])
def test_a_file_without_a_proper_address_has_none(url: object) -> None:
    file = spoken({"msgtype": "m.file", "body": "x", "url": url}).file
    assert file is not None
    assert file.media_id == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["body", "msgtype", "m.relates_to", "event_id", "x"]), inner
        )
    ),
    max_leaves=12,
)
EVENTS = st.dictionaries(
    st.sampled_from(["event_id", "sender", "type", "content", "state_key", "unsigned"]),
    JSON | st.sampled_from(["m.room.message", "m.room.member", "$1", ZOE, ANNA]),
)
CONTENTS = st.dictionaries(
    st.sampled_from(
        ["msgtype", "body", "m.mentions", "m.relates_to", "url", "info", "filename"]
    ),
    JSON | st.sampled_from(["m.text", "m.image", "m.location", f"{ANNA} hi"]),
)


@given(EVENTS | CONTENTS.map(event))
def test_any_event_is_read_or_left_out(odd: Json) -> None:
    found = read(odd, USERS)
    assert isinstance(found, MatrixMessage | MatrixSkipped)
    room = Room()
    room.apply(odd)
    assert room.present(USERS) in {(), ("anna",), ("ben",)}
    if isinstance(found, MatrixMessage):
        msgspec.json.encode(found)


@given(JSON, JSON)
def test_any_answer_of_sync_is_read_or_refused(rooms: object, token: object) -> None:
    answer = {"next_batch": token, "rooms": {"join": {"!r": rooms}, "invite": rooms}}
    try:
        batch = read_batch(answer)
    except ValueError:
        assert not text(token)
    else:
        assert batch.next_batch


def test_half_a_character_stops_nothing() -> None:
    found = decode(b'{"body": "a\\ud800b", "next_batch": "s1"}')
    assert text(found["body"]) == "a?b"


@pytest.mark.parametrize("odd", [b"", b"7", b'"x"', b"{", b"\xff"])
def test_what_is_no_json_is_refused(odd: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        decode(odd)
