"""An agent that goes on by itself decides cheaply, acts once, and says what it did."""

from __future__ import annotations

import msgspec
import trio
import trio.testing

from actors import names
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.schedule.appointments import plan_name
from actors.schedule.messages import AppointmentsChanged
from actors.schedule.rows import KIND, SLOT, SlotRecord, as_entry
from runtime.store.rows import Commit
from tests.fakes.company.arranging import kept
from tests.fakes.company.by_itself import HOURLY, IDLE, NAME, ByItself, acts, planned
from tests.fakes.company.company import Says, at_rest, call, open_company
from tests.fakes.store.crashes import MortalStore

Clock = trio.testing.MockClock

HOUR = 3600.0


async def test_a_decision_not_to_act_is_one_cheap_call_and_no_word(
    autojump_clock: Clock,
) -> None:
    cast = ByItself(model=planned(IDLE))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    assert cast.platform.said("ops") == []
    (request,) = cast.model.requests
    assert not request.tools
    assert "the roses" in request.lines[0].text
    assert "You decide whether there is anything" in request.system
    assert cast.logged() == []
    assert await cast.inbox() == {"replied": 1}


async def test_what_was_decided_is_done_told_and_written_down(
    autojump_clock: Clock,
) -> None:
    cast = ByItself(model=planned(acts("look", "water the roses")))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
        await trio.sleep(1)
    assert cast.platform.said("ops") == ["anna: Watered."]
    (work,) = cast.asked(planner=False)
    assert "1. look\n2. water the roses" in work.lines[-1].text
    assert "you go on by yourself" in work.system
    (entry,) = cast.logged()
    assert entry == "By myself: 1. look 2. water the roses → Watered."
    reasons = [row.reason for row in cast.store._rows.inbox.values()]
    assert reasons == ["decided", "ok", "told"]


async def test_the_next_decision_knows_what_was_done(autojump_clock: Clock) -> None:
    cast = ByItself(model=planned(acts("water")))
    async with open_company(autojump_clock, cast):
        await trio.sleep(2 * HOUR + 1)
        await at_rest(cast)
    _, second = cast.asked(planner=True)
    assert "By myself: 1. water → Watered." in second.system
    assert len([x for x in second.lines if x.role == "assistant"]) == 0


async def test_nothing_to_report_is_not_told(autojump_clock: Clock) -> None:
    cast = ByItself(model=planned(acts("look"), "**NO_REPLY**"))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
        await trio.sleep(1)
    assert cast.platform.said("ops") == []
    assert cast.logged() == ["By myself: 1. look → nothing to report"]


async def test_bad_json_is_told_to_the_model_which_may_mend_it(
    autojump_clock: Clock,
) -> None:
    answers = iter(["I think so.", '{"should_act": "maybe"}', acts("water")])
    cast = ByItself(model=planned(lambda _: next(answers)))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    tries = cast.asked(planner=True)
    assert "it holds no JSON object" in tries[1].lines[-1].text
    assert "Expected `bool`, got `str`" in tries[2].lines[-1].text
    assert tries[2].lines[-2].text == '{"should_act": "maybe"}'
    assert cast.platform.said("ops") == ["anna: Watered."]


async def test_a_planner_that_cannot_write_json_is_given_up(
    autojump_clock: Clock,
) -> None:
    cast = ByItself(model=planned("no idea"))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    assert len(cast.model.requests) == 3
    (told,) = cast.platform.said("ops")
    assert told.startswith(": ⚠️ I could not decide whether there is anything to do: 3")
    assert [x.reason for x in cast.store._rows.inbox.values()] == ["undecided", "told"]


async def test_what_keeps_failing_is_paused_and_its_chat_told(
    autojump_clock: Clock,
) -> None:
    cast = ByItself(model=planned("no idea"))
    async with open_company(autojump_clock, cast):
        await trio.sleep(5 * HOUR + 1)
        await at_rest(cast)
    assert len(cast.model.requests) == 9
    assert "I have paused this" in cast.platform.said("ops")[-1]
    assert (await kept(cast))[NAME].paused == "failures"


async def test_there_are_never_two_runs_at_once(autojump_clock: Clock) -> None:
    own = msgspec.structs.replace(
        HOURLY, repeat="every 2m", executor_timeout=290.0, run_tokens=60_000
    )
    slow = planned(acts("water"), lambda _: Says("Watered.", after=250))
    cast = ByItself(model=slow, autonomous=own)
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR)
    assert slow.most_running == 1
    assert len(cast.asked(planner=True)) == 10, "each second slot was skipped"
    assert (await kept(cast))[NAME].skipped > 10


async def test_carrying_out_ends_in_time(autojump_clock: Clock) -> None:
    own = msgspec.structs.replace(HOURLY, executor_timeout=30.0)
    slow = planned(acts("water"), lambda _: Says("Watered.", after=100))
    cast = ByItself(model=slow, autonomous=own)
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 31)
        await at_rest(cast)
    assert cast.platform.said("ops") == [": ⚠️ Request timed out. Please try again."]


async def test_deciding_ends_in_time(autojump_clock: Clock) -> None:
    slow = planned(lambda _: Says(IDLE, after=100))
    cast = ByItself(model=slow)
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 61)
        await at_rest(cast)
    (told,) = cast.platform.said("ops")
    assert "could not decide in time" in told


async def test_the_plan_is_a_message_named_by_its_slot(autojump_clock: Clock) -> None:
    cast = ByItself(model=planned(acts("water")))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    slot, plan, _ = (x.platform_id for x in cast.store._rows.inbox.values())
    assert plan == plan_name(slot)
    rows = await cast.store.records_since(SLOT, 0.0, 0, 10)
    bodies = [msgspec.json.decode(row.body, type=SlotRecord) for row in rows]
    assert [(x.kind, x.appointment) for x in bodies] == [
        ("autonomous", NAME),
        ("plan", NAME),
    ]
    assert bodies[1].text == "1. water"
    assert bodies[1].due == bodies[0].due


class Well:
    """A tool that gives back as much as it is told to."""

    spec = ToolSpec("draw", "Draws.", b'{"type":"object"}', is_own_words=True)

    def __init__(self, result: str = "water") -> None:
        self.result = result

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del call, context
        await trio.lowlevel.checkpoint()
        return ToolResult(self.result)


def never_done(request: ModelRequest) -> Says:
    """Call the tool as long as there is one."""
    done = sum(line.role == "tool" for line in request.lines)
    if request.tools:
        return Says(calls=(call("draw", done + 1, bucket=done),))
    return Says(f"I drew {done} buckets.")


def at_the_well(tokens: int, well: Well) -> ByItself:
    return ByItself(
        model=planned(acts("draw"), never_done),
        autonomous=msgspec.structs.replace(HOURLY, run_tokens=tokens),
        more={"tools": ("draw",), "autonomy": "full"},
        tools=(well,),
    )


async def test_a_run_ends_in_words_before_its_tokens_are_used_up(
    autojump_clock: Clock,
) -> None:
    cast = at_the_well(30, Well())
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    assert cast.platform.said("ops") == ["anna: I drew 3 buckets."]
    assert 5 * len(cast.model.requests) <= 30, "a call takes five tokens"


async def test_a_run_stops_where_one_more_round_would_take_too_much(
    autojump_clock: Clock,
) -> None:
    cast = at_the_well(100, Well("water " * 500))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    (told,) = cast.platform.said("ops")
    assert "I have used up what one run may take: 5 of 95 tokens" in told
    assert len(cast.model.requests) == 2
    reasons = [row.reason for row in cast.store._rows.inbox.values()]
    assert reasons == ["decided", "allowance", "told"]


async def test_a_planner_that_uses_up_all_is_not_asked_again(
    autojump_clock: Clock,
) -> None:
    own = msgspec.structs.replace(HOURLY, run_tokens=8)
    cast = ByItself(model=planned("no idea"), autonomous=own)
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    assert len(cast.model.requests) == 1
    assert "used up" in cast.platform.said("ops")[0]


async def test_a_plan_that_nobody_has_begun_in_time_is_let_go(
    autojump_clock: Clock,
) -> None:
    slow = planned(lambda _: Says(acts("water"), after=9), "Watered.")
    cast = ByItself(model=slow, store=MortalStore((6, "after")))
    store = cast.store
    assert isinstance(store, MortalStore)
    with trio.CancelScope() as life:
        store.on_death = life.cancel
        async with open_company(autojump_clock, cast):
            await trio.sleep(2 * HOUR)
    assert [x.state for x in store._rows.inbox.values()] == ["replied", "accepted"]
    cast.model.requests.clear()
    cast.restart()
    await trio.sleep(2 * HOUR)
    cast.autonomous = msgspec.structs.replace(HOURLY, repeat="")
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said("ops") == []
    assert cast.model.requests == [], "it is not begun any more"
    assert await kept(cast) == {}, "the settings want it no more"


async def test_what_is_set_by_hand_lasts_over_a_restart(autojump_clock: Clock) -> None:
    cast = ByItself(model=planned(IDLE))
    async with open_company(autojump_clock, cast):
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    row = await cast.store.entry(KIND, NAME)
    assert row is not None
    it = (await kept(cast))[NAME]
    paused = msgspec.structs.replace(it, paused="by hand")
    change = as_entry(NAME, row.owner, paused, row.part, row.version)
    await cast.store.commit(Commit(at=cast.clock.wall(), entries=(change,)))
    cast.restart()
    cast.autonomous = msgspec.structs.replace(HOURLY, goal="the lawn")
    async with open_company(autojump_clock, cast):
        await trio.sleep(2 * HOUR)
        await at_rest(cast)
    it = (await kept(cast))[NAME]
    assert (it.paused, it.text, it.fired) == ("by hand", "the lawn", 1)
    assert len(cast.model.requests) == 1


async def test_settings_that_were_taken_over_count_at_once(
    autojump_clock: Clock,
) -> None:
    cast = ByItself(model=planned(IDLE))
    async with open_company(autojump_clock, cast) as system:
        scheduler = system.find(names.SCHEDULER)
        assert scheduler is not None
        wanted = cast.wanted.pop(NAME)
        scheduler.tell(AppointmentsChanged())
        await trio.sleep(2 * HOUR)
        assert await kept(cast) == {}
        assert cast.model.requests == []
        cast.wanted[NAME] = wanted
        scheduler.tell(AppointmentsChanged())
        await trio.sleep(HOUR + 1)
        await at_rest(cast)
    assert len(cast.model.requests) == 1
