"""Proves which answers other programs are told of, and by which name."""

from __future__ import annotations

import pytest

from actors.journal import answers, notices as telling
from actors.journal.answers import Answer
from actors.journal.notices import Announcer, Subscription
from actors.messages.inbound import TranscriptLine
from actors.messages.state import Postpone
from actors.services import Services
from runtime.ids import IdSource
from tests.fakes.actors.neighbours import make_services, words
from tests.fakes.company.company import TrioClock
from tests.fakes.company.furnished import changed

NOTHING = Answer(inbound=words(), settled=("dropped", "not_addressed"))


def services() -> Services:
    announcer = Announcer((Subscription(name="ops"),))
    return changed(make_services(), announcer=announcer)


async def test_a_message_that_is_given_up_is_told_as_a_turn_that_failed() -> None:
    apology = answers.apology(words(), "Sorry.", "poison", IdSource(TrioClock()))
    (entry,) = telling.of_unanswered(apology, services())
    assert b"turn.failed" in (entry.body or b"")
    assert b"poison" in (entry.body or b"")


async def test_words_for_nobody_are_no_news_and_a_refusal_is() -> None:
    assert telling.of_unanswered(NOTHING, services()) == ()
    refused = answers.notice(words(), "Nobody is here.", ("dropped", "no_agent"))
    (entry,) = telling.of_unanswered(refused, services())
    assert b"message.dropped" in (entry.body or b"")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (answers.notice(words(), "/help", ("replied", "command")), None),
        (Answer(inbound=words(), settled=("replied", "ok")), None),
        (
            Answer(
                inbound=words(),
                settled=("replied", "ok"),
                lines=(TranscriptLine("user", "hi"),),
            ),
            "turn.finished",
        ),
        (Answer(inbound=words(), settled=("cancelled", "stopped")), "turn.cancelled"),
        (
            answers.notice(words(), "full", ("dropped", "busy"), "busy"),
            "message.dropped",
        ),
        (
            answers.notice(words(), "down", ("replied", "model"), "unavailable"),
            "turn.failed",
        ),
        (
            Answer(
                inbound=words(),
                settled=("replied", "model"),
                put_off=Postpone(attempts=1, due_at=9.0, is_first=True),
            ),
            None,
        ),
    ],
)
def test_each_end_has_its_name(answer: Answer, what: str | None) -> None:
    assert telling.type_of(answer) == what
