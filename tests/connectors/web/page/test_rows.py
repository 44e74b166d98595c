"""Proves the rules of the page that need neither a browser nor a clock."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.deliveries import Reaction
from actors.messages.inbound import Address
from connectors.web.page.chat.chats import chats_for, find_chat, may_read
from connectors.web.page.chat.messages import PageMessage, own_id, with_sign
from connectors.web.page.login_rows import LINK, LoginLink, new_token, row_id, surplus
from connectors.web.page.logins import Tries, cookie, cookie_value
from connectors.web.page.platform import PageConfig, PageRoomConfig
from connectors.web.page.words import Words
from runtime.store.rows import StoredEntry

ROOMS = {"lobby": PageRoomConfig(), "desk": PageRoomConfig("Desk", ("b*",))}
CONFIG = PageConfig(people=("sam", "zoe"), rooms=ROOMS)
AGENTS = ("anna", "ben")


def stored(name: str, link: LoginLink) -> StoredEntry:
    body = msgspec.json.encode(link)
    return StoredEntry(LINK, f"page/{name}", "page", 0, 1, 1, body, 0.0)


@given(
    ends=st.lists(st.floats(0, 100), max_size=12),
    now=st.floats(0, 100),
    most=st.integers(0, 12),
)
def test_what_holds_no_more_goes_and_then_the_oldest(
    ends: Sequence[float], now: float, most: int
) -> None:
    rows = [
        stored(str(index), LoginLink("sam", until, float(index)))
        for index, until in enumerate(ends)
    ]
    gone = {each.id for each in surplus(rows, LoginLink, now, most)}
    left = [index for index in range(len(ends)) if f"page/{index}" not in gone]
    holding = [index for index, until in enumerate(ends) if until > now]
    assert left == holding[max(0, len(holding) - most) :]


def test_a_row_that_nobody_can_read_goes() -> None:
    odd = StoredEntry(LINK, "page/x", "page", 0, 1, 1, b"{}", 0.0)
    assert [each.id for each in surplus([odd], LoginLink, 0.0, 5)] == ["page/x"]


def test_tokens_differ_and_their_rows_tell_nothing_of_them() -> None:
    one, other = new_token(b"\x00" * 32), new_token(b"\xff" * 32)
    assert len(one) == 43
    assert row_id("page", one) != row_id("page", other) != row_id("web", other)
    assert one not in row_id("page", one)


@given(
    fails=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 30)), max_size=30),
    limit=st.integers(1, 4),
)
def test_whoever_fails_too_often_waits_until_the_time_is_over(
    fails: list[tuple[str, float]], limit: int
) -> None:
    tries, now = Tries(limit, 10.0), 0.0
    windows: dict[str, tuple[float, int]] = {}
    for client, pause in fails:
        now += pause
        begun, count = windows.get(client, (now, 0))
        is_over = now - begun >= 10.0
        must_wait = count >= limit and not is_over
        assert (tries.wait(client, now) > 0) == must_wait
        windows[client] = (now, 1) if is_over or not count else (begun, count + 1)
        tries.failed(client, now)


@pytest.mark.parametrize(
    ("chat", "agents", "path"),
    [
        ("sam/anna", ("anna",), "/chat/with/anna"),
        ("#lobby", AGENTS, "/chat/room/lobby"),
        ("#desk", ("ben",), "/chat/room/desk"),
    ],
)
def test_chats_are_where_their_names_say(
    chat: str, agents: tuple[str, ...], path: str
) -> None:
    place = find_chat(chat, CONFIG, AGENTS)
    assert place is not None
    assert (place.agents, place.path) == (agents, path)


@pytest.mark.parametrize(
    "chat", ["", "#", "#none", "sam", "sam/", "sam/eve", "eve/anna", "/anna", "sam/#"]
)
def test_there_is_no_other_chat(chat: str) -> None:
    assert find_chat(chat, CONFIG, AGENTS) is None


def test_everybody_has_their_own_chats_and_all_rooms() -> None:
    found = [each.chat for each in chats_for("sam", CONFIG, AGENTS)]
    assert found == ["sam/anna", "sam/ben", "#lobby", "#desk"]
    for chat in found:
        place = find_chat(chat, CONFIG, AGENTS)
        assert place is not None
        assert may_read("sam", place)
        assert may_read("zoe", place) == place.is_room


def test_what_is_said_to_an_agent_that_has_gone_is_still_somebodys() -> None:
    place = find_chat("sam/eve", CONFIG)
    assert place is not None
    assert place.person == "sam"


def test_the_same_key_is_another_message_of_others_and_elsewhere() -> None:
    ids = {own_id(who, chat, "k") for who in ("sam", "zoe") for chat in ("a", "b")}
    assert len(ids) == 4
    assert own_id("sam", "a", "k") in ids


def test_an_agent_has_the_signs_it_put_and_took_none_of_others() -> None:
    message = PageMessage(id="m", chat="c", at=1, changed=1, author="sam", text="hi")

    def put(agent: str, sign: str, instead_of: str = "") -> tuple[tuple[str, str], ...]:
        nonlocal message
        reaction = Reaction(
            correlation_id="m",
            address=Address("page", "c"),
            agent=agent,
            message="m",
            sign=sign,
            instead_of=instead_of,
        )
        message = with_sign(message, reaction)
        return message.signs

    assert put("anna", "👀") == (("anna", "👀"),)
    assert put("anna", "👀") == (("anna", "👀"),)
    assert put("ben", "✅", "👀") == (("anna", "👀"), ("ben", "✅"))
    assert put("anna", "", "👀") == (("ben", "✅"),)
    for index in range(30):
        assert len(put("anna", f"s{index}")) <= 20


def test_our_cookie_is_found_among_others() -> None:
    config = PageConfig(port=8081)
    name = cookie(config, "value", 60).partition(";")[0]
    assert cookie_value(config, f"a=b; {name}; c=d") == "value"
    assert cookie_value(config, "a=b; callboard-9=x") == ""
    assert cookie_value(config, f"callboard-8081={'x' * 200}") == ""


def test_times_and_numbers_are_written_for_people() -> None:
    english, german = Words(), Words("de", {"never": "nie"})
    assert [english.lasting(each) for each in (0.4, 59, 61, 3_660, 200_000)] == [
        *(
            "0\u00a0s",
            "59\u00a0s",
            "1\u00a0min",
            "1\u00a0h 1\u00a0min",
            "2\u00a0d 7\u00a0h",
        )
    ]
    assert english.when(0) == "never"
    assert english.when(86_400) == "1970-01-02 00:00:00 UTC"
    assert german.when(0) == "nie"
    assert german.when(86_400) == "02.01.1970 00:00:00 UTC"
    assert (english.number(1234), english.number(0.5)) == ("1,234", "0.50")
    assert (german.number(1234), german.number(0.5)) == ("1.234", "0,50")
