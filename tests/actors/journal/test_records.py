"""Proves that rows for people say what the event says, and nothing that is secret."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from hypothesis import given, strategies as st
from msgspec.structs import replace

from actors.journal import records
from actors.journal.history import (
    Chapter,
    Compacted,
    Conversation,
    Deferred,
    Exchanged,
    Reset,
)
from actors.journal.records import (
    AuditRecord,
    CompactionRecord,
    ConversationRecord,
    UsageRecord,
)
from actors.messages.inbound import TranscriptLine, Usage
from actors.messages.keys import chat_partition, parse_key
from actors.messages.usage import Run
from actors.rules.text.secrets import AuditRedaction
from runtime.store.rows import Record

STREAM = "anna/fake/room/7/zoe"
KEY = parse_key(STREAM)
RUN = Run(
    provider="main",
    model="gpt-1",
    attempt=2,
    seconds=1.5,
    usage=Usage(30, 20),
    rounds=3,
    cost=0.25,
)
LINES = (
    TranscriptLine("user", "before"),
    TranscriptLine("assistant", "well"),
    TranscriptLine("user", "hello", name="zoe"),
    TranscriptLine("assistant", "yes", name="anna"),
)
T = TypeVar("T", AuditRecord, CompactionRecord, ConversationRecord, UsageRecord)


def read(record: Record, shape: type[T]) -> T:
    assert record.part == chat_partition("fake", "room")
    return msgspec.json.decode(record.body, type=shape)


def test_an_audit_row_has_the_last_words_of_both_sides() -> None:
    event = Exchanged(
        inbound_id="m1", lines=LINES, sender_id="z1", sender_name="Zoe", run=RUN
    )
    record = records.audit(KEY, event, AuditRedaction(str.upper))
    assert (record.kind, record.id, record.owner) == ("audit", "m1", "fake")
    assert read(record, AuditRecord) == AuditRecord(
        channel="fake",
        chat="ROOM",
        sender_id="Z1",
        sender_name="ZOE",
        agent="anna",
        input="HELLO",
        output="YES",
        provider="main",
        model="gpt-1",
        seconds=1.5,
        attempt=2,
        status="replied",
        reason="ok",
    )


def test_without_lines_it_has_the_event_s_words_and_the_key_s_sender() -> None:
    event = Exchanged(
        inbound_id="m1", asked="/help", said="Commands:", reason="command"
    )
    record = records.audit(KEY, event, AuditRedaction(str.upper))
    assert record.id == "m1"
    row = read(record, AuditRecord)
    assert (row.input, row.output) == ("/HELP", "COMMANDS:")
    assert (row.sender_id, row.provider, row.attempt) == ("ZOE", "", 0)


def test_a_usage_row_has_one_name_for_each_attempt() -> None:
    event = Deferred(inbound_id="m1", reason="model", text="", due_at=1.0, run=RUN)
    record = records.usage(KEY, event)
    assert record is not None
    assert (record.kind, record.id, record.owner) == ("usage", "m1#2", "anna")
    assert read(record, UsageRecord) == UsageRecord(
        agent="anna",
        connector="fake",
        sender_id="zoe",
        provider="main",
        model="gpt-1",
        input_tokens=30,
        output_tokens=20,
        cost=0.25,
        seconds=1.5,
        rounds=3,
        attempt=2,
        status="model",
    )


def test_where_no_model_was_asked_nothing_was_used() -> None:
    assert records.usage(KEY, Exchanged(inbound_id="m1")) is None


def test_a_conversation_row_says_how_it_stands() -> None:
    counted = Conversation(4, 12, 100.0, 200.0)
    record = records.conversation(STREAM, KEY, counted)
    assert (record.kind, record.id, record.owner) == ("conversation", STREAM, "anna")
    assert read(record, ConversationRecord) == ConversationRecord(
        agent="anna",
        connector="fake",
        chat="room",
        thread="7",
        sender_id="zoe",
        message_count=4,
        tokens_estimate=12,
        started_at=100.0,
        last_message_at=200.0,
    )


COMPACTED = Compacted(
    id="c1",
    trigger="lines",
    outcome="truncated",
    summary="tea",
    messages_before=9,
    messages_after=4,
    tokens_before=90,
    tokens_after=40,
)
RESET = Reset(id="c2", reason="idle", summary="bye", messages=7)
OF_COMPACTED = CompactionRecord(
    conversation=STREAM,
    agent="anna",
    kind="compacted",
    reason="lines",
    outcome="truncated",
    summary="tea",
    messages_before=9,
    messages_after=4,
    tokens_before=90,
    tokens_after=40,
)
OF_RESET = CompactionRecord(
    conversation=STREAM,
    agent="anna",
    kind="reset",
    reason="idle",
    outcome="summarised",
    summary="bye",
    messages_before=7,
    messages_after=0,
    tokens_before=0,
    tokens_after=0,
)


def test_a_compaction_row_says_what_became_of_how_much() -> None:
    events: tuple[tuple[Chapter, CompactionRecord], ...] = (
        (COMPACTED, OF_COMPACTED),
        (RESET, OF_RESET),
    )
    for event, body in events:
        record = records.compaction(STREAM, KEY, event)
        assert record is not None
        assert (record.kind, record.id) == ("compaction", event.id)
        assert record.owner == "anna"
        assert read(record, CompactionRecord) == body
    for silent in (replace(COMPACTED, outcome="kept"), replace(RESET, summary="")):
        assert records.compaction(STREAM, KEY, silent) is None


@given(is_answer=st.booleans(), has_lines=st.booleans(), has_run=st.booleans())
def test_each_event_makes_the_rows_that_belong_to_it(
    *, is_answer: bool, has_lines: bool, has_run: bool
) -> None:
    run = RUN if has_run else None
    event: Exchanged | Deferred
    if is_answer:
        lines = LINES if has_lines else ()
        event = Exchanged(inbound_id="m1", lines=lines, run=run)
    else:
        event = Deferred(inbound_id="m1", reason="x", text="", due_at=1.0, run=run)
    made = records.of_event(STREAM, event, Conversation(), AuditRedaction())
    wanted = ["usage"] * has_run + ["audit"] * is_answer
    wanted += ["conversation"] * (is_answer and has_lines)
    assert [record.kind for record in made] == wanted


@given(st.text(max_size=9))
def test_what_is_not_to_be_kept_is_nowhere(text: str) -> None:
    secret = f"hunter2{text}"
    event = Exchanged(
        inbound_id="m1",
        lines=(TranscriptLine("user", secret), TranscriptLine("assistant", secret)),
    )
    made = records.of_event(
        STREAM, event, Conversation(), AuditRedaction(has_texts=False)
    )
    assert all(b"hunter2" not in record.body for record in made)


def test_an_attempt_that_was_refused_is_listed_by_its_account() -> None:
    body = AuditRecord(
        channel="web",
        chat="",
        sender_id="x",
        sender_name="",
        status="unauthorised",
        reason="bad_key",
    )
    record = records.audit_row("r1", body, AuditRedaction())
    assert (record.kind, record.id, record.owner) == ("audit", "r1", "web")
    assert record.part == chat_partition("web", "")
    assert msgspec.json.decode(record.body, type=AuditRecord) == body
