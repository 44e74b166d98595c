"""A heartbeat by the settings looks after its list, for little, and in silence."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.config.agents import AgentConfig
from actors.config.schedule import QuietConfig, SchedulerConfig
from actors.messages.inbound import ModelRequest
from actors.models.limiter import IsWorking
from actors.rules.markers.actions import AddHeartbeatItem, RemoveHeartbeatItem, Schedule
from actors.schedule.rows import SLOT, SlotRecord
from actors.services import NodesSaid
from tests.fakes.company.arranging import arrange, kept
from tests.fakes.company.beating import FIRST, PERIOD, Listed, beating, due
from tests.fakes.company.company import EPOCH, Says, at_rest, heard, open_company

Clock = trio.testing.MockClock

DOMAINS = "## Email\n- bills\n## Garden\n- frost\n## Press\n- news"


def by_domain(request: ModelRequest) -> str | Says:
    """Say something about the domain that is asked for."""
    text = heard(request)
    for domain in ("Email", "Garden", "Press"):
        if f"yours, {domain}" in text:
            return Says(f"{domain} needs you", after=10.0)
    return f"{request.agent} heard {text}"


async def test_the_list_is_read_at_each_beat_and_told_to_the_model(
    autojump_clock: Clock,
) -> None:
    listed = Listed("# Anna\n- the oven\n- [x] the iron")
    cast = beating(listed)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 5)
        listed.text = "- the garden"
        await trio.sleep(PERIOD)
        await at_rest(cast)
    first, second = (each.lines[-1].text for each in cast.model.requests)
    assert first.endswith("Anna:\n- the oven")
    assert second.endswith("- the garden")
    assert listed.read == [Path("personas/anna/HEARTBEAT.md")] * 2
    assert len(cast.platform.said()) == 2
    assert due(cast) == {"fired": 2}


async def test_of_an_empty_list_no_model_is_asked(autojump_clock: Clock) -> None:
    listed = Listed("# Nothing yet\n<!-- - one day -->")
    cast = beating(listed)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 3 * PERIOD + 5)
    assert cast.model.requests == []
    assert due(cast) == {"empty": 4}


async def test_a_list_that_cannot_be_read_is_left_out_and_counted(
    autojump_clock: Clock,
) -> None:
    listed = Listed()
    listed.is_broken = True
    cast = beating(listed)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 5)
        listed.is_broken = False
        await trio.sleep(PERIOD)
    assert due(cast) == {"unread": 1, "fired": 1}


async def test_domains_are_looked_after_at_the_same_time_each_by_a_turn(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(DOMAINS), by_domain)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 15)
        assert cast.model.most_running == 3
        await at_rest(cast)
        said = sorted(cast.platform.said())
        assert said == [
            "anna: Email needs you",
            "anna: Garden needs you",
            "anna: Press needs you",
        ]
        cast.platform.write("tell me more")
        await at_rest(cast)
    known = [line.text for line in cast.model.requests[-1].lines]
    assert sorted(each for each in known if "needs you" in each) == [
        each.removeprefix("anna: ") for each in said
    ], "the conversation of the chat knows what was said in it"
    assert due(cast) == {"fired": 1}


async def test_marks_are_carried_out_for_each_domain(autojump_clock: Clock) -> None:
    def remind(request: ModelRequest) -> str:
        text = heard(request)
        if "yours, Garden" in text:
            return "SCHEDULE: cover the roses | 2023-11-15 06:00 | none\nHEARTBEAT_OK"
        if "yours, Press" in text:
            return "SCHEDULE: read the news | 2023-11-15 08:00 | none"
        return "HEARTBEAT_OK"

    cast = beating(Listed(DOMAINS), remind)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 60)
        await at_rest(cast)
        found = {it.text for it in (await kept(cast)).values() if it.kind == "reminder"}
    assert found == {"cover the roses", "read the news"}


async def test_restarted_amid_a_beat_each_domain_is_done_once(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(DOMAINS), by_domain)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 5)
        assert cast.model.running == 3
    cast.restart()
    async with open_company(autojump_clock, cast):
        await trio.sleep(60)
        await at_rest(cast)
    assert len(cast.platform.said()) == 3
    assert len(set(cast.platform.said())) == 3
    assert await cast.inbox() == {"replied": 6}


async def test_one_domain_that_goes_on_keeps_the_next_beat_away(
    autojump_clock: Clock,
) -> None:
    def slow(request: ModelRequest) -> Says:
        is_slow = "yours, Garden" in heard(request)
        return Says("HEARTBEAT_OK", after=250.0 if is_slow else 1.0)

    cast = beating(Listed(DOMAINS), slow, every=3, unless_busy="never")
    async with open_company(autojump_clock, cast):
        await trio.sleep(100 + 180 + 5)  # the beats of 22:15 and 22:18
        assert due(cast) == {"fired": 1, "busy": 1}


async def test_an_agent_at_work_has_no_heartbeat(autojump_clock: Clock) -> None:
    def slow(request: ModelRequest) -> str | Says:
        is_beat = "Heartbeat" in heard(request)
        return "HEARTBEAT_OK" if is_beat else Says("here I am", after=100.0)

    cast = beating(Listed(), slow)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST - 50)
        cast.platform.write("are you there?", chat="elsewhere")
        await trio.sleep(100)
        assert due(cast) == {"busy": 1}
        await trio.sleep(PERIOD)
        assert due(cast) == {"busy": 1, "fired": 1}
    other = beating(Listed(), slow, unless_busy="chat")
    async with open_company(autojump_clock, other):
        await trio.sleep(PERIOD - 150)
        other.platform.write("are you there?", chat="elsewhere")
        await trio.sleep(300)
        assert due(other) == {"fired": 1}


@pytest.mark.parametrize(("unless", "fired"), [("agent", 1), ("chat", 2)])
async def test_an_agent_at_work_at_another_node_has_no_heartbeat(
    unless: str, fired: int, autojump_clock: Clock
) -> None:
    asked: list[object] = []

    async def said(question: object) -> NodesSaid:
        await trio.lowlevel.checkpoint()
        asked.append(question)
        answers = (b"false", b"true" if len(asked) == 1 else b"false")
        return NodesSaid(answers, ("Node c: is gone.",))

    cast = beating(Listed(), lambda _: "HEARTBEAT_OK", unless_busy=unless)
    cast.duties.ask = said
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + PERIOD + 5)
    assert due(cast) == {"fired": fired} | ({"busy": 1} if fired == 1 else {})
    works = IsWorking(f"{names.sessions('anna')}/")
    assert asked == ([works] * 2 if unless == "agent" else [])


async def test_in_quiet_hours_beats_are_left_out(autojump_clock: Clock) -> None:
    cast = beating(Listed(), lambda _: "HEARTBEAT_OK", quiet=("23:00-01:00",))
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 6 * PERIOD + 5)
    # 22:30, then four in the night, then 01:00 and 01:30.
    assert due(cast) == {"fired": 3, "quiet": 4}
    assert len(cast.model.requests) == 3
    assert cast.platform.said() == []


async def test_moved_out_of_quiet_hours_it_comes_once_at_their_end(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(), lambda _: "HEARTBEAT_OK")
    quiet = QuietConfig(hours=("22:00-00:10",), then="move")
    cast.scheduler = SchedulerConfig(quiet=quiet)
    async with open_company(autojump_clock, cast):
        await trio.sleep(6800)  # 00:06
        assert cast.model.requests == []
        await trio.sleep(400)
    (request,) = cast.model.requests
    assert "due Wed 2023-11-15 00:10" in request.lines[-1].text
    assert due(cast) == {"put_off": 1, "quiet": 3, "fired": 1}


async def test_when_the_days_tokens_are_gone_it_rests_and_somebody_is_told_once(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(), lambda _: "HEARTBEAT_OK", daily_tokens=10)
    cast.scheduler = SchedulerConfig(report_to="fake/office")
    async with open_company(autojump_clock, cast):
        await trio.sleep(6000)  # until 23:53
        assert due(cast) == {"fired": 2, "tokens": 1}
        await trio.sleep(4 * PERIOD)  # until 01:53
        (first, second) = cast.platform.said("office")
    # 5 tokens each: two on the first day, two on the second, and the rest is left out.
    assert len(cast.model.requests) == 4
    assert due(cast) == {"fired": 4, "tokens": 3}
    assert first == second
    assert first.startswith(": ⚠️ anna has used 10 of its 10 tokens a day")
    assert cast.platform.said() == []


async def test_a_task_is_put_off_until_there_are_tokens_again(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(""), lambda _: "done", daily_tokens=5)
    async with open_company(autojump_clock, cast) as system:
        first = Schedule("sum up", "in 2 minutes", is_action=True)
        second = Schedule("count", "in 5 minutes", is_action=True)
        await arrange(system, cast, first, second)
        await trio.sleep(3600)
        assert len(cast.model.requests) == 1
        await trio.sleep(3600)
        await at_rest(cast)
    assert len(cast.model.requests) == 2
    assert due(cast, "task") == {"fired": 2, "put_off": 1}


async def test_what_is_due_at_the_same_time_shares_the_days_tokens(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(""), lambda _: Says("done", after=30.0), daily_tokens=10)
    async with open_company(autojump_clock, cast) as system:
        wishes = [Schedule(f"sum {x}", "in 2 minutes", is_action=True) for x in "abcde"]
        await arrange(system, cast, *wishes)
        await trio.sleep(3600)
        # 5 tokens each. Of the first nobody knew that, so the others came later.
        assert len(cast.model.requests) == 2
        await trio.sleep(24 * 3600)
        await at_rest(cast)
    assert len(cast.model.requests) == 4
    assert due(cast, "task")["fired"] == 4


async def test_tokens_are_added_up_anew_after_a_restart(autojump_clock: Clock) -> None:
    cast = beating(Listed(), lambda _: "HEARTBEAT_OK", daily_tokens=5)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 60)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await trio.sleep(PERIOD)
        assert len(cast.model.requests) == 1
        assert len(cast.platform.said()) == 1, "told, in the chat of the heartbeat"


async def test_few_words_beside_the_control_word_are_not_said(
    autojump_clock: Clock,
) -> None:
    answers = iter(
        (
            "I looked at the oven: all is well.\n\n**HEARTBEAT_OK**",
            "HEARTBEAT_OK - nothing new",
            "`[HEARTBEAT_OK]`",
            "The oven is on fire! " * 20 + "\nHEARTBEAT_OK",
            "The oven is cold.",
        )
    )
    cast = beating(Listed(), lambda _: next(answers))
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 3 * PERIOD - 5)
        assert cast.platform.said() == []
        await trio.sleep(2 * PERIOD)
        await at_rest(cast)
    fire, cold = cast.platform.said()
    assert fire == "anna: " + ("The oven is on fire! " * 20).strip()
    assert cold == "anna: The oven is cold."
    assert [each for each in cast.platform.shown if not hasattr(each, "reply_id")] == []


async def test_a_beat_that_fails_disturbs_nobody_until_it_is_paused(
    autojump_clock: Clock,
) -> None:
    def broken(_: ModelRequest) -> Says:
        return Says(error=RuntimeError("no model today"))

    cast = beating(Listed(), broken)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 2 * PERIOD + 300)
        assert cast.platform.said() == []
        await trio.sleep(PERIOD)
        await at_rest(cast)
        (it,) = (await kept(cast)).values()
    (told,) = cast.platform.said()
    assert "failed 3 times in a row" in told
    assert it.paused == "failures"
    assert due(cast) == {"fired": 3, "paused": 1}


async def test_what_people_put_on_the_list_comes_on_top_of_the_file(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed("## Garden\n- frost"))
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, AddHeartbeatItem("garden: snails"))
        assert len(await kept(cast)) == 1, "it is the same heartbeat"
        await trio.sleep(FIRST + 60)
        text = cast.model.requests[-1].lines[-1].text
        assert text.endswith("Garden:\n- frost\n- snails")
        await arrange(system, cast, RemoveHeartbeatItem("snails"))
        await trio.sleep(PERIOD)
    assert cast.model.requests[-1].lines[-1].text.endswith("Garden:\n- frost")


async def test_the_settings_take_a_heartbeat_back_but_not_what_people_asked_for(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed())
    async with open_company(autojump_clock, cast):
        (before,) = (await kept(cast)).values()
        assert (before.by_settings, before.person) == ("beat 30", "fake/zoe")
    cast.agents["anna"] = AgentConfig()
    cast.restart()
    async with open_company(autojump_clock, cast):
        assert await kept(cast) == {}
    cast.agents = beating(Listed()).agents
    cast.restart()
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, AddHeartbeatItem("the cat"))
    cast.agents["anna"] = AgentConfig()
    cast.restart()
    async with open_company(autojump_clock, cast):
        (after,) = (await kept(cast)).values()
    assert (after.by_settings, after.items) == ("", ("the cat",))


async def test_another_period_in_the_settings_counts_from_the_next_start(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed())
    async with open_company(autojump_clock, cast):
        (name,) = await kept(cast)
    anna = cast.agents["anna"]
    beat = msgspec.structs.replace(anna.heartbeat, every=60)
    cast.agents["anna"] = msgspec.structs.replace(anna, heartbeat=beat)
    cast.restart()
    async with open_company(autojump_clock, cast):
        ((same, it),) = (await kept(cast)).items()
    assert (same, it.repeat, it.by_settings) == (name, "beat 60", "beat 60")
    assert it.next_due == 1_700_002_800.0  # 23:00


async def test_stop_ends_what_goes_on_beside_the_conversation(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(DOMAINS), by_domain)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 5)
        cast.platform.write("/stop", sender="eve")
        await trio.sleep(1)
        assert cast.model.running == 3, "they are not hers"
        cast.platform.write("/stop", sender="zoe")
        await trio.sleep(1)
        assert cast.model.running == 0
        await at_rest(cast)
        counts = await cast.inbox()
    assert counts == {"cancelled": 3, "replied": 2}
    assert [each for each in cast.platform.said() if "needs you" in each] == []


async def test_the_history_of_slots_has_each_domain_and_what_was_put_off(
    autojump_clock: Clock,
) -> None:
    cast = beating(Listed(DOMAINS), by_domain)
    quiet = QuietConfig(hours=("22:00-22:40",), then="move")
    cast.scheduler = SchedulerConfig(quiet=quiet)
    async with open_company(autojump_clock, cast):
        await trio.sleep(FIRST + 700)
        await at_rest(cast)
    rows = await cast.store.records_since(SLOT, 0.0)
    found = [msgspec.json.decode(row.body, type=SlotRecord) for row in rows]
    first, *parts = found
    assert (first.outcome, first.reason, first.due) == (
        "put_off",
        "quiet",
        EPOCH + FIRST,
    )
    assert {each.outcome for each in parts} == {"fired"}
    assert {each.due for each in parts} == {EPOCH + FIRST + 600}
    assert len({each.message for each in parts}) == 3
    name = first.appointment
    assert sorted(row.id for row in rows[1:]) == [
        f"{name}@1700001600",
        f"{name}@1700001600#2",
        f"{name}@1700001600#3",
    ]
