"""Proves that a past read back, from wherever, is the past that was written."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.journal.answers import ChapterEntry
from actors.journal.commits import as_chapter
from actors.journal.history import (
    REMEMBERED,
    SCHEMA,
    SNAPSHOT_EVERY,
    Compacted,
    Conversation,
    Deferred,
    Exchanged,
    Flushed,
    History,
    Reset,
    Snapshotted,
    kind_of,
)
from actors.messages.inbound import TranscriptLine
from actors.messages.usage import Run
from actors.rules.prompt.compaction import tokens_of
from tests.fakes.actors.neighbours import words

STREAM = "anna/fake/room//zoe"
MOST = 5


def said(number: int) -> tuple[TranscriptLine, ...]:
    """Make the lines of one exchange; some have none, as commands do."""
    if number % 4 == 3:
        return ()
    return (
        TranscriptLine("user", f"{number}?", name="zoe"),
        TranscriptLine("assistant", f"{number}!"),
    )


class Journal:
    """What a session has stored: events, and the newest snapshot."""

    def __init__(self) -> None:
        self.events: list[tuple[str, bytes, float]] = []
        self.snapshot: tuple[int, bytes] | None = None

    def write(self, history: History, count: int) -> None:
        """Add exchanges as a session would."""
        for _ in range(count):
            number = len(self.events)
            at = 1000.0 + number
            lines = said(number)
            event = Exchanged(inbound_id=f"m{number}", lines=lines)
            body = history.snapshot_after((event,), at)
            self.events.append(("exchanged", msgspec.json.encode(event), at))
            history.take(number + 1, event, at)
            if body is not None:
                self.snapshot = (history.version, body)

    def read(self, *, with_snapshot: bool = True) -> tuple[History, int]:
        """Wake a session; give its history, and how many events that took."""
        history = History(STREAM, MOST)
        if with_snapshot and self.snapshot is not None:
            history.restore(*self.snapshot)
        rest = self.events[history.version :]
        for number, (kind, body, at) in enumerate(rest, history.version + 1):
            history.replay(number, kind, body, at)
        return history, len(rest)


def test_lines_that_came_while_a_summary_was_made_stay_and_are_counted() -> None:
    journal, history = Journal(), History(STREAM, MOST)
    journal.write(history, 2)
    made = Compacted(id="c", trigger="tokens", outcome="summarised", messages_before=4)
    entry = ChapterEntry(chapter=made, messages=4, resets=0)
    assert as_chapter(entry, history) == made
    journal.write(history, 1)
    newer = tokens_of(said(2))
    assert as_chapter(entry, history) == msgspec.structs.replace(
        made,
        messages_before=6,
        messages_after=2,
        tokens_before=newer,
        tokens_after=newer,
    )


def same(one: History, two: History) -> bool:
    names = [f"m{number}" for number in range(400)]
    return (one.version, one.lines, one.counted) == (
        two.version,
        two.lines,
        two.counted,
    ) and [one.has_answered(n) for n in names] == [two.has_answered(n) for n in names]


@given(st.lists(st.integers(0, 120), max_size=3))
def test_woken_from_a_snapshot_or_from_all_events_it_is_the_same(
    counts: list[int],
) -> None:
    journal, history = Journal(), History(STREAM, MOST)
    for count in counts:
        journal.write(history, count)
        woken, read = journal.read()
        whole, _ = journal.read(with_snapshot=False)
        assert same(woken, history)
        assert same(whole, history)
        assert read < SNAPSHOT_EVERY
        history = woken


def test_a_snapshot_is_due_with_every_fiftieth_event_and_no_other() -> None:
    history = History(STREAM, MOST)
    due: list[int] = []
    for number in range(1, 151):
        event = Exchanged(inbound_id=f"m{number}")
        if history.snapshot_after((event,), 1.0) is not None:
            due.append(number)
        history.take(number, event, 1.0)
    assert due == [SNAPSHOT_EVERY, 2 * SNAPSHOT_EVERY, 3 * SNAPSHOT_EVERY]


def test_a_snapshot_is_no_longer_than_a_prompt_needs() -> None:
    history = History(STREAM, MOST)
    journal = Journal()
    journal.write(history, SNAPSHOT_EVERY)
    assert journal.snapshot is not None
    kept = msgspec.json.decode(journal.snapshot[1], type=Snapshotted)
    assert MOST <= len(kept.lines) <= 2 * MOST
    assert len(kept.answered) <= REMEMBERED


def test_a_message_that_was_put_off_is_not_answered_in_a_snapshot() -> None:
    history = History(STREAM, MOST)
    Journal().write(history, SNAPSHOT_EVERY - 1)
    event = Deferred(inbound_id="late", reason="model", text="", due_at=1.0)
    body = history.snapshot_after((event,), 1.0)
    assert body is not None
    woken = History(STREAM, MOST)
    woken.restore(SNAPSHOT_EVERY, body)
    assert woken.has_answered("m0")
    assert not woken.has_answered("late")
    assert woken.lines == history.lines


def test_a_snapshot_that_cannot_be_read_says_so() -> None:
    with pytest.raises(msgspec.DecodeError):
        History(STREAM, MOST).restore(50, b'{"lines": 1}')
    assert SCHEMA == 1


def test_other_events_only_move_the_version() -> None:
    history = History(STREAM, MOST)
    history.replay(1, "something new", b"whatever", 1.0)
    history.replay(2, "something new", b"whatever", 1.0)
    assert (history.version, history.lines) == (2, ())
    assert history.counted == Conversation()


def test_an_exchange_taken_up_twice_counts_once() -> None:
    history = History(STREAM, MOST)
    for _ in range(2):
        history.take(1, Exchanged(inbound_id="m1", lines=said(0)), 5.0)
    assert history.lines == said(0)
    assert history.counted == Conversation(2, 2, 5.0, 5.0)


def test_what_was_answered_is_remembered_for_a_while() -> None:
    history = History(STREAM, MOST)
    history.note_answered("m0")
    assert history.has_answered("m0")
    for number in range(1, REMEMBERED + 1):
        history.note_answered(f"m{number}")
    assert not history.has_answered("m0")
    assert history.has_answered("m1")


def test_lines_brought_along_count_only_at_the_beginning() -> None:
    brought = (TranscriptLine("user", "before"),)
    history = History(STREAM, MOST)
    assert history.brought(words(history=brought)) == brought
    history.take(1, Exchanged(inbound_id="m1", lines=said(0)), 1.0)
    assert history.brought(words(history=brought)) == ()


@given(st.text(max_size=40))
def test_a_token_is_about_four_characters(text: str) -> None:
    tokens = tokens_of([TranscriptLine("user", text)])
    assert 4 * (tokens - 1) < len(text) <= 4 * tokens or tokens == len(text) == 0


@given(st.lists(st.tuples(st.text(max_size=9), st.floats(0, 1e9)), max_size=9))
def test_a_conversation_adds_up(exchanges: list[tuple[str, float]]) -> None:
    counted = Conversation()
    for text, at in exchanges:
        counted = counted.plus(
            (TranscriptLine("user", text), TranscriptLine("assistant", "")), at
        )
    assert counted.message_count == 2 * len(exchanges)
    assert counted.tokens == sum(
        tokens_of([TranscriptLine("user", text)]) for text, _ in exchanges
    )
    if exchanges:
        assert counted.last_at == exchanges[-1][1]


def ran(attempt: int) -> Run:
    return Run(provider="p", model="m", attempt=attempt, seconds=1.0, rounds=1)


def test_what_was_given_up_is_not_answered_and_its_rounds_are_reported() -> None:
    history = History(STREAM, MOST)
    put_off = Deferred(inbound_id="m1", reason="model", text="", due_at=1.0, run=ran(1))
    history.take(1, put_off, 1.0)
    assert history.reported("m1") == 1
    dead = Exchanged(inbound_id="m1", lines=said(0), state="dead", run=ran(3))
    history.take(2, dead, 2.0)
    assert (history.reported("m1"), history.has_answered("m1")) == (3, False)
    assert history.lines == said(0)
    history.take(3, Exchanged(inbound_id="m1", lines=said(0), run=ran(4)), 3.0)
    assert (history.reported("m1"), history.has_answered("m1")) == (0, True)


def test_what_is_reported_is_in_the_snapshot() -> None:
    history = History(STREAM, MOST)
    Journal().write(history, SNAPSHOT_EVERY - 1)
    event = Deferred(inbound_id="late", reason="x", text="", due_at=1.0, run=ran(2))
    body = history.snapshot_after((event,), 1.0)
    assert body is not None
    woken = History(STREAM, MOST)
    woken.restore(SNAPSHOT_EVERY, body)
    assert woken.reported("late") == 2


chapters = st.one_of(
    st.builds(
        Compacted,
        id=st.just("c"),
        trigger=st.just("tokens"),
        outcome=st.sampled_from(("summarised", "truncated", "kept")),
        summary=st.sampled_from(("", "they spoke")),
        messages_after=st.integers(0, 8),
        tokens_after=st.integers(0, 50),
        cut_to=st.sampled_from((0, 20)),
    ),
    st.builds(Flushed, id=st.just("f"), messages=st.integers(0, 50)),
    st.builds(Reset, id=st.just("r"), reason=st.sampled_from(("command", "idle"))),
    st.integers(0, 60),
)


@given(st.lists(chapters, max_size=12))
def test_woken_after_whatever_became_of_its_past_it_is_the_same(
    course: list[Compacted | Flushed | Reset | int],
) -> None:
    journal, history = Journal(), History(STREAM, MOST)
    for each in course:
        if isinstance(each, int):
            journal.write(history, each)
            continue
        at = 1000.0 + len(journal.events)
        body = history.snapshot_after((each,), at)
        journal.events.append((kind_of(each), msgspec.json.encode(each), at))
        history.take(len(journal.events), each, at)
        if body is not None:
            journal.snapshot = (history.version, body)
    woken, read = journal.read()
    whole, _ = journal.read(with_snapshot=False)
    for other in (woken, whole):
        assert same(other, history)
        assert other.summaries == history.summaries
        assert (other.flushed, other.ended) == (history.flushed, history.ended)
    assert read < SNAPSHOT_EVERY
    assert len(history.summaries) <= 3
    assert len(history.lines) <= 2 * MOST


def test_a_hundred_thousand_messages_are_no_more_to_read_than_fifty() -> None:
    history = History(STREAM, MOST)
    newest = (0, b"")
    for number in range(1, 50_001):
        event = Exchanged(inbound_id=f"m{number}", lines=said(0))
        body = history.snapshot_after((event,), float(number))
        history.take(number, event, float(number))
        if body is not None:
            newest = (number, body)
    assert history.counted.message_count == 100_000
    assert 50_000 - newest[0] < SNAPSHOT_EVERY
    assert len(newest[1]) < 20_000
    woken = History(STREAM, MOST)
    woken.restore(*newest)
    assert woken.earlier == 100_000 - len(woken.lines)
