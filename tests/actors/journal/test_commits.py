"""Proves that an answer is one commit, with all that follows from it, and no half."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.journal.answers import Answer
from actors.journal.commits import (
    as_accept,
    as_commit,
    as_enqueue,
    as_event,
    as_exchange,
    as_unanswered,
)
from actors.journal.history import SCHEMA, SNAPSHOT_EVERY, Deferred, Exchanged, History
from actors.journal.records import AuditRecord
from actors.messages import state as message_state
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound, TranscriptLine
from actors.messages.keys import chat_partition
from actors.messages.usage import Run
from actors.rules.text.secrets import AuditRedaction
from runtime.store.rows import Commit, Defer, Settle, SettledState
from tests.fakes.actors.neighbours import make_services, saying, words
from tests.fakes.store.in_memory import MemoryStore

STREAM = "anna/fake/room//zoe"
LINES = (
    TranscriptLine("user", "hello", name="zoe"),
    TranscriptLine("assistant", "yes", name="anna"),
)
RUN = Run(provider="main", model="gpt-1", attempt=2, seconds=1.5)
WAITS = message_state.Postpone(1, 130.0)


def answer(**fields: Any) -> Answer:
    given: dict[str, Any] = {
        "inbound": words(),
        "settled": ("replied", "ok"),
        "lines": LINES,
        "run": RUN,
        "deliveries": (saying(1),),
    }
    return Answer(**{**given, **fields})


def deferral() -> Answer:
    return answer(settled=("replied", "model"), put_off=WAITS, lines=())


def history(version: int = 0) -> History:
    made = History(STREAM, 5)
    made.version = version
    return made


async def exchange(given: Answer, known: History | None = None) -> Commit:
    """Make the commit; in a task, because it asks for trio's time."""
    return as_exchange(given, known or history(), make_services())


async def test_an_answer_settles_its_message_and_says_it_in_one_commit() -> None:
    handed = words("x", 2, agent="ben")
    commit = await exchange(answer(handed=(handed,)), history(6))
    assert commit.settles == (Settle("m1", "replied", "ok"),)
    assert commit.defers == ()
    assert [row.delivery_id for row in commit.deliveries] == ["m1:0"]
    assert [row.id for row in commit.accepts] == ["m2"]
    (journal,) = commit.appends
    assert (journal.stream, journal.expected, len(journal.events)) == (STREAM, 6, 1)
    assert journal.part == chat_partition("fake", "room")
    kinds = [record.kind for record in commit.records]
    assert kinds == ["usage", "audit", "conversation"]


async def test_what_is_put_off_is_not_settled() -> None:
    commit = await exchange(deferral())
    assert commit.defers == (Defer("m1", 1, 130.0, "model"),)
    assert commit.settles == ()
    assert commit.appends[0].events[0].kind == "deferred"
    assert [record.kind for record in commit.records] == ["usage"]


@pytest.mark.parametrize("is_deferral", [True, False])
async def test_the_store_takes_it_whole(*, is_deferral: bool) -> None:
    store = MemoryStore()
    await store.commit(Commit(at=1.0, accepts=(as_accept(words(), 1.0),)))
    await store.commit(await exchange(deferral() if is_deferral else answer()))
    assert len(await store.read(STREAM)) == 1
    assert len(await store.unsettled()) == is_deferral
    assert len(await store.undelivered()) == 1


@pytest.mark.parametrize("version", [0, SNAPSHOT_EVERY - 2, SNAPSHOT_EVERY - 1, 149])
async def test_a_snapshot_goes_with_its_event(version: int) -> None:
    commit = await exchange(answer(), history(version))
    if (version + 1) % SNAPSHOT_EVERY:
        assert commit.snapshots == ()
        return
    (snapshot,) = commit.snapshots
    assert (snapshot.sequence, snapshot.schema) == (version + 1, SCHEMA)
    woken = History(STREAM, 5)
    woken.restore(snapshot.sequence, snapshot.body)
    assert woken.lines == LINES
    assert woken.has_answered("m1")


async def test_the_event_alone_says_what_the_records_say() -> None:
    commit = await exchange(answer())
    event = msgspec.json.decode(commit.appends[0].events[0].body, type=Exchanged)
    assert event == as_event(answer())
    assert event == Exchanged(
        inbound_id="m1",
        lines=LINES,
        sender_id="zoe",
        sender_name="zoe",
        run=RUN,
    )


def test_where_there_are_no_lines_the_event_has_the_words() -> None:
    event = as_event(answer(lines=(), deliveries=(saying(1), saying(2))))
    assert isinstance(event, Exchanged)
    assert event.asked == "hello"
    assert event.said == "answer 1\n\nanswer 2"


def test_a_deferral_s_event_says_why_and_until_when() -> None:
    assert as_event(deferral()) == Deferred(
        inbound_id="m1",
        sender_id="zoe",
        reason="model",
        text="answer 1",
        due_at=130.0,
        run=RUN,
    )


async def test_what_nobody_hears_is_settled_with_a_row_of_the_audit() -> None:
    unheard = answer(settled=("dropped", "not_addressed"), run=None)
    commit = as_unanswered(unheard, 5.0, AuditRedaction())
    assert commit.settles == (Settle("m1", "dropped", "not_addressed"),)
    assert commit.appends == ()
    (record,) = commit.records
    row = msgspec.json.decode(record.body, type=AuditRecord)
    assert (row.input, row.output) == ("hello", "answer 1")
    assert (row.status, row.reason) == ("dropped", "not_addressed")


@given(waits=st.booleans(), state=st.sampled_from(get_args(SettledState)))
def test_a_message_is_settled_or_put_off_and_never_both(
    *, waits: bool, state: SettledState
) -> None:
    given = answer(settled=(state, "x"), put_off=WAITS if waits else None)
    commit = as_commit(given, 5.0)
    assert (len(commit.defers), len(commit.settles)) == (waits, not waits)
    assert commit.at == 5.0


@given(st.integers(1, 10), st.text(max_size=5), st.text(max_size=5))
def test_a_message_and_a_delivery_come_back_as_they_were(
    priority: int, text: str, chat: str
) -> None:
    inbound = msgspec.structs.replace(words(text), priority=priority)
    row = as_accept(inbound, 9.0)
    assert msgspec.json.decode(row.body, type=Inbound) == inbound
    assert (row.connector, row.platform_id) == ("fake", "p1")
    assert (row.priority, row.at) == (priority, 9.0)
    assert row.part == chat_partition("fake", "room")
    delivery = saying(1, chat)
    sent = as_enqueue(delivery, 7)
    assert msgspec.json.decode(sent.body, type=Delivery) == delivery
    assert (sent.chat, sent.part, sent.correlation_id) == (chat, 7, "m1")
