"""What QQ tells of messages is read, whatever it looks like."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from actors.messages.inbound import Quoted
from connectors.chat.qq.api import (
    AddressError,
    DuplicateError,
    TokenError,
    WindowClosedError,
    read_error,
)
from connectors.chat.qq.events import (
    LONGEST_QUOTE,
    PLACES,
    QQMessage,
    QQPlace,
    QQSkipped,
    read,
    read_place,
)
from connectors.chat.qq.transport import MOST_NUMBER, QQQuotes, number_of
from connectors.chat.requests import BusyError, LostError, RefusedError, ShutOutError
from tests.fakes.qq.server import refusal
from tests.support.chat.qq_bed import ANNA, GROUP, ZOE
from tests.support.tiers import examples

FACE = b64encode(b'{"text": "smile"}').decode()
CHANNEL: dict[str, Any] = {
    "id": "08abc",
    "author": {"id": "1234", "username": "Zoe"},
    "channel_id": "100010",
    "guild_id": "187",
    "member": {"roles": ["1"]},
}


def heard(kind: str, **said: Any) -> QQMessage:
    """Read an event that is a message."""
    found = read(kind, said, ANNA, "u1")
    assert isinstance(found, QQMessage)
    return found


@given(text=st.text(min_size=21, max_size=50).map(lambda text: text * 100))
@settings(max_examples=examples(20))
def test_a_quote_is_found_by_both_names_and_no_longer_than_is_kept(text: str) -> None:
    quotes, place = QQQuotes(), QQPlace(ANNA, "group", GROUP)
    quotes.learn(place, ("m!", "4"), Quoted(text=text))
    for name in ("m!", "4"):
        assert quotes.find(place, name) == ("m!", Quoted(text=text[:LONGEST_QUOTE]))
    assert quotes.find(QQPlace(ANNA, "group", "other"), "4") is None


def test_a_member_of_a_group_has_an_id_of_that_group() -> None:
    author = {"member_openid": "AB12", "id": "CD34"}
    found = heard(
        "GROUP_AT_MESSAGE_CREATE",
        id="m!",
        author=author,
        group_openid=GROUP,
        content=" /help",
    )
    assert (found.sender, found.sender_name, found.text) == (
        "AB12",
        "member AB12",
        "/help",
    )
    assert found.place.chat == f"{ANNA}:group:{GROUP}"
    assert not found.place.is_direct


def test_a_channel_tells_names_roles_and_the_call() -> None:
    found = heard("AT_MESSAGE_CREATE", **CHANNEL, content="<@!u1> 2 &lt; 3 &amp; 4")
    assert found.text == "2 < 3 & 4"
    assert (found.sender_name, found.roles, found.guild) == ("Zoe", ("1",), "187")
    assert found.place.chat == f"{ANNA}:channel:100010"
    direct = heard("DIRECT_MESSAGE_CREATE", **CHANNEL, content="x")
    assert direct.place.chat == f"{ANNA}:dm:187"
    assert direct.place.is_direct


def test_whoever_else_is_called_in_a_channel_has_their_name() -> None:
    others = [{"id": "u1", "username": "anna"}, {"id": "77", "username": "Ben\nB"}]
    said = {**CHANNEL, "mentions": others, "content": "<@!u1> ask <@!77> or <@!9>"}
    assert heard("AT_MESSAGE_CREATE", **said).text == "ask @Ben B or <@!9>"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (f'hi <faceType=1,faceId="13",ext="{FACE}">', "hi [smile]"),
        ('<faceType=6, faceId="0", ext="%%%">', "[emoji]"),
        (" as it is <@1> ", " as it is <@1> "),
    ],
)
def test_emoji_come_as_their_names(content: str, text: str) -> None:
    author = {"user_openid": ZOE}
    said = heard("C2C_MESSAGE_CREATE", id="m!", author=author, content=content)
    assert said.text == text


@pytest.mark.parametrize(
    ("attachment", "kind", "media_type", "url"),
    [
        ({"content_type": "image/png", "url": "//x.test/a"}, "image", "image/png", "a"),
        ({"content_type": "voice", "url": "x.test/b"}, "audio", "audio/silk", "b"),
        (
            {"content_type": "voice", "url": "b", "voice_wav_url": "https://x.test/c"},
            "audio",
            "audio/wav",
            "c",
        ),
        ({"content_type": "file", "url": "https://x.test/d"}, "document", "", "d"),
        (
            {"content_type": "video/mp4", "url": "x.test/e"},
            "document",
            "video/mp4",
            "e",
        ),
    ],
)
def test_files_are_what_they_are(
    attachment: dict[str, str], kind: str, media_type: str, url: str
) -> None:
    said = heard(
        "C2C_MESSAGE_CREATE",
        id="m!",
        author={"user_openid": ZOE},
        attachments=[attachment],
    )
    (file,) = said.files
    assert (file.kind, file.media_type) == (kind, media_type)
    assert file.url == f"https://x.test/{url}"


@pytest.mark.parametrize(
    ("kind", "said", "reason"),
    [
        ("GROUP_ADD_ROBOT", {}, "other"),
        ("AT_MESSAGE_CREATE", {**CHANNEL, "author": {"id": "9", "bot": True}}, "bot"),
        ("AT_MESSAGE_CREATE", {**CHANNEL, "id": "two words"}, "malformed"),
        (
            "AT_MESSAGE_CREATE",
            {**CHANNEL, "channel_id": "../users/@me"},
            "malformed",
        ),
        ("C2C_MESSAGE_CREATE", {"id": "m", "author": {}}, "malformed"),
    ],
)
def test_what_is_no_message_is_left_out(
    kind: str, said: dict[str, Any], reason: str
) -> None:
    assert read(kind, said, ANNA, "u1") == QQSkipped(reason)  # type: ignore[arg-type]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
FIELDS = ["id", "author", "content", "timestamp", "attachments", "message_scene"]


@settings(max_examples=examples(40, deep=400))
@given(
    kind=st.sampled_from([*PLACES]),
    said=st.dictionaries(st.sampled_from(FIELDS), ANYTHING),
)
def test_nothing_that_comes_ends_a_bot(kind: str, said: dict[str, Any]) -> None:
    whole = {"id": "m!", "author": {"user_openid": ZOE, "id": "1"}, "guild_id": "2"}
    assert isinstance(read(kind, said, ANNA, "u1"), QQMessage | QQSkipped)
    assert isinstance(read(kind, {**said, **whole}, ANNA, ""), QQMessage | QQSkipped)


@pytest.mark.parametrize("chat", ["", "x", "1:user:", "1:room:2", "a:user:2", "1:dm:/"])
def test_what_is_no_chat_is_refused(chat: str) -> None:
    with pytest.raises(ValueError, match="is no chat"):
        read_place(chat)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, 0, TokenError),
        (400, 11243, TokenError),
        (400, 40054005, DuplicateError),
        (401, 11242, BusyError),
        (400, 40034128, WindowClosedError),
        (400, 304003, AddressError),
        (403, 11265, ShutOutError),
        (429, 0, BusyError),
        (503, 0, BusyError),
        (504, 0, LostError),
        (400, 50006, RefusedError),
    ],
)
def test_refusals_mean_what_they_say(
    status: int, code: int, kind: type[Exception]
) -> None:
    said = refusal(status, code)
    assert type(read_error(status, said.headers, said.content)) is kind
    assert isinstance(read_error(status, {}, b"\xff no JSON"), Exception)


@given(st.text())
def test_a_number_is_always_the_same_and_taken(key: str) -> None:
    assert 0 < number_of(key) < MOST_NUMBER
    assert number_of(key) == number_of(key)
