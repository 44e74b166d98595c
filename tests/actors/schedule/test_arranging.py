"""Proves what wishes for later come to, and that the results tell the truth of it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec
import pytest

from actors.config.schedule import SchedulerConfig
from actors.rules.markers.actions import (
    AddHeartbeatItem,
    CancelTask,
    CreateCron,
    CreateHeartbeat,
    RemoveHeartbeatItem,
    Schedule,
    SetHeartbeatInterval,
    UpdateTask,
)
from actors.rules.text.similarity import are_alike
from actors.schedule.booking import AppointmentBook, AppointmentCounts
from actors.schedule.requests import carry_out
from tests.fakes.company.arranging import ZOE

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()


def book(
    counts: AppointmentCounts | None = None, *, is_open: bool = True, **config: Any
) -> AppointmentBook:
    numbers = count(1)
    return AppointmentBook(
        origin=ZOE,
        zone=UTC,
        kept={},
        counts=counts or AppointmentCounts(),
        config=SchedulerConfig(**config),
        now=NOW,
        new_id=lambda: f"{next(numbers)}ABCDEFG",
        is_open=is_open,
    )


def test_a_reminder_is_kept_with_the_chat_it_comes_from() -> None:
    made = book()
    told = carry_out(made, Schedule("call mum", "2026-11-23 09:00"))
    assert (told.kind, told.when) == ("scheduled", "Mon 2026-11-23 09:00 UTC")
    (it,) = made.kept.values()
    assert (it.kind, it.agent, it.address) == ("reminder", "anna", ZOE.address)
    assert it.next_due == NOW + 21 * 3600
    assert made.changed == made.kept


def test_what_repeats_begins_with_the_next_time_that_fits() -> None:
    made = book()
    wish = Schedule("stand up", "2026-11-20 09:00", "weekdays", is_action=True)
    told = carry_out(made, wish)
    assert told.kind == "action_scheduled"
    assert (told.when, told.repeat) == ("Mon 2026-11-23 09:00 UTC", "weekdays")


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (Schedule("x", "tomorrow"), "no time that I can read"),
        (Schedule("x", "in 5 minutes", "sometimes"), "no rule that I can read"),
        (
            Schedule("x", "in 5 minutes", "every 5s"),
            "repeat within 60 seconds",
        ),
        (Schedule("x" * 3000, "in 5 minutes"), "longer than 2000"),
        (CreateCron("once", "x"), "needs a rule"),
        (CreateCron("0 9 * * *", "x", "nobody"), "no agent 'nobody'"),
        (CreateHeartbeat("x", 30, "nobody"), "no agent 'nobody'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(wish: Any, why: str) -> None:
    made = book()
    told = carry_out(made, wish)
    assert told.kind == "refused"
    assert why in told.why
    assert made.changed == {}


def test_nobody_floods_the_calendar() -> None:
    made = book(AppointmentCounts(48, {"anna": 100}))
    wishes = [Schedule(f"thing {n}", "in 5 minutes") for n in range(4)]
    kinds = [carry_out(made, each).kind for each in wishes]
    assert kinds == ["scheduled", "scheduled", "refused", "refused"]
    made = book(AppointmentCounts(0, {"anna": 500}))
    assert "one agent" in carry_out(made, wishes[0]).why
    assert carry_out(book(is_open=False), wishes[0]).kind == "refused"


def test_a_similar_task_is_pointed_out_and_set_all_the_same() -> None:
    made = book()
    carry_out(made, Schedule("water the red roses", "in 5 minutes"))
    carry_out(made, Schedule("call mum", "in 6 minutes"))
    told = carry_out(made, Schedule("Water the roses!", "in 7 minutes"))
    assert told.kind == "scheduled"
    assert [each.what for each in told.similar] == ["water the red roses"]


def test_a_task_is_found_by_the_beginning_of_its_id() -> None:
    made = book()
    carry_out(made, Schedule("one", "in 5 minutes"))
    carry_out(made, Schedule("two", "in 5 minutes"))
    assert carry_out(made, CancelTask("1AB")).kind == "not_found", "too short"
    told = carry_out(made, CancelTask(" [1abc] "))
    assert (told.kind, told.what) == ("cancelled", "one")
    assert made.changed["1ABCDEFG"] is None
    assert carry_out(made, CancelTask("1ABC")).kind == "not_found"


def test_a_beginning_that_two_have_is_refused() -> None:
    made = book()
    made.new_id = iter(("SAME1", "SAME2")).__next__
    carry_out(made, Schedule("one", "in 5 minutes"))
    carry_out(made, Schedule("two", "in 5 minutes"))
    assert "2 tasks begin so" in carry_out(made, CancelTask("SAME")).why


def test_a_change_leaves_the_rest_as_it_was() -> None:
    made = book()
    carry_out(made, Schedule("stand up", "2026-11-23 09:00", "daily"))
    told = carry_out(made, UpdateTask("1ABC", text="sit down"))
    assert (told.kind, told.what) == ("updated", "sit down")
    assert told.when == "Mon 2026-11-23 09:00 UTC"
    told = carry_out(made, UpdateTask("1ABC", repeat="weekly"))
    assert (told.when, told.repeat) == ("Mon 2026-11-23 09:00 UTC", "weekly")
    told = carry_out(made, UpdateTask("1ABC", due="2026-11-25 10:00", repeat="none"))
    assert (told.when, told.repeat) == ("Wed 2026-11-25 10:00 UTC", "")
    assert carry_out(made, UpdateTask("1ABC", due="soon")).kind == "refused"
    assert made.kept["1ABCDEFG"].text == "sit down"


def test_a_heartbeat_has_a_list_and_rests_without_one() -> None:
    made = book()
    told = carry_out(made, SetHeartbeatInterval(45))
    assert (told.kind, told.count) == ("heartbeat_set", 45)
    (it,) = made.kept.values()
    assert it.wakes == 0
    carry_out(made, AddHeartbeatItem("the oven"))
    carry_out(made, AddHeartbeatItem("The  Oven"))
    carry_out(made, AddHeartbeatItem("the garden gate"))
    (it,) = made.kept.values()
    assert it.items == ("the oven", "the garden gate")
    assert it.next_due == NOW + 2700
    assert carry_out(made, RemoveHeartbeatItem("the")).kind == "not_found"
    told = carry_out(made, RemoveHeartbeatItem("garden"))
    assert (told.kind, told.what) == ("heartbeat_removed", "the garden gate")
    carry_out(made, RemoveHeartbeatItem("the oven"))
    (it,) = made.kept.values()
    assert (it.items, it.wakes, it.repeat) == ((), 0, "beat 45")


def test_a_conductor_sets_heartbeats_and_cron_of_others() -> None:
    made = book()
    told = carry_out(made, CreateHeartbeat("watch the shop", 60, "BEN"))
    assert (told.kind, told.count) == ("heartbeat_created", 60)
    told = carry_out(made, CreateCron("every 2h", "count the stock", "ben", "Stock"))
    assert (told.kind, told.what, told.repeat) == ("cron_created", "Stock", "every 2h")
    assert told.when == "Sun 2026-11-22 14:00 UTC"
    assert {it.agent for it in made.kept.values()} == {"ben"}


def test_what_failed_is_begun_anew_by_whoever_changes_it_and_what_rests_rests() -> None:
    made = book()
    carry_out(made, Schedule("one", "in 5 minutes", "daily"))
    ((name, it),) = made.kept.items()
    for paused, after in (("failures", ""), ("person", "person")):
        made.kept[name] = msgspec.structs.replace(it, failures=3, paused=paused)
        carry_out(made, UpdateTask("1ABC", text="two"))
        assert (made.kept[name].failures, made.kept[name].paused) == (0, after)
    assert carry_out(made, UpdateTask("1ABC", repeat="soonish")).kind == "refused"
    assert made.kept[name].repeat == it.repeat


def test_what_comes_every_so_often_comes_for_the_first_time_after_that() -> None:
    made = book()
    told = carry_out(made, CreateCron("every 2h", "count"))
    assert (told.what, told.when) == ("count", "Sun 2026-11-22 14:00 UTC")
    told = carry_out(made, CreateCron("0 13 * * *", "eat", name="Lunch"))
    assert told.when == "Sun 2026-11-22 13:00 UTC"
    assert [it.text for it in made.kept.values()] == ["count", "Lunch: eat"]
    for wish, why in (
        (CreateCron("none", "x"), "needs a rule"),
        (CreateCron("every 2h", "x", "nobody"), "no agent 'nobody'"),
        (CreateCron("sometimes", "x"), ""),
    ):
        told = carry_out(made, wish)
        assert (told.kind, told.what) == ("refused", "x")
        assert why in told.why
    assert len(made.kept) == 2


def test_only_a_few_alike_are_pointed_out_and_no_heartbeat() -> None:
    made = book()
    carry_out(made, CreateHeartbeat("feed the cat", 60))
    told = [carry_out(made, Schedule("feed the cat", "in 5 minutes")) for _ in range(5)]
    assert [len(each.similar) for each in told] == [0, 1, 2, 3, 3]
    assert {each.what for each in told[-1].similar} == {"feed the cat"}


def test_each_chat_and_each_agent_has_a_heartbeat_of_its_own() -> None:
    made = book()
    carry_out(made, CreateHeartbeat("watch", 60))
    carry_out(made, CreateHeartbeat("look", 30))
    carry_out(made, CreateHeartbeat("watch", 60, "ben"))
    made.origin = msgspec.structs.replace(
        ZOE, address=msgspec.structs.replace(ZOE.address, chat="elsewhere")
    )
    carry_out(made, AddHeartbeatItem("the door"))
    found = [(it.agent, it.address.chat, it.text) for it in made.kept.values()]
    assert found == [
        ("anna", "room", "look"),
        ("ben", "room", "watch"),
        ("anna", "elsewhere", ""),
    ]
    assert carry_out(made, CreateHeartbeat("x", 60, "nobody")).kind == "refused"


def test_an_item_is_found_whole_before_by_a_part() -> None:
    made = book()
    for item in ("oven", "the oven door"):
        carry_out(made, AddHeartbeatItem(item))
    told = carry_out(made, RemoveHeartbeatItem(" OVEN "))
    assert (told.kind, told.what) == ("heartbeat_removed", "oven")
    ((name, it),) = made.kept.items()
    assert (it.items, bool(it.next_due)) == (("the oven door",), True)
    made.kept[name] = msgspec.structs.replace(it, text="besides, look")
    carry_out(made, RemoveHeartbeatItem("door"))
    assert made.kept[name].next_due == it.next_due  # it has something to look after


def test_a_list_is_bounded() -> None:
    made = book(max_items=2)
    for item in ("a", "b"):
        carry_out(made, AddHeartbeatItem(item))
    assert "2 items" in carry_out(made, AddHeartbeatItem("c")).why


def test_likeness_goes_by_words_or_in_chinese_by_pairs() -> None:
    assert are_alike("Feed the cat", "feed the black cat")
    assert not are_alike("Feed the cat", "call the bank about the card")
    assert not are_alike("news: report the news", "report the weather")
    assert are_alike("report the news", "report on the news")
    assert are_alike("the and is", "the and is"), "frequent words are better than none"
    assert are_alike("给妈妈打电话", "给妈妈打电话吧")
    assert not are_alike("给妈妈打电话", "明天去买牛奶")
    assert not are_alike("", "")


def test_what_the_settings_have_is_theirs_to_end_and_rests_never() -> None:
    made = book()
    carry_out(made, AddHeartbeatItem("the oven"))
    ((name, it),) = made.kept.items()
    made.kept[name] = msgspec.structs.replace(it, by_settings="beat 30")
    told = carry_out(made, CancelTask(name))
    assert (told.kind, name in made.kept) == ("refused", True)
    assert "[agents.anna.heartbeat]" in told.why
    assert carry_out(made, RemoveHeartbeatItem("oven")).kind == "heartbeat_removed"
    assert made.kept[name].next_due == it.next_due
    assert carry_out(made, SetHeartbeatInterval(60)).kind == "heartbeat_set"
    assert made.kept[name].next_due
