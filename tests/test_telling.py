"""Proves which answers other programs are told of, and by which name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from actors import answers, telling
from actors.answers import Answer
from actors.messages import Line
from actors.notices import Announcer, Subscription
from actors.rules.message_state import PutOff
from runtime.ids import IdSource
from tests.fakes.company import TrioClock
from tests.fakes.furnished import changed
from tests.fakes.neighbours import make_services, words

if TYPE_CHECKING:
    from actors.services import Services

NOTHING = Answer(inbound=words(), settled=("dropped", "not_addressed"))


def services() -> Services:
    announcer = Announcer((Subscription(name="ops"),))
    return changed(make_services(), announcer=announcer)


async def test_a_message_that_is_given_up_is_told_as_a_turn_that_failed() -> None:
    apology = answers.apology(words(), "Sorry.", "poison", IdSource(TrioClock()))
    (entry,) = telling.of_unheard(apology, services())
    assert b"turn.failed" in (entry.body or b"")
    assert b"poison" in (entry.body or b"")


async def test_words_for_nobody_are_no_news_and_a_refusal_is() -> None:
    assert telling.of_unheard(NOTHING, services()) == ()
    refused = answers.notice(words(), "Nobody is here.", ("dropped", "no_agent"))
    (entry,) = telling.of_unheard(refused, services())
    assert b"message.dropped" in (entry.body or b"")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (answers.notice(words(), "/help", ("replied", "command")), None),
        (Answer(inbound=words(), settled=("replied", "ok")), None),
        (
            Answer(
                inbound=words(), settled=("replied", "ok"), lines=(Line("user", "hi"),)
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
                put_off=PutOff(attempts=1, due_at=9.0, is_first=True),
            ),
            None,
        ),
    ],
)
def test_each_end_has_its_name(answer: Answer, what: str | None) -> None:
    assert telling.type_of(answer) == what
