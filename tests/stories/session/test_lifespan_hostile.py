"""A conversation's end neither gets lost nor goes round in circles."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.config.sessions import CompactionConfig, SessionConfig
from actors.journal.history import Reset
from actors.protocol import ShortenPrompt
from runtime.errors import MisuseError
from runtime.store.rows import Commit
from tests.fakes.actors.room import RefusingStore
from tests.fakes.company.company import Cast, Says, at_rest, open_company
from tests.fakes.models.summing import Notebook, Summer, chapters, talk, task_of

Clock = trio.testing.MockClock


def make_cast(model: Summer, sessions: SessionConfig, **fields: Any) -> Cast:
    return Cast(
        agents={"anna": AgentConfig(max_history=100)},
        model=model,
        sessions=sessions,
        compaction=CompactionConfig(flush_after=0),
        remember=Notebook(),
        **fields,
    )


async def test_a_stopped_turn_that_asks_for_room_late_ends_no_reset(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(facts=Says("x", after=10.0)), SessionConfig())
    async with open_company(autojump_clock, cast) as system:
        await talk(cast, "one")
        cast.platform.write("/new")
        await trio.sleep(1.0)
        session = system.find(f"{names.sessions('anna')}/anna/fake/room//zoe")
        assert session is not None
        late = ShortenPrompt("an earlier turn", "tokens", must=False)
        shortened = await session.ask(late, timeout=5.0)
        assert shortened.outcome == "kept"
        await at_rest(cast, within=60.0)
    assert "new conversation" in cast.platform.said()[1]
    (reset,) = await chapters(cast)
    assert isinstance(reset, Reset)


def is_reset(commit: Commit) -> bool:
    return any(e.kind == "reset" for row in commit.appends for e in row.events)


async def test_an_end_that_can_never_be_stored_keeps_nobody_from_an_answer(
    autojump_clock: Clock,
) -> None:
    store = RefusingStore(is_reset, MisuseError("never"))
    sessions = SessionConfig(expiry="idle", idle_minutes=5.0, idle_after=60.0)
    cast = make_cast(Summer(), sessions, store=store)
    async with open_company(autojump_clock, cast):
        await talk(cast, "one")
        await trio.sleep(310.0)
        cast.platform.write("two")
        await at_rest(cast, within=60.0)
        await talk(cast, "three")
    assert cast.platform.said()[-2:] == ["anna: to two", "anna: to three"]
    assert store.refused == 1


async def test_of_a_conversation_that_has_ended_nothing_is_counted(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(), SessionConfig())
    async with open_company(autojump_clock, cast):
        await talk(cast, "one", "two", "/new", "/status", "/new", "three")
    assert "conversation: 0 messages, about 0 tokens" in cast.platform.said()[3]
    talked = [each for each in cast.model.requests if task_of(each) == "talk"]
    assert "not shown" not in talked[-1].system
    resets = [each for each in await chapters(cast) if isinstance(each, Reset)]
    assert [each.messages for each in resets] == [4, 0]
