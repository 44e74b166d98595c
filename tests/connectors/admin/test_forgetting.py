"""Proves what is a person's in a store, and that others keep what is theirs."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.journal.history import (
    AlsoAsked,
    Compacted,
    Conversation,
    Exchanged,
)
from actors.messages.inbound import TranscriptLine
from actors.messages.keys import SessionKey
from connectors.admin.forgetting import ERASED, PersonTraces
from runtime.store.rows import AnyRow

ADDRESSED = b'{"address":{"connector":"chat","chat":"dm"}}'
GROUP = SessionKey("anna", "chat", "room").text
ALONE = SessionKey("anna", "chat", "dm", sender="sam").text
people = st.sampled_from(["sam", "eve", "zoe"])
exchanges = st.lists(st.tuples(people, st.lists(people, max_size=2)), max_size=6)


def event(stream: str, body: msgspec.Struct, key: str = "") -> AnyRow:
    kind = type(body).__name__.lower()
    return AnyRow("journal", kind, stream, "", key, msgspec.json.encode(body))


def exchange(number: int, who: str, also: list[str]) -> Exchanged:
    words = [f"word of {each}" for each in (who, *also)]
    lines = (
        TranscriptLine("user", "; ".join(words), name=who),
        TranscriptLine("assistant", f"answer to {', '.join(words)}"),
    )
    return Exchanged(
        inbound_id=f"m{number}",
        lines=lines,
        sender_id=who,
        sender_name=who,
        asked=words[0],
        said="answer",
        is_group=True,
        also=tuple(
            AlsoAsked(f"m{number}-{i}", f"word of {x}", x, x)
            for i, x in enumerate(also)
        ),
    )


@given(exchanges)
def test_in_a_group_words_go_and_places_stay(
    said: list[tuple[str, list[str]]],
) -> None:
    bodies = [exchange(n, who, also) for n, (who, also) in enumerate(said)]
    summary = Compacted(
        id="c", trigger="lines", outcome="summarised", summary="sam said"
    )
    rows = [*(event(GROUP, each) for each in bodies), event(GROUP, summary)]
    known = PersonTraces(("chat/sam",))
    for row in rows:
        known.learn(row)
    before = after = Conversation()
    for row, body in zip(rows, bodies, strict=False):
        left = known.left_of(row)
        assert left is not None
        is_theirs = "sam" in {body.sender_id, *(each.sender_id for each in body.also)}
        assert is_theirs or left == row.body
        assert b"sam" not in left
        now = msgspec.json.decode(left, type=Exchanged)
        before, after = before.plus(body.lines, 1.0), after.plus(now.lines, 1.0)
    assert before.message_count == after.message_count
    wrote = any("sam" in {who, *also} for who, also in said)
    last = msgspec.json.decode(known.left_of(rows[-1]) or b"", type=Compacted)
    assert last.summary == (ERASED if wrote else "sam said")


def test_a_conversation_with_nobody_else_goes_whole() -> None:
    alone = exchange(1, "sam", [])
    rows = [
        event(ALONE, msgspec.structs.replace(alone, is_group=False)),
        AnyRow("snapshot", "", ALONE, "", "", b"{}"),
        AnyRow(
            "outbox",
            "chat",
            "o",
            "dm",
            "m1",
            b'{"address":{"connector":"chat","chat":"dm"}}',
        ),
        AnyRow("fact", "note", "f", "person:chat/sam", "anna", b'{"text":"x"}'),
        AnyRow("fact", "note", "g", "chat:chat/room//sam", "anna", b'{"text":"x"}'),
        AnyRow("entry", "person", "chat/sam", "s", "", b"{}"),
        AnyRow("entry", "alias", "chat/sam2", "", "", b"chat/sam"),
    ]
    known = PersonTraces(("chat/sam",))
    for row in rows:
        known.learn(row)
    assert [known.left_of(row) for row in rows] == [None] * len(rows)


def test_what_is_not_a_persons_alone_stays_without_them() -> None:
    known = PersonTraces(("chat/sam",))
    others = AnyRow("fact", "note", "h", "person:chat/samuel", "anna", b'{"text":""}')
    assert known.left_of(others) == others.body
    paid = b'{"who":{"agent":"anna","user":"chat/sam"},"spent":1}'
    call = AnyRow("record", "call", "c", "", "", paid)
    assert known.left_of(call) == b'{"who":{"agent":"anna","user":""},"spent":1}'
    room = AnyRow(
        "entry", "chat-people", "chat/room", "", "", b'{"chat/sam":{},"chat/eve":{}}'
    )
    assert known.left_of(room) == b'{"chat/eve":{}}'
    assert known.names(room)
