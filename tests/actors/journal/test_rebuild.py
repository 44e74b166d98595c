"""Proves that records folded from events are those that were written beside them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.journal import records
from actors.journal.history import Conversation, Deferred, Exchanged
from actors.journal.rebuild import Expected, Fold, compare, fits
from actors.messages.inbound import TranscriptLine
from actors.messages.usage import Run
from actors.rules.text.secrets import AuditRedaction
from runtime.store.rows import Record, StoredEvent, StoredRecord

STREAMS = ("anna/cli/kitchen//sam", "ben/cli/kitchen//sam")

runs = st.none() | st.builds(
    Run,
    provider=st.just("big"),
    model=st.just("big-1"),
    attempt=st.integers(1, 3),
    seconds=st.floats(0, 9),
)
lines = st.builds(
    TranscriptLine, st.sampled_from(["user", "assistant"]), st.text(max_size=9)
)
exchanges = st.builds(
    Exchanged,
    inbound_id=st.sampled_from("abcdef"),
    lines=st.lists(lines, max_size=3).map(tuple),
    asked=st.text(max_size=9),
    run=runs,
)
deferrals = st.builds(
    Deferred,
    inbound_id=st.sampled_from("abcdef"),
    reason=st.just("model"),
    text=st.just(""),
    due_at=st.just(0.0),
    run=runs,
)
Told = Exchanged | Deferred
stories = st.lists(st.tuples(st.sampled_from(STREAMS), exchanges | deferrals))


def write(story: Iterable[tuple[str, Told]]) -> dict[tuple[str, str], StoredRecord]:
    """Write the records of a story as sessions do: each with its event."""
    there: dict[tuple[str, str], StoredRecord] = {}
    counted = {str(stream): Conversation() for stream in STREAMS}
    for number, (stream, told) in enumerate(story):
        at = float(number)
        if isinstance(told, Exchanged) and told.lines:
            counted[stream] = counted[stream].plus(told.lines, at)
        for row in records.of_event(stream, told, counted[stream], AuditRedaction()):
            there[row.kind, row.id] = stored(row, at)
    return there


def stored(row: Record, at: float) -> StoredRecord:
    return StoredRecord(1, row.kind, row.id, row.owner, row.part, 0, row.body, at)


def event(stream: str, sequence: int, told: Told, at: float) -> StoredEvent:
    kind = "exchanged" if isinstance(told, Exchanged) else "deferred"
    return StoredEvent(stream, sequence, kind, msgspec.json.encode(told), 7, 0, at)


def fold(story: list[tuple[str, Told]]) -> list[Expected]:
    """Fold a story stream by stream, as a survey gives it."""
    found: list[Expected] = []
    folding = Fold(AuditRedaction())
    for each in STREAMS:
        for number, (stream, told) in enumerate(story):
            if stream == each:
                found += folding.take(event(stream, number + 1, told, float(number)))
    return [*found, *folding.end()]


@given(story=stories)
def test_what_sessions_wrote_is_what_is_folded(story: list[tuple[str, Told]]) -> None:
    there = write(story)
    made = fold(story)
    assert {(each.record.kind, each.record.id) for each in made} == set(there)
    for each in made:
        assert not compare(each, there[each.record.kind, each.record.id], 0.0)
    # Of those with the same id, the last one is what stands there.
    for (kind, name), row in there.items():
        same = [e for e in made if (e.record.kind, e.record.id) == (kind, name)]
        last = max(same, key=lambda expected: expected.at)
        assert (last.record.body, last.at) == (row.body, row.at)


USAGE = Expected(
    Record(kind="usage", id="m#1", owner="anna", part=7, body=b'{"cost":1.0}'), 5.0
)
AUDIT = Expected(
    Record(kind="audit", id="m", owner="cli", part=7, body=b'{"input":"hello"}'), 5.0
)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"body": b'{"cost":2.0}'}, "differs in cost"),
        ({"body": b'{"cost":1.0,"more":1}'}, "differs in more"),
        ({"body": b"{"}, "differs in body"),
        ({"owner": "ben", "part": 8}, "differs in owner, part"),
    ],
)
def test_a_difference_says_where(changes: dict[str, object], problem: str) -> None:
    row = msgspec.structs.replace(stored(USAGE.record, 5.0), **changes)
    found = compare(USAGE, row, 0.0)
    assert found is not None
    assert (found.kind, found.id, found.problem) == ("usage", "m#1", problem)
    assert found.expected is USAGE


def test_a_secret_once_taken_out_stays_out() -> None:
    body = msgspec.json.encode(
        {"sender_id": "a hunter2", "chat": "room", "input": "my hunter2", "status": "x"}
    )
    expected = Expected(msgspec.structs.replace(AUDIT.record, body=body), 5.0)
    told = {"sender_id": "a ***", "chat": "***m", "input": "my ***", "status": "y"}
    row = stored(AUDIT.record, 5.0)
    row = msgspec.structs.replace(row, body=msgspec.json.encode(told))
    found = compare(expected, row, 0.0)
    assert found is not None
    assert found.problem == "differs in status"
    assert found.expected is not None
    written = msgspec.json.decode(found.expected.record.body, type=dict[str, str])
    assert written == {**told, "status": "x"}
    unreadable = msgspec.structs.replace(row, body=b"{")
    again = compare(expected, unreadable, 0.0)
    assert again is not None
    assert again.expected is expected


@pytest.mark.parametrize("there", ["", "zoe", "*** b"])
def test_a_name_is_never_left_out(there: str) -> None:
    names = Record(
        kind="audit", id="m", owner="cli", part=7, body=b'{"sender_id":"a hunter2"}'
    )
    row = stored(names, 5.0)
    row = msgspec.structs.replace(row, body=msgspec.json.encode({"sender_id": there}))
    found = compare(Expected(names, 5.0), row, 0.0)
    assert found is not None
    assert found.problem == "differs in sender_id"


def test_a_record_of_a_later_event_is_passed_over() -> None:
    row = msgspec.structs.replace(stored(USAGE.record, 6.0), body=b"{}")
    assert compare(USAGE, row, 0.0) is None


def test_only_old_audit_records_may_be_gone() -> None:
    assert compare(AUDIT, None, audited_since=5.1) is None
    assert compare(AUDIT, None, audited_since=5.0) is not None
    assert compare(USAGE, None, audited_since=9.0) is not None


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        ("hello", "hello", True),
        ("hello", "", True),
        ("", "hello", True),
        ("hello", None, True),
        ("hello", "hallo", False),
        ("the key is gold, gold", "the key is ***, ***", True),
        ("the key is gold", "the key was ***", False),
        ("stars *** here", "stars *** here", True),
    ],
)
def test_a_kept_text_may_lack_its_secrets(
    wanted: str, there: str | None, *, expected: bool
) -> None:
    assert fits(wanted, there) is expected


words = st.text(st.characters(exclude_characters="*"))  # stars would be ambiguous


@given(before=words, secret=words.filter(bool), after=words)
def test_taking_a_secret_out_is_no_difference(
    before: str, secret: str, after: str
) -> None:
    text = before + secret + after
    assert fits(text, text.replace(secret, "***"))


@pytest.mark.parametrize(
    ("stream", "kind", "body"),
    [
        (STREAMS[0], "exchanged", b"\xff"),
        (STREAMS[0], "deferred", b"{}"),
        ("no session", "exchanged", b'{"inbound_id":"m"}'),
    ],
)
def test_what_cannot_be_read_is_told_and_passed_over(
    stream: str, kind: str, body: bytes
) -> None:
    folding = Fold(AuditRedaction())
    list(folding.take(event(STREAMS[1], 1, Exchanged(inbound_id="m"), 1.0)))
    with pytest.raises(ValueError, match=r"\S"):
        list(folding.take(StoredEvent(stream, 1, kind, body, 7, 0, 1.0)))
    step = StoredEvent(f"{STREAMS[0]}/m", 1, "round", b"{}", 7, 0, 1.0)
    assert list(folding.take(step)) == []
