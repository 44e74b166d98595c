"""Proves what of a heartbeat people do not hear, and what a conversation is told."""

from __future__ import annotations

import msgspec

from actors.journal import answers
from actors.journal.answers import ACKNOWLEDGEMENT
from actors.messages.inbound import Inbound, Occasion, TranscriptLine
from actors.messages.state import Postpone
from actors.protocol import Failed
from actors.session.initiative import for_people, is_shown, lane_copy
from runtime.ids import IdSource
from tests.fakes.actors.neighbours import anna, words
from tests.fakes.company.company import TrioClock

ASKED = (TranscriptLine("user", "look"),)


def on(occasion: Occasion, lane: str = "") -> Inbound:
    return msgspec.structs.replace(words("look"), occasion=occasion, lane=lane)


def ids() -> IdSource:
    return IdSource(TrioClock())


def said(inbound: Inbound, text: str) -> answers.Answer:
    reminder = answers.reminder(inbound, anna())
    (delivery,) = reminder.deliveries
    return msgspec.structs.replace(
        reminder,
        settled=("replied", "ok"),
        lines=(*ASKED, TranscriptLine("assistant", text, name="anna")),
        deliveries=(msgspec.structs.replace(delivery, text=text),),
    )


async def test_a_failure_is_silence_to_a_heartbeat_alone() -> None:
    failed = Failed("no model", "model")
    kinds: dict[Occasion, str] = {"heartbeat": "silence", "task": "notice"}
    for occasion, kind in kinds.items():
        answer = answers.failure(on(occasion), ASKED, failed, ("replied", "model"), 0.0)
        (delivery,) = for_people(answer, "anna", ids()).deliveries
        assert delivery.kind == kind


async def test_a_heartbeat_that_is_put_off_says_nothing_of_it() -> None:
    put_off = Postpone(1, 9.0, is_first=True)
    failed = Failed("no model", "model")
    answer = answers.deferral(on("heartbeat"), failed, put_off, 0.0)
    assert answer.deliveries
    assert for_people(answer, "anna", ids()).deliveries == ()


async def test_a_mere_sign_is_no_news_of_what_comes_again() -> None:
    again: tuple[Occasion, ...] = ("cron", "heartbeat")
    for occasion in again:
        answer = for_people(said(on(occasion), ACKNOWLEDGEMENT), "anna", ids())
        assert (answer.deliveries[0].kind, answer.lines) == ("silence", ())
        assert answer.settled == ("replied", "silent")
    task = said(on("task"), ACKNOWLEDGEMENT)
    assert for_people(task, "anna", ids()) == task


async def test_what_a_lane_says_its_conversation_is_told_once() -> None:
    inbound = on("heartbeat", "heartbeat2")
    answer = for_people(said(inbound, "the bill is due"), "anna", ids())
    (told,) = answer.handed
    assert answer.lines == ()
    assert answer.deliveries[0].text == "the bill is due"
    assert (told.occasion, told.lane, told.agent) == ("told", "", "anna")
    assert told.address == inbound.address
    assert told.platform_id == f"{inbound.platform_id}:told:{told.id}"
    known = lane_copy(told, anna())
    assert known.deliveries == ()
    assert known.lines[-1] == TranscriptLine(
        "assistant", "the bill is due", name="anna"
    )


async def test_a_silent_lane_leaves_nothing_behind() -> None:
    inbound = on("heartbeat", "heartbeat2")
    failed = answers.failure(
        inbound, ASKED, Failed("no model", "model"), ("dead", "model"), 0.0
    )
    quiet = for_people(failed, "anna", ids())
    assert (quiet.lines, quiet.handed) == ((), ())


async def test_people_are_not_told_how_a_heartbeat_gets_on() -> None:
    heard: dict[Occasion, bool] = {"heartbeat": False, "task": True}
    for occasion, is_heard in heard.items():
        step = answers.aside(on(occasion), "step1", "1 of 3", "step")
        assert is_shown(step) == is_heard
    question = answers.aside(on("heartbeat"), "ask", "may I?")
    assert is_shown(question)
