"""Proves that a conversation keeps its order, its history and its place in a queue."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from msgspec import structs

from actors.config.agents import AgentConfig
from actors.journal.commits import as_accept
from actors.journal.history import REMEMBERED, SCHEMA, SNAPSHOT_EVERY
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Occasion, TranscriptLine
from actors.messages.keys import session_key
from actors.messages.state import AttemptHistory
from actors.protocol import (
    AcquirePermit,
    CancelTurn,
    CheckHeard,
    DrainOutbox,
    Failed,
    Finished,
    Hear,
    NotHeard,
    PermitGranted,
    ReleasePermit,
    RouteUnanswered,
    ShowDraft,
    StartTurn,
    TurnEnded,
    TurnStreamed,
)
from actors.session.attempt import REPORT_WITHIN
from actors.session.outbox import LOST
from actors.transport import Account
from runtime.errors import CorruptError, MisuseError
from runtime.store.rows import Append, Commit, NewEvent, Settle, StoredEvent
from tests.fakes.actors.neighbours import of_kind, words
from tests.fakes.actors.room import HeldStore, RefusingStore, open_room
from tests.fakes.store.in_memory import MemoryStore
from tests.support.store.engines import names_undelivered
from tests.support.store.rows import enqueueing

Clock = trio.testing.MockClock

STREAM = session_key(words(), "anna", "chat").text


EDITED = Account(Abilities(draft_pace=1.2), has_presence=True)
UNSEEN = Account(Abilities(shows_drafts=False), has_presence=True)


async def test_an_answer_goes_out_when_it_is_stored(autojump_clock: Clock) -> None:
    store = HeldStore()
    async with open_room(autojump_clock, store) as room:
        await room.hear(words())
        store.is_held = True
        await room.answer()
        assert room.said() == []
        store.let_go()
        await room.rest()
        assert room.said() == ["yes"]
        assert (await store.counts()).inbox == {"replied": 1}
        assert of_kind(room.limiter, ReleasePermit)


async def test_the_next_waits_for_the_answer_and_knows_it(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words("one", 1), words("two", 2))
        await room.answer("first")
        start = await room.answer("second")
        assert [line.text for line in start.history] == ["one", "first"]
        assert room.said() == ["first", "second"]


async def test_a_late_or_foreign_report_changes_nothing(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        room.ref.tell(TurnStreamed("other", "psst"))
        room.ref.tell(TurnEnded("other", Finished("no")))
        for text in ("yes", "no"):
            room.ref.tell(TurnEnded(start.turn_id, Finished(text)))
        await room.rest()
        room.ref.tell(TurnStreamed(start.turn_id, "psst"))
        await trio.sleep(1)
        assert room.said() == ["yes"]
        assert of_kind(room.connector, ShowDraft) == []


async def test_a_second_permit_starts_no_second_turn(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        room.ref.tell(PermitGranted(start.turn_id))
        room.ref.tell(PermitGranted("of a turn long stopped"))
        await room.rest()
        assert len(of_kind(room.agent, StartTurn)) == 1
        assert len(of_kind(room.limiter, ReleasePermit)) == 1  # as it began


async def test_a_turn_that_never_reports_is_given_up(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock, turn_timeout=10) as room:
        await room.hear(words(), words("two", 2))
        start = await room.grant()
        await trio.sleep(10 + REPORT_WITHIN + 1)
        assert room.said() == ["⚠️ I lost the thread. Please ask again."]
        assert of_kind(room.agent, CancelTurn) == [CancelTurn(start.turn_id)]
        await room.answer()
        assert room.said()[1] == "yes"


async def test_without_a_limiter_there_is_an_answer_all_the_same(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.limiter.actor_ref.stop()
        await room.hear(words())
        assert room.said() == ["⚠️ I am being restarted. Please ask again."]


async def test_a_failed_turn_is_remembered_as_one(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words("one"), words("two", 2))
        start = await room.grant()
        room.ref.tell(TurnEnded(start.turn_id, Failed("sorry", "bug")))
        await room.rest()
        start = await room.grant()
        assert [line.text for line in start.history] == ["one", "[Task failed]"]
        assert room.said() == ["sorry"]


async def test_lines_a_client_brings_along_count_only_at_the_beginning(
    autojump_clock: Clock,
) -> None:
    brought = (TranscriptLine("user", "before"), TranscriptLine("assistant", "well"))
    async with open_room(autojump_clock) as room:
        await room.hear(words("one", history=brought))
        start = await room.answer()
        assert start.history == brought
        await room.hear(words("two", 2, history=brought))
        start = await room.grant()
        assert [line.text for line in start.history] == ["before", "well", "one", "yes"]


MOST_LINES = AgentConfig().max_history


async def test_a_long_history_is_read_whole_and_kept_short(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_room(autojump_clock, store) as room:
        for number in range(REMEMBERED):
            await room.hear(words(f"{number}", number))
            await room.answer()
    async with open_room(autojump_clock, store.reopened()) as room:
        await room.hear(words("now", 999))
        start = await room.grant()
    assert MOST_LINES <= len(start.history) <= 2 * MOST_LINES
    assert start.history[-2].text == str(REMEMBERED - 1)
    assert start.earlier == 2 * REMEMBERED - len(start.history)


async def test_heard_again_a_message_keeps_its_place(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        room.ref.tell(Hear(words()))
        await room.answer()
        room.ref.tell(Hear(words()))
        await room.rest()
        assert len(of_kind(room.limiter, AcquirePermit)) == 1
        assert room.said() == ["yes"]


async def test_answered_by_somebody_else_it_is_looked_for_in_the_outbox(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words(), words("two", 2))
        await room.store.commit(Commit(at=1.0, settles=(Settle("m1", "dead"),)))
        await room.answer()
        assert room.said() == []
        assert of_kind(room.connector, DrainOutbox)
        await room.answer("second")
        assert room.said() == ["second"]


async def test_somebody_else_s_event_makes_it_read_anew(autojump_clock: Clock) -> None:
    body = b'{"inbound_id":"x","lines":[{"role":"user","text":"elsewhere"}]}'
    event = Append(
        stream=STREAM, expected=0, part=0, events=(NewEvent("exchanged", body),)
    )
    async with open_room(autojump_clock) as room:
        await room.hear(words("one"), words("two", 2))
        await room.store.commit(Commit(at=1.0, appends=(event,)))
        await room.answer("lost")
        await trio.sleep(1)
        assert of_kind(room.router, RouteUnanswered)
        start = await room.answer("first")
        assert [line.text for line in start.history] == ["elsewhere"]
        await room.answer("second")
        assert room.said() == ["first", "second"]


@pytest.mark.parametrize("is_lost", [False, True])
async def test_when_a_turn_is_ending_it_says_no_more(
    *, is_lost: bool, autojump_clock: Clock
) -> None:
    store = HeldStore()
    async with open_room(autojump_clock, store, turn_timeout=10) as room:
        await room.hear(words())
        start = await room.grant()
        store.is_held = True
        if is_lost:
            await trio.sleep(10 + REPORT_WITHIN + 1)
        else:
            room.ref.tell(TurnEnded(start.turn_id, Finished("yes")))
        room.ref.tell(TurnStreamed(start.turn_id, "psst"))
        await trio.sleep(1)
        store.let_go()
        await room.rest()
        assert len(room.said()) == 1
        assert of_kind(room.connector, ShowDraft) == []


@pytest.mark.parametrize("error", [MisuseError("half"), CorruptError("damaged")])
async def test_an_answer_that_can_never_be_stored_is_apologised_for_and_dead(
    error: Exception, autojump_clock: Clock
) -> None:
    def is_answer(commit: Commit) -> bool:
        return any(b"unstorable" in row.body for row in commit.deliveries)

    store = RefusingStore(is_answer, error)
    async with open_room(autojump_clock, store) as room:
        await room.hear(words("one"), words("two", 2))
        await room.answer("unstorable")
        await trio.sleep(60)
        assert room.said() == [LOST]
        assert store.settled == [Settle("m1", "dead", "not_stored")]
        start = await room.answer("second")
        assert start.history == ()
        assert len(of_kind(room.agent, StartTurn)) == 2
        assert room.said() == [LOST, "second"]
        assert of_kind(room.router, RouteUnanswered) == []


@pytest.mark.parametrize("error", [MisuseError("half"), CorruptError("damaged")])
async def test_where_no_apology_can_be_stored_either_the_next_is_answered(
    error: Exception, autojump_clock: Clock
) -> None:
    def settles_the_first(commit: Commit) -> bool:
        return any(row.inbox_id == "m1" for row in commit.settles)

    store = RefusingStore(settles_the_first, error)
    async with open_room(autojump_clock, store) as room:
        await room.hear(words("one"), words("two", 2))
        await room.answer("lost")
        await trio.sleep(60)
        assert (room.said(), store.refused) == ([], 2)
        await room.answer("second")
        assert room.said() == ["second"]
        assert len(of_kind(room.agent, StartTurn)) == 2
        assert [row.id for row in await store.unsettled()] == ["m1"]
        assert of_kind(room.router, RouteUnanswered) == []


@pytest.mark.parametrize("pause", [0.001, 0.5])
async def test_what_is_said_while_writing_adds_up(
    pause: float, autojump_clock: Clock
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        for number in range(50):
            room.ref.tell(TurnStreamed(start.turn_id, f"w{number} "))
            await trio.sleep(pause)
        await trio.sleep(1)
        drafts = [each.draft.text for each in of_kind(room.connector, ShowDraft)]
        assert "".join(drafts) == "".join(f"w{number} " for number in range(50))
        assert len(drafts) <= (5 if pause < 0.1 else 50)
        assert room.system.statistics().timers == 1  # the watchdog's


@pytest.mark.parametrize(
    ("account", "most"),
    [
        pytest.param(Account(), 50, id="each word is shown"),
        pytest.param(EDITED, 12, id="edits a second apart gather words"),
        pytest.param(UNSEEN, 0, id="nobody sees drafts"),
    ],
)
async def test_a_word_costs_no_more_drafts_than_people_can_see(
    account: Account, most: int, autojump_clock: Clock
) -> None:
    async with open_room(autojump_clock, accounts={"fake": account}) as room:
        await room.hear(words())
        start = await room.grant()
        for number in range(50):
            room.ref.tell(TurnStreamed(start.turn_id, f"w{number} "))
            await trio.sleep(0.025)
        await trio.sleep(1)
        drafts = [each.draft.text for each in of_kind(room.connector, ShowDraft)]
        whole = "".join(f"w{number} " for number in range(50))
        assert "".join(drafts) == (whole if most else "")
        assert most * 0.8 <= len(drafts) <= most


async def test_it_says_which_messages_it_does_not_know(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words("one"))
        await room.answer("first")
        await room.hear(words("two", 2), words("three", 3))
        for name in ("m1", "m2", "m3", "m4"):  # answered, at work, waiting, never heard
            room.ref.tell(CheckHeard(name))
        await trio.sleep(1)
        assert of_kind(room.router, NotHeard) == [NotHeard("m4")]


class ReadingStore(MemoryStore):
    """Counts the events that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        found = await super().read(stream, after, limit)
        self.given += len(found)
        return found

    def woken(self) -> ReadingStore:
        """Give these rows to a next process."""
        store = ReadingStore()
        store._rows = self.reopened()._rows
        return store


async def talked(clock: Clock, count: int) -> ReadingStore:
    """Have a conversation of so many exchanges; give its rows."""
    store = ReadingStore()
    async with open_room(clock, store) as room:
        for number in range(1, count + 1):
            await room.hear(words(f"{number}", number))
            await room.answer(f"to {number}")
    return store.woken()


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_long_conversation_wakes_from_its_snapshot_if_it_can_read_it(
    *, is_known: bool, autojump_clock: Clock
) -> None:
    store = await talked(autojump_clock, 2 * SNAPSHOT_EVERY + 7)
    (stream,) = store._rows.snapshots
    assert stream == STREAM
    if not is_known:
        newest = store._rows.snapshots[STREAM]
        later = structs.replace(newest, schema=SCHEMA + 1, body=b"?")
        store._rows.snapshots[STREAM] = later
    async with open_room(autojump_clock, store) as room:
        await room.hear(words("now", 999))
        start = await room.answer()
        assert store.given == (7 if is_known else 2 * SNAPSHOT_EVERY + 7)
    assert MOST_LINES <= len(start.history) <= 2 * MOST_LINES
    assert [line.text for line in start.history[-2:]] == ["107", "to 107"]
    (record,) = await store.records("conversation")
    assert b'"message_count":216' in record.body


async def test_what_was_answered_with_the_snapshot_s_event_is_not_answered_again(
    autojump_clock: Clock,
) -> None:
    store = await talked(autojump_clock, SNAPSHOT_EVERY)
    async with open_room(autojump_clock, store) as room:
        room.ref.tell(Hear(words(f"{SNAPSHOT_EVERY}", SNAPSHOT_EVERY)))
        await room.rest()
        assert store.given == 0
        assert of_kind(room.limiter, AcquirePermit) == []


@pytest.mark.parametrize("occasion", ["", "heartbeat"])
async def test_what_is_given_up_leaves_its_usual_id_to_its_answer(
    *, occasion: Occasion, autojump_clock: Clock
) -> None:
    store = MemoryStore()
    async with open_room(autojump_clock, store) as room:
        inbound = structs.replace(words(), occasion=occasion)
        await store.commit(Commit(at=1.0, accepts=(as_accept(inbound, 1.0),)))
        room.ref.tell(
            Hear(
                inbound,
                past=AttemptHistory(attempts=99, was_running=True, was_read=True),
            )
        )
        await room.rest()
        assert (await store.counts()).inbox == {"dead": 1}
        (left,) = await names_undelivered(store)
        assert left.startswith("m1:0:")


async def test_an_answer_whose_id_is_taken_is_stored_under_another(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_room(autojump_clock, store) as room:
        await store.commit(enqueueing(f"{words().id}:0"))
        await room.hear(words("one"), words("two", 2))
        await room.answer("first")
        await room.answer("second")
        assert room.said() == ["first", "second"]
        assert (await store.counts()).inbox == {"replied": 2}
