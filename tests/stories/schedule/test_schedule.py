"""What was promised for later happens once, when it is due, in the chat it is from."""

from __future__ import annotations

import trio
import trio.testing

from actors.config.schedule import SchedulerConfig
from actors.errors import ModelBusyError
from actors.messages.state import RetryPolicy
from actors.rules.markers.actions import (
    AddHeartbeatItem,
    CancelTask,
    CreateCron,
    Delegation,
    SaveFact,
    Schedule,
    UpdateTask,
)
from actors.schedule.messages import origin_of, wishes_of
from actors.schedule.rows import listed
from connectors.config.checks import find_zone
from tests.fakes.actors.neighbours import anna, words
from tests.fakes.company.arranging import arrange, kept
from tests.fakes.company.company import Cast, FakeModel, Says, at_rest, open_company
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

# The mock clock's zero: Tue 2023-11-14 22:13:20 UTC.
ROSES = Schedule("water the roses", "in 20 minutes")
TASK = Schedule("sum up the news", "2023-11-14 23:00", is_action=True)


async def test_a_reminder_is_said_when_it_is_due_and_is_over(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        (told,) = await arrange(system, cast, ROSES)
        assert (told.kind, told.what) == ("scheduled", "water the roses")
        assert told.when == "Tue 2023-11-14 22:33:20 UTC"
        await trio.sleep(1199)
        assert cast.platform.said() == []
        await trio.sleep(2)
        await at_rest(cast)
        assert cast.platform.said() == ["anna: ⏰ water the roses"]
        assert cast.platform.deliveries[0].reply_to == ""
        assert await kept(cast) == {}
        cast.platform.write("what was that?")
        await at_rest(cast)
    before = [line.text for line in cast.model.requests[0].lines]
    assert before[1] == "⏰ water the roses"
    assert await cast.inbox() == {"replied": 2}


async def test_a_task_is_done_by_the_agent_behind_everybody_else(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _: "all is quiet"))
    async with open_company(autojump_clock, cast) as system:
        (told,) = await arrange(system, cast, TASK)
        assert told.kind == "action_scheduled"
        await trio.sleep(3000)
        rows = list(cast.store._rows.inbox.values())
    assert cast.platform.said() == ["anna: all is quiet"]
    assert [(row.priority, row.reason) for row in rows] == [(10, "ok"), (10, "told")]
    (request,) = cast.model.requests
    text = request.lines[-1].text
    assert "Task, set by zoe, due Tue 2023-11-14 23:00 UTC." in text
    assert text.endswith("sum up the news")


async def test_a_slot_is_named_by_its_appointment_and_its_time(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, ROSES)
        (name,) = await kept(cast)
        await trio.sleep(1300)
        (row,) = cast.store._rows.inbox.values()
    assert row.platform_id == f"{name}@1700001200"


async def test_what_is_cancelled_or_moved_does_not_come(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, ROSES, Schedule("feed the cat", "in 30 minutes"))
        by_text = {it.text: name for name, it in (await kept(cast)).items()}
        roses, cat = by_text["water the roses"], by_text["feed the cat"]
        results = await arrange(
            system,
            cast,
            CancelTask(roses[:8]),
            UpdateTask(cat[:8], due="in 2 hours", text="feed both cats"),
            CancelTask("nothing"),
        )
        assert [each.kind for each in results] == ["cancelled", "updated", "not_found"]
        await trio.sleep(3600)
        assert cast.platform.said() == []
        await trio.sleep(3700)
        await at_rest(cast)
    assert cast.platform.said() == ["anna: ⏰ feed both cats"]


async def test_nobody_reaches_the_tasks_of_others(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, ROSES)
        (name,) = await kept(cast)
        (told,) = await arrange(
            system, cast, CancelTask(name), scope="person:fake/eve", person="fake/eve"
        )
        assert told.kind == "not_found"
        assert list(await kept(cast)) == [name]


async def test_a_heartbeat_looks_after_its_list_in_silence_of_the_past(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("hello")
        await at_rest(cast)
        await arrange(system, cast, AddHeartbeatItem("the oven"))
        await trio.sleep(1800)
        await at_rest(cast)
    beat = cast.model.requests[-1]
    assert len(beat.lines) == 1, "no history: it must stay cheap"
    assert beat.lines[0].text.endswith("- the oven")
    assert "due Tue 2023-11-14 22:30 UTC" in beat.lines[0].text


async def test_a_cron_of_another_agent_is_heard_where_it_was_set(
    autojump_clock: Clock,
) -> None:
    cast = Cast(agents={**Cast().agents, "ben": Cast().agents["anna"]})
    async with open_company(autojump_clock, cast) as system:
        cron = CreateCron("0 23 * * 1-5", "greet", "Ben")
        (told,) = await arrange(system, cast, cron)
        assert (told.kind, told.when) == ("cron_created", "Tue 2023-11-14 23:00 UTC")
        await trio.sleep(3000)
        await at_rest(cast)
    (line,) = cast.platform.said()
    assert line.startswith("ben: ben heard (Cron, set by zoe")


async def test_nothing_is_set_or_done_when_it_is_off(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, ROSES)
    cast.restart()
    cast.scheduler = SchedulerConfig(is_on=False)
    async with open_company(autojump_clock, cast) as system:
        (told,) = await arrange(system, cast, ROSES)
        assert told.kind == "refused"
        await trio.sleep(3600)
    assert cast.platform.said() == []
    assert len(await kept(cast)) == 1


async def test_what_came_due_while_it_stood_is_said_once_and_late(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, ROSES)
    for _ in range(2):
        cast.restart()
        await trio.sleep(1500)
        async with open_company(autojump_clock, cast):
            await trio.sleep(5)
            await at_rest(cast)
    assert cast.platform.said() == ["anna: ⏰ water the roses"]


async def test_a_reminder_may_be_worded_by_the_agent(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(lambda _: "Your roses are thirsty."))
    cast.scheduler = SchedulerConfig(reminders="worded")
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, ROSES)
        await trio.sleep(1300)
        await at_rest(cast)
    assert cast.platform.said() == ["anna: Your roses are thirsty."]
    assert "in your own words" in cast.model.requests[0].lines[-1].text


async def test_nothing_that_is_due_is_a_command_or_a_yes(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _: "done"))
    async with open_company(autojump_clock, cast) as system:
        task = Schedule("/stop", "in 3 minutes", is_action=True)
        await arrange(system, cast, Schedule("/help", "in 2 minutes"), task)
        await trio.sleep(600)
        await at_rest(cast)
    assert cast.platform.said() == ["anna: ⏰ /help", "anna: done"]


async def test_tasks_are_listed_for_their_owner_only(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, TASK, ROSES, AddHeartbeatItem("the oven"))
        ids = {it.kind: name[:6] for name, it in (await kept(cast)).items()}
        lines = await listed(cast.store, "person:fake/zoe", find_zone)
        assert await listed(cast.store, "person:fake/eve", find_zone) == ()
        cast.platform.write("/tasks")
        await at_rest(cast)
        cast.platform.write("/tasks", sender="eve")
        await at_rest(cast)
    told, other = cast.platform.said()
    assert told == ": " + "\n".join(lines)
    assert other == ": No tasks here; /queue shows what waits for an answer."
    assert lines == (
        (
            f"{ids['heartbeat']} heartbeat · Tue 2023-11-14 22:30 UTC · every 30m"
            " · the oven"
        ),
        f"{ids['reminder']} reminder · Tue 2023-11-14 22:33:20 UTC · water the roses",
        f"{ids['task']} task · Tue 2023-11-14 23:00 UTC · sum up the news",
    )


async def test_without_a_scheduler_wishes_come_to_nothing_and_are_told_so(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        (told,) = await arrange(system, Cast(), ROSES)
        assert await arrange(system, Cast()) == ()
    assert (told.kind, told.why[:6]) == ("refused", "nobody")


def test_wishes_come_from_where_the_answer_goes() -> None:
    group = words("later", is_direct=False)
    origin = origin_of(group, anna(), "fake/other")
    assert origin.scope == "chat:fake/room/"
    assert (origin.person, origin.agent) == ("fake/other", "anna")
    assert origin_of(words("later"), anna()).scope == "person:fake/zoe"
    actions = (SaveFact("x", "y"), ROSES, Delegation("ben", "z"), CancelTask("a"))
    assert wishes_of(actions) == (ROSES, CancelTask("a"))


async def test_a_heartbeat_that_finds_nothing_is_not_heard_of(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _: "**HEARTBEAT_OK**"))
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, AddHeartbeatItem("the oven"))
        await trio.sleep(4000)
        await at_rest(cast)
        assert len(cast.model.requests) == 2
        assert cast.platform.said() == []
        cast.platform.write("hello")
        await at_rest(cast)
    assert len(cast.model.requests[-1].lines) == 1, "no trace in the conversation"


async def test_a_task_that_fails_is_tried_again_and_done_once(
    autojump_clock: Clock,
) -> None:
    full = Says(error=ModelBusyError("full"))  # three times are one turn
    answers = iter((full, full, full, Says("here are the news")))
    cast = Cast(model=FakeModel(lambda _: next(answers)))
    cast.retries = RetryPolicy(attempts=3, first_wait=60.0)
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, TASK)
        await trio.sleep(4000)
        await at_rest(cast)
    waiting, done = cast.platform.said()
    assert "I will try again in" in waiting
    assert done == "anna: here are the news"
    reasons = [row.reason for row in cast.store._rows.inbox.values()]
    assert reasons == ["ok", "told"]
