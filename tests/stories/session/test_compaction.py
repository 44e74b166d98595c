"""A conversation that grows too long is summed up, and people hardly notice."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.prompt import ContextConfig
from actors.config.sessions import CompactionConfig
from actors.errors import ModelBusyError, ModelRefusedError
from actors.journal.history import Compacted, Flushed, Reset
from actors.journal.rebuild import Fold, compare
from actors.journal.records import UsageRecord
from actors.memory import forgetting
from actors.messages.inbound import ModelRequest
from actors.rules.prompt import compaction
from runtime.errors import StoreUnavailableError
from runtime.store.rows import StoredEntry
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Platform,
    Says,
    at_rest,
    open_company,
)
from tests.fakes.models.summing import Notebook, Summer, chapters, kept, talk, task_of
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

LONG = "so many words " * 20


def make_cast(
    model: Summer,
    *,
    window: int = 600,
    store: MemoryStore | None = None,
    **compaction: Any,
) -> Cast:
    given: dict[str, Any] = {"flush_after": 0, **compaction}
    context = ContextConfig(window_tokens=window)
    return Cast(
        agents={"anna": AgentConfig(max_history=100, context=context, markers=())},
        model=model,
        compaction=CompactionConfig(**given),
        remember=Notebook(),
        store=store or MemoryStore(),
    )


def too_long(most: int) -> Any:
    """Refuse what has more characters than a provider would take."""

    def answer(request: ModelRequest) -> str | Says:
        if sum(len(line.text) for line in request.lines) > most:
            error = ModelRefusedError("prompt is too long", kind="context")
            return Says(error=error)
        return f"answer {len(request.lines)}"

    return answer


async def test_before_the_model_is_asked_too_much_it_is_summed_up(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer())
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(12)))
    assert len(cast.platform.said()) == 12
    (first, *_) = await chapters(cast)
    assert isinstance(first, Compacted)
    assert (first.trigger, first.outcome) == ("tokens", "summarised")
    assert first.tokens_after < first.tokens_before
    assert 0 < first.messages_after <= 6
    assert first.run is not None
    tokens = [sum(len(x.text) for x in r.lines) / 4 for r in cast.model.requests]
    assert max(tokens) < 500
    assert not any("window" in each for each in cast.platform.said())


async def test_a_summary_holds_no_key(autojump_clock: Clock) -> None:
    cast = make_cast(Summer(summary="Her password is hunter22, she likes nuts."))
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(8)))
    (first, *_) = await chapters(cast)
    assert isinstance(first, Compacted)
    assert first.summary == "Her password is [password], she likes nuts."


async def test_what_stays_is_word_for_word_and_the_rest_is_counted(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer())
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(12)))
        await talk(cast, "and now")
    last = cast.model.requests[-1]
    texts = [line.text for line in last.lines]
    assert texts[-1] == "and now"
    assert texts[-3] == f"11 {LONG}".strip() or texts[-3] == f"11 {LONG}"
    shown = len(texts) - 1
    assert f"[… {24 - shown} earlier messages are not shown]" in last.system


class Unsaid(MemoryStore):
    """A store that does not say what is to be forgotten."""

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        if kind == forgetting.KIND:
            raise StoreUnavailableError("disk gone")
        return await super().entry(kind, name)


async def test_where_nobody_knows_what_is_forgotten_nothing_is_remembered(
    autojump_clock: Clock,
) -> None:
    model = Summer(facts="[MEMORY:sticky] nuts [/MEMORY]")
    cast = make_cast(model, store=Unsaid())
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(8)))
    (first, *_) = await chapters(cast)
    assert isinstance(first, Compacted)
    assert (first.outcome, bool(first.summary)) == ("summarised", True)
    assert not model.asked("facts")
    assert await kept(cast) == []


async def test_facts_are_found_first_and_stored_with_the_event(
    autojump_clock: Clock,
) -> None:
    model = Summer(facts="[DELEGATE:ben] x [/DELEGATE] [MEMORY:sticky] nuts [/MEMORY]")
    cast = make_cast(model)
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(8)))
    tasks = [task for task in map(task_of, model.requests) if task != "talk"]
    assert tasks[:2] == ["facts", "summary"]
    notebook = cast.remember
    assert isinstance(notebook, Notebook)
    assert notebook.noted[0].text == "[MEMORY:sticky] nuts [/MEMORY]"
    facts = await kept(cast)
    assert len(facts) == len(notebook.noted)


async def test_a_provider_that_says_no_is_asked_once_more_with_less(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(talk=too_long(2_000)), window=1_000_000)
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(9)))
    said = cast.platform.said()
    assert len(said) == 9
    assert all(each.startswith("anna: answer") for each in said)
    found = await chapters(cast)
    assert found
    for each in found:
        assert isinstance(each, Compacted)
        assert (each.trigger, each.outcome) == ("error", "summarised")


@pytest.mark.parametrize(
    "summary",
    [Says(error=ModelRefusedError("no")), LONG * 50, Says("x", after=10_000.0)],
    ids=["failing", "longer than before", "stuck"],
)
async def test_where_there_is_no_summary_lines_are_cut_and_people_are_told(
    summary: str | Says, autojump_clock: Clock
) -> None:
    model = Summer(summary=summary, talk=too_long(2_000))
    cast = make_cast(model, window=1_000_000, cut_lines=4, cut_chars=30)
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(12)))
        await talk(cast, "and now")
    said = cast.platform.said()
    notices = [each for each in said if "Context window exceeded" in each]
    assert notices
    assert len(said) == 13 + len(notices)
    assert model.requests[-1].lines[-1].text == "and now"
    (first, *_) = await chapters(cast)
    assert isinstance(first, Compacted)
    assert first.outcome == "truncated"
    assert (first.messages_after, first.summary) == (4, "")


async def test_a_stuck_summary_keeps_nobody_else_waiting(
    autojump_clock: Clock,
) -> None:
    model = Summer(summary=Says("x", after=10_000.0))
    cast = make_cast(model, window=720)
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(5)))
        cast.platform.write(f"5 {LONG}")
        cast.platform.write(f"6 {LONG}")
        await trio.sleep(5.0)
        before = len(cast.platform.said())
        cast.platform.write("hello", chat="other")
        await trio.sleep(5.0)
        assert cast.platform.said("other") == ["anna: to hello"]
        assert len(cast.platform.said()) == before
        await at_rest(cast)
    assert len(cast.platform.said()) == 7
    # The model still takes it, so nothing was given up, and it is not tried at once.
    assert len(model.asked("summary")) == 1
    assert len(cast.model.requests[-1].lines) == 13


async def test_what_is_too_long_by_itself_is_said_to_be(autojump_clock: Clock) -> None:
    cast = make_cast(Summer(talk=too_long(1_000)), window=1_000_000)
    async with open_company(autojump_clock, cast):
        await talk(cast, "one", "x" * 5_000, "two")
    said = cast.platform.said()
    assert "Context window exceeded" in said[1]
    assert said[2].startswith("anna: answer")


async def test_a_crash_in_the_middle_changes_nothing(autojump_clock: Clock) -> None:
    model = Summer(summary=Says("a summary", after=100.0))
    cast = make_cast(model, window=575)
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(4)))
        cast.platform.write(f"4 {LONG}")
        await trio.sleep(10.0)
        before = await cast.store.read("anna/fake/room//zoe")
    cast.restart()
    assert await cast.store.read("anna/fake/room//zoe") == before
    assert await chapters(cast) == []
    assert await kept(cast) == []
    model.said["summary"] = "another summary"
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    (only,) = await chapters(cast)
    assert isinstance(only, Compacted)
    assert only.summary == "another summary"
    assert len(cast.platform.said()) == 5


async def test_calls_are_in_the_ledger_and_the_summary_among_the_records(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer())
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(6)))
    (told,) = await chapters(cast)
    usage = await cast.store.records("usage")
    (own,) = [each for each in usage if each.id == f"{told.id}#1"]
    assert b'"status":"compaction"' in own.body
    assert b'"rounds":2' in own.body
    (record,) = await cast.store.records("compaction")
    assert record.id == told.id
    assert b"They spoke of nuts." in record.body


async def test_a_busy_summariser_is_no_reason_to_fail(autojump_clock: Clock) -> None:
    error = ModelBusyError("later")
    cast = make_cast(Summer(summary=Says(error=error), facts=Says(error=error)))
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(5)))
    assert len([x for x in cast.platform.said() if x.startswith("anna: to")]) == 5


async def test_the_journal_alone_says_what_the_records_say(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(Summer(), flush_after=4)
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number} {LONG}" for number in range(7)), "/new", "one")
        await trio.sleep(1.0)
    fold = Fold(cast.services.keep)
    expected = [
        made
        for event in await cast.store.read("anna/fake/room//zoe")
        for made in fold.take(event)
    ]
    expected += fold.end()
    kinds = ("conversation", "compaction", "usage", "audit")
    rows = {
        (kind, row.id): row for kind in kinds for row in await cast.store.records(kind)
    }
    for made in expected:
        stored = rows.pop((made.record.kind, made.record.id))
        assert compare(made, stored, 0.0) is None
    assert not rows
    told = {type(each) for each in await chapters(cast)}
    assert told == {Compacted, Flushed, Reset}


@pytest.mark.parametrize(("is_direct", "whose"), [(True, "zoe"), (False, "")])
async def test_what_keeps_a_conversation_short_is_paid_by_whose_it_is(
    whose: str, autojump_clock: Clock, *, is_direct: bool
) -> None:
    cast = make_cast(Summer(), flush_after=8)
    cast.approvers = ("group/zoe",)
    cast.platform = Platform("group", is_direct=is_direct)
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"@anna {number} {LONG}" for number in range(6)))
        cast.platform.write("@anna hi", sender="zoe" if is_direct else "bob")
        await at_rest(cast)
        await talk(cast, "@anna /new")
    rows = await cast.store.records("usage")
    runs = [msgspec.json.decode(row.body, type=UsageRecord) for row in rows]
    paid = {each.status: each.sender_id for each in runs}
    assert paid["compaction"] == paid["flush"] == whose
    assert paid["reset"] == "zoe"  # who asked for it


def remembering(name: str) -> FakeModel:
    """Make a model that knows a name only if its request has it."""

    def answer(request: ModelRequest) -> str:
        seen = request.system + " ".join(line.text for line in request.lines)
        known = name if name in seen else "something"
        told = {"facts": "NOTHING", "summary": f"They spoke of {known}."}
        return told.get(task_of(request), f"It is {known}.")

    return FakeModel(answer)


async def test_after_a_hundred_exchanges_the_first_is_still_known(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=remembering("Marigold"))
    async with open_company(autojump_clock, cast):
        questions = [f"question {number}" for number in range(100)]
        await talk(cast, "our project is called Marigold", *questions)
        await talk(cast, "what is our project called?")
    assert cast.platform.said()[-1] == "anna: It is Marigold."
    most = AgentConfig().max_history
    assert len(cast.model.requests[-1].lines) <= most + 1
    done = [each for each in await chapters(cast) if isinstance(each, Compacted)]
    assert len(done) > compaction.MOST_SUMMARIES
    assert {each.trigger for each in done} == {"lines"}


@pytest.mark.parametrize("summary", ["a long summary of short words " * 40, ""])
async def test_many_short_lines_are_summed_up_and_never_called_too_long(
    summary: str, autojump_clock: Clock
) -> None:
    said = {"facts": "NOTHING", "summary": summary}
    cast = Cast(model=FakeModel(lambda request: said.get(task_of(request), "yes")))
    async with open_company(autojump_clock, cast):
        await talk(cast, *(f"{number}" for number in range(40)))
    assert cast.platform.said() == ["anna: yes"] * 40
    outcomes = {x.outcome for x in await chapters(cast) if isinstance(x, Compacted)}
    assert outcomes == ({"summarised"} if summary else {"kept"})
