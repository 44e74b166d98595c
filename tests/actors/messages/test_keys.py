"""Proves that different conversations have different keys, and the same ones equal."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import Address, Inbound
from actors.messages.keys import (
    PARTITIONS,
    SessionKey,
    SessionScope,
    parse_key,
    partition,
    session_key,
)

parts = st.text(alphabet=st.sampled_from("ab/~01é"), max_size=5) | st.text(max_size=8)
keys = st.builds(SessionKey, parts, parts, parts, parts, parts, parts)


def heard(sender: str = "u1", *, is_direct: bool, thread: str = "") -> Inbound:
    return Inbound(
        id="1",
        correlation_id="1",
        platform="test",
        platform_id="1",
        address=Address("conn", "chat", thread),
        sender_id=sender,
        sender_name="Uma",
        text="hi",
        received_at=0,
        is_direct=is_direct,
    )


@given(keys)
def test_a_key_is_read_back_from_its_text(key: SessionKey) -> None:
    assert parse_key(key.text) == key


@given(keys, keys)
def test_different_keys_have_different_texts(one: SessionKey, two: SessionKey) -> None:
    assert (one.text == two.text) == (one == two)


@given(parts, parts, st.sampled_from("/~"))
def test_a_separator_moved_between_fields_gives_another_text(
    left: str, right: str, mark: str
) -> None:
    one = SessionKey("a", left + mark, right)
    two = SessionKey("a", left, mark + right)
    assert one.text != two.text


@given(st.text(alphabet=st.sampled_from("a/~01"), max_size=12))
def test_only_what_a_key_writes_is_read(text: str) -> None:
    try:
        key = parse_key(text)
    except ValueError as error:
        assert "is not a session key" in str(error)  # noqa: PT017  some texts are keys
    else:
        assert key.text == text


@pytest.mark.parametrize(
    "text", ["", "a/b/c/d", "a/b/c/d/e/", "a/b/c/d/e/f/g", "a/b/c/d/~2", "a/b/c/d/~"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a session key"):
        parse_key(text)


@pytest.mark.parametrize(
    ("is_direct", "scope", "sender"),
    [(True, "chat", "u1"), (True, "sender", "u1"), (False, "chat", "")],
)
def test_direct_chats_are_by_sender_and_groups_are_shared(
    scope: SessionScope, sender: str, *, is_direct: bool
) -> None:
    key = session_key(heard(is_direct=is_direct, thread="t"), "anna", scope)
    assert key == SessionKey("anna", "conn", "chat", "t", sender)


def test_a_group_is_by_sender_if_the_scope_says_so() -> None:
    one = session_key(heard("u1", is_direct=False), "anna", "sender")
    two = session_key(heard("u2", is_direct=False), "anna", "sender")
    assert (one.sender, two.sender) == ("u1", "u2")


def test_the_text_does_not_depend_on_the_message() -> None:
    first = heard(is_direct=True)
    second = msgspec.structs.replace(first, id="2", text="other", received_at=9)
    texts = {session_key(each, "anna", "chat").text for each in (first, second)}
    assert texts == {"anna/conn/chat//u1"}


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_every_text_has_a_partition(text: str) -> None:
    assert 0 <= partition(text) < PARTITIONS


@pytest.mark.parametrize(
    ("text", "expected"), [("", 0xE3), ("anna/conn/chat//u1", 0xDC), ("\ud800", 0x91)]
)
def test_partitions_never_change(text: str, expected: int) -> None:
    assert partition(text) == expected


def test_keys_spread_over_the_partitions() -> None:
    used = {partition(f"anna/http/chat-{number}//u") for number in range(4096)}
    assert len(used) == PARTITIONS
