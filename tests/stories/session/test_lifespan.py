"""A conversation ends by command, by marker, at an hour or after a silence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import CompactionConfig, SessionConfig
from actors.journal.history import Flushed, Reset
from runtime.errors import StoreUnavailableError
from runtime.store.rows import StoredRecord
from tests.fakes.company.company import EPOCH, Cast, Says, at_rest, open_company
from tests.fakes.models.summing import Notebook, Summer, chapters, kept, talk
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock


def make_cast(model: Summer | None = None, **sessions: Any) -> Cast:
    return Cast(
        agents={"anna": AgentConfig(max_history=100)},
        model=model or Summer(),
        sessions=SessionConfig(**sessions),
        compaction=CompactionConfig(flush_after=0),
        remember=Notebook(),
    )


def shown(cast: Cast) -> list[str]:
    """Give what the model was shown with the last question."""
    return [line.text for line in cast.model.requests[-1].lines]


@pytest.mark.parametrize("command", ["/new", "/clear", "/forget"])
async def test_after_a_command_the_model_knows_nothing_of_before(
    command: str, autojump_clock: Clock
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await talk(cast, "one", "two", command, "three")
    assert shown(cast) == ["three"]
    assert "conversation" in cast.platform.said()[2]
    (reset,) = await chapters(cast)
    assert isinstance(reset, Reset)
    assert (reset.reason, reset.messages) == ("command", 4)
    notebook = cast.remember
    assert isinstance(notebook, Notebook)
    # What somebody wants forgotten is gone through by nobody.
    is_kept = command != "/forget"
    assert reset.summary == ("They spoke of nuts." if is_kept else "")
    kinds = ["facts", "summary"] if is_kept else []
    assert [each.kind for each in notebook.noted] == kinds
    assert len(await kept(cast)) == len(kinds)


async def test_what_is_asked_before_the_command_is_answered_before_it(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(talk=lambda request: Says(f"{len(request.lines)}", 5.0)))
    async with open_company(autojump_clock, cast):
        for word in ("one", "two", "/new", "three"):
            cast.platform.write(word)
        await at_rest(cast)
    said = cast.platform.said()
    assert said[:2] == ["anna: 1", "anna: 3"]
    assert "new conversation" in said[2]
    assert said[3] == "anna: 1"


async def test_a_command_that_ends_it_finds_a_place_in_a_full_line_once(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(talk=lambda request: Says(f"{len(request.lines)}", 5.0)))
    cast.limits = LimitsConfig(max_waiting=1)
    async with open_company(autojump_clock, cast):
        for word in ("one", "two", "three", "/new", "/new", "/new"):
            cast.platform.write(word)
        await at_rest(cast)
        await talk(cast, "four")
    said = cast.platform.said()
    assert [each for each in said if each.startswith("anna")] == [
        "anna: 1",
        "anna: 3",
        "anna: 1",
    ]
    assert sum("new conversation" in each for each in said) == 1
    assert await cast.inbox() == {"dropped": 3, "replied": 4}


async def test_a_stuck_summary_holds_the_command_up_only_so_long(
    autojump_clock: Clock,
) -> None:
    model = Summer(facts=Says("x", after=10_000.0))
    cast = make_cast(model, flush_timeout=20.0)
    async with open_company(autojump_clock, cast):
        await talk(cast, "one")
        cast.platform.write("/new")
        await trio.sleep(10.0)
        assert len(cast.platform.said()) == 1
        await trio.sleep(11.0)
        assert len(cast.platform.said()) == 2
        await talk(cast, "two")
    assert shown(cast) == ["two"]


async def test_a_command_can_be_stopped_while_it_waits(autojump_clock: Clock) -> None:
    cast = make_cast(Summer(facts=Says("x", after=30.0)))
    async with open_company(autojump_clock, cast):
        await talk(cast, "one")
        cast.platform.write("/new")
        await trio.sleep(5.0)
        await talk(cast, "/stop", "two")
    assert shown(cast) == ["one", "to one", "two"]
    assert await chapters(cast) == []


async def test_without_a_memory_nobody_is_asked(autojump_clock: Clock) -> None:
    cast = make_cast()
    cast.remember = None
    async with open_company(autojump_clock, cast):
        await talk(cast, "one", "/new", "two")
    assert len(cast.model.requests) == 2
    assert shown(cast) == ["two"]


async def test_a_program_s_own_session_is_dropped_too(autojump_clock: Clock) -> None:
    cast = make_cast(Summer(talk=lambda r: Says("yes", resume=f"{r.resume or 's'}+")))
    cast.remember = None
    async with open_company(autojump_clock, cast):
        await talk(cast, "one", "two", "/forget", "three", "four")
    assert [each.resume for each in cast.model.requests] == ["", "s+", "", "s+"]


async def test_after_a_silence_it_begins_anew_and_says_so(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(expiry="idle", idle_minutes=5.0, idle_after=60.0)
    async with open_company(autojump_clock, cast):
        await talk(cast, "one")
        await trio.sleep(290.0)
        await talk(cast, "two")
        await trio.sleep(310.0)
        await talk(cast, "three", "four")
    assert shown(cast) == ["three", "to three", "four"]
    said = cast.platform.said()
    assert "nothing was said here for 5 minutes" in said[2]
    assert said[3:] == ["anna: to three", "anna: to four"]
    (reset,) = await chapters(cast)
    assert isinstance(reset, Reset)
    assert (reset.reason, reset.summary) == ("idle", "They spoke of nuts.")


async def test_a_day_begins_at_its_hour(autojump_clock: Clock) -> None:
    cast = make_cast(expiry="daily", reset_hour=4, tell_reset=False)
    start = datetime.fromtimestamp(EPOCH, UTC)
    four = start.replace(hour=4, minute=0, second=0) + timedelta(days=1)
    autojump_clock.jump(four.timestamp() - EPOCH - 100)
    async with open_company(autojump_clock, cast):
        await talk(cast, "one", "two")
        await trio.sleep(101)
        await talk(cast, "three")
        await talk(cast, "four")
    assert shown(cast) == ["three", "to three", "four"]
    assert len(cast.platform.said()) == 4
    (reset,) = await chapters(cast)
    assert isinstance(reset, Reset)
    assert reset.reason == "daily"


async def test_awake_it_ends_by_itself(autojump_clock: Clock) -> None:
    cast = make_cast(expiry="idle", idle_minutes=1.0)
    async with open_company(autojump_clock, cast):
        await talk(cast, "one")
        await trio.sleep(61.0)
        (reset,) = await chapters(cast)
        assert isinstance(reset, Reset)
        (row,) = await cast.store.records("conversation")
        assert b'"status":"closed"' in row.body
        await talk(cast, "two")
    assert shown(cast) == ["two"]
    (row,) = await cast.store.records("conversation")
    assert b'"status":"active"' in row.body
    assert b'"message_count":2' in row.body


async def test_the_facts_are_noted_on_the_way(autojump_clock: Clock) -> None:
    cast = make_cast()
    cast.compaction = CompactionConfig(flush_after=6)
    async with open_company(autojump_clock, cast):
        await talk(cast, *map(str, range(7)))
        await trio.sleep(1.0)
    found = await chapters(cast)
    assert [each.messages for each in found if isinstance(each, Flushed)] == [6, 12]
    assert len(found) == 2
    summer = cast.model
    assert isinstance(summer, Summer)
    first, second = summer.asked("facts")
    assert "zoe (user): 2" in first.lines[0].text
    assert "zoe (user): 3" not in first.lines[0].text
    assert "zoe (user): 2" not in second.lines[0].text
    assert summer.asked("summary") == []


async def test_a_flush_that_fails_is_not_tried_at_every_word(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(facts=Says(error=ValueError("broken"))))
    cast.compaction = CompactionConfig(flush_after=4)
    async with open_company(autojump_clock, cast):
        await talk(cast, *map(str, range(5)))
        await trio.sleep(1.0)
    summer = cast.model
    assert isinstance(summer, Summer)
    assert len(summer.asked("facts")) == 2
    assert len(cast.platform.said()) == 5


async def test_who_sleeps_is_woken_to_end_a_few_at_a_time(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(
        expiry="idle", idle_minutes=4.0, idle_after=60.0, close_sleeping=True
    )
    async with open_company(autojump_clock, cast):
        for number in range(40):
            cast.platform.write("hello", chat=f"room{number}")
        await at_rest(cast)
        await trio.sleep(200.0)
        rows = await cast.store.records("conversation")
        assert not any(b'"status":"closed"' in row.body for row in rows)
        await trio.sleep(121.0)
        rows = await cast.store.records("conversation")
        closed = sum(b'"status":"closed"' in row.body for row in rows)
        assert 0 < closed < 40
        await trio.sleep(180.0)
        rows = await cast.store.records("conversation")
        assert all(b'"status":"closed"' in row.body for row in rows)
    summer = cast.model
    assert isinstance(summer, Summer)
    assert len(summer.asked("summary")) == 40
    assert len(cast.platform.said("room0")) == 1


class Unreadable(MemoryStore):
    """A store whose conversations cannot be looked through for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False
        self.failed = 0

    async def records_since(
        self, kind: str, at: float, number: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        if self.is_down:
            self.failed += 1
            raise StoreUnavailableError("disk gone")
        return await super().records_since(kind, at, number, limit)


async def test_conversations_that_cannot_be_looked_through_are_closed_later(
    autojump_clock: Clock,
) -> None:
    store = Unreadable()
    cast = make_cast(
        expiry="idle", idle_minutes=4.0, idle_after=60.0, close_sleeping=True
    )
    cast.store = store
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        store.is_down = True
        await trio.sleep(900.0)
        assert store.failed > 1
        rows = await cast.store.records("conversation")
        assert not any(b'"status":"closed"' in row.body for row in rows)
        store.is_down = False
        await trio.sleep(300.0)
    rows = await cast.store.records("conversation")
    assert any(b'"status":"closed"' in row.body for row in rows)
    assert not cast.reports.of("actor failed")


async def test_what_comes_right_behind_the_command_is_answered(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(facts=Says("x", after=3.0)))
    async with open_company(autojump_clock, cast):
        await talk(cast, "one")
        for word in ("/new", "two", "three", "/new", "four"):
            cast.platform.write(word)
        await at_rest(cast, within=100.0)
    answers = [each for each in cast.platform.said() if each.startswith("anna")]
    assert answers == [f"anna: to {each}" for each in ("one", "two", "three", "four")]


@pytest.mark.parametrize("expiry", ["idle", "daily"])
async def test_a_clock_that_is_days_ahead_ends_no_conversation(
    expiry: str, autojump_clock: Clock
) -> None:
    cast = make_cast(expiry=expiry, idle_after=60.0, close_sleeping=True)
    async with open_company(autojump_clock, cast):
        await talk(cast, "one")
        cast.clock.ahead = 2 * 86_400.0
        await talk(cast, "two")
        await trio.sleep(3_600)
        await talk(cast, "three")
        cast.clock.ahead = 0.0
        await talk(cast, "four")
    assert {"one", "two", "three", "four"} <= set(shown(cast))
    assert await chapters(cast) == []
