"""Proves what is a person's in a store, and that others keep what is theirs."""

from __future__ import annotations

import msgspec
from hypothesis import given, strategies as st

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


def test_what_connectors_keep_of_their_chats_goes_too() -> None:
    accept = b'{"correlation_id":"m1","sender_id":"sam",%s}' % ADDRESSED[1:-1]
    rows = [
        AnyRow("inbox", "chat", "m1", "", "", accept),
        AnyRow("entry", "socket_client", "chat/dm", "chat", "", b'{"chat":"dm"}'),
        AnyRow("entry", "socket_said", "chat/dm/1", "chat/dm", "", b'{"text":"x"}'),
        AnyRow("entry", "socket_place", "chat/d", "", "", b'{"chat":"dm"}'),
        AnyRow("entry", "any", "any", "", "", b'{"correlation_id":"m1"}'),
    ]
    others = [
        AnyRow("entry", "socket_said", "chat/dm2/1", "chat/dm2", "", b'{"text":"x"}'),
        AnyRow("entry", "socket_place", "other/d", "", "", b'{"chat":"dm"}'),
    ]
    known = PersonTraces(("chat/sam",))
    for row in (*rows, *others):
        known.learn(row)
    assert [known.left_of(row) for row in rows] == [None] * len(rows)
    assert [known.left_of(row) for row in others] == [row.body for row in others]


def test_the_copy_of_a_groups_summary_goes_with_the_summary() -> None:
    rows = [
        event(GROUP, exchange(1, "sam", [])),
        AnyRow(
            "record",
            "compaction",
            "c",
            "",
            "",
            msgspec.json.encode({"conversation": GROUP, "summary": "sam said"}),
        ),
    ]
    known = PersonTraces(("chat/sam",))
    for row in rows:
        known.learn(row)
    assert b"sam" not in (known.left_of(rows[1]) or b"")


def test_in_a_room_their_messages_and_the_answers_to_them_go() -> None:
    def row(name: str, body: bytes) -> AnyRow:
        return AnyRow("entry", "page_message", name, "chat/room", "", body)

    theirs = [
        row("chat/room/9/p1", b'{"id":"p1","author":"sam","text":"x"}'),
        row("chat/p1", b"chat/room/9/p1"),
        row(
            "chat/room/8/a1",
            b'{"id":"a1","author":"a","is_agent":true,"reply_to":"p1"}',
        ),
        row("chat/a1", b"chat/room/8/a1"),
        row("chat/job", b'{"id":"job","user":"sam","prompt":"x"}'),
    ]
    others = [
        row("chat/room/7/p2", b'{"id":"p2","author":"eve","reply_to":"p1"}'),
        row("chat/p2", b"chat/room/7/p2"),
        row(
            "chat/room/6/a2",
            b'{"id":"a2","author":"a","is_agent":true,"reply_to":"p2"}',
        ),
        row("chat/a2", b"chat/room/6/a2"),
    ]
    known = PersonTraces(("chat/sam",))
    for each in (*theirs, *others):
        known.learn(each)
    assert [known.left_of(each) for each in theirs] == [None] * len(theirs)
    assert [known.left_of(each) for each in others] == [each.body for each in others]


def test_an_answer_to_several_goes_from_the_audit_of_the_others_too() -> None:
    spoken = event(GROUP, exchange(1, "eve", ["sam"]))
    eve = b'{"channel":"chat","sender_id":"eve","input":"x","output":"to sam"}'
    rows = [spoken, AnyRow("record", "audit", "m1", "chat", "", eve)]
    known = PersonTraces(("chat/sam",))
    for row in rows:
        known.learn(row)
    left = known.left_of(rows[1])
    assert left == eve.replace(b"to sam", b"")
    after = AnyRow("record", "audit", "m1", "chat", "", left or b"")
    assert known.left_of(after) == after.body  # twice does no more


def test_an_account_inside_a_longer_text_is_seen() -> None:
    known = PersonTraces(("chat/sam",))
    deed = b'{"input":"forget anna person:%s f1"}'
    for account, is_named in ((b"chat/sam", True), (b"chat/samuel", False)):
        row = AnyRow("record", "audit", "d", "operator", "", deed % account)
        assert known.names(row) == is_named
