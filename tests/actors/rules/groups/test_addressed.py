"""Proves whom an agent calls in a group, and that code and quotes call nobody."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from actors.config.collaboration import CollaborationConfig
from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.rules.groups.addressing import (
    MOST_HOPS,
    addressed,
    is_in_the_open,
    may_speak,
    own_words,
    there,
)

KNOWN = ("anna", "ben", "carl")
CALLED = {
    **{name: name for name in (*KNOWN, "dora")},
    "ben carter": "ben",
    "anna lee": "anna",
    "carl the great": "carl",
    "doctor": "dora",
}


def message(**fields: Any) -> Inbound:
    given_: dict[str, Any] = {
        "id": "m",
        "platform": "fake",
        "platform_id": "p",
        "address": Address("fake", "room"),
        "sender_id": "zoe",
        "sender_name": "zoe",
        "text": "hi",
        "received_at": 0.0,
        "is_direct": False,
    }
    return Inbound(**{**given_, **fields})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@ben what do you think?", ("ben",)),
        ("Well, @Carl and @BEN, and @carl again", ("carl", "ben")),
        ("ask @ben- or (@carl)", ("ben", "carl")),
        ("I am @anna, and @nobody is here", ()),
        ("write to anna@ben.example or x.@ben", ()),
        ("@bennet is another", ()),
        ("ben, what do you think?", ()),
        ("`@ben` and ``a ` @carl``", ()),
        ("```\n@ben\n```\nthen @carl", ("carl",)),
        ("~~~ text\n@ben\n``` \n@carl", ()),
        ("> zoe: @ben come\n@carl come", ("carl",)),
        ('zoe said "ask @ben", so @carl?', ("carl",)),
        ("zoe said “ask @ben” and «@carl»", ()),
        ("one ` tick, @ben", ("ben",)),
        ("``two @ben ` one @carl", ("ben", "carl")),
        ("@Ben Carter, and @carl THE great?", ("ben", "carl")),
        ("@Ben Carter and @ben", ("ben",)),
        ("@Ben Carters dog", ("ben",)),
        ("@Carl the greatest", ("carl",)),
        ("@Anna Lee, it is me", ()),
        ("@doctor is not here, `@Ben Carter` is code", ()),
        ("/help@ben is how you ask", ()),
    ],
)
def test_only_its_own_words_call_somebody(text: str, found: tuple[str, ...]) -> None:
    assert addressed(text, "anna", KNOWN, CALLED) == found


@given(text=st.text(alphabet='`~@ben \n>"x', max_size=200))
def test_what_is_left_is_a_part_of_what_was_said(text: str) -> None:
    assert len(own_words(text)) <= len(text) + text.count("`") + text.count('"')
    assert set(addressed(text, "anna", KNOWN, CALLED)) <= {"ben"}


def test_thousands_of_backticks_take_no_time() -> None:
    for text in ("`" * 20_000, "` `` " * 4_000, "```\n" * 5_000, "``` `" * 4_000):
        assert addressed(f"@ben {text}", "anna", KNOWN, CALLED) == ("ben",)


def test_where_nobody_knows_who_is_there_all_may_be() -> None:
    assert there(message(), "anna", KNOWN) == ("ben", "carl")
    assert there(message(present=("anna", "carl")), "anna", KNOWN) == ("carl",)


def test_agents_hear_each_other_only_where_the_settings_say_so() -> None:
    here = CollaborationConfig(visible_chats=("fake/ro*",))
    everywhere = CollaborationConfig(visible=True)
    assert is_in_the_open(message(), here)
    assert is_in_the_open(message(), everywhere)
    assert not is_in_the_open(message(address=Address("fake", "other")), here)
    assert not is_in_the_open(message(is_direct=True), everywhere)
    assert not is_in_the_open(message(), CollaborationConfig())
    off = CollaborationConfig(enabled=False, visible=True)
    assert not is_in_the_open(message(), off)


def test_so_many_turns_and_no_longer_than_the_chain_says() -> None:
    chain = DelegationChain(turns=1)
    assert may_speak(chain, 9.0, has_turns=True) == "ok"
    assert may_speak(chain, 9.0, has_turns=False) == "visible_max_turns"
    late = DelegationChain(deadline=9.0)
    assert may_speak(late, 9.0, has_turns=True) == "deadline"
    long = DelegationChain(agents=("anna", "ben") * MOST_HOPS)
    assert may_speak(long, 9.0, has_turns=True) == "visible_max_turns"
