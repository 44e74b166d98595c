"""Answers written at the same time come out one after the other, each once."""

from __future__ import annotations

import random  # noqa: TID251  only Hypothesis's seeded ones are used

from hypothesis import given, strategies as st

from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Address
from actors.outbound.draft_rules import (
    MOST_HELD,
    DraftPiece,
    DraftSpeakers,
    missing_part,
)

PLACE = Address("test", "room")


def draft(agent: str, text: str, *, turn: str = "", about: str = "m1") -> Draft:
    return Draft(
        correlation_id=about,
        turn_id=turn or f"turn-{agent}",
        address=PLACE,
        agent=agent,
        text=text,
    )


def answer(agent: str, text: str, *, about: str = "m1") -> Delivery:
    return Delivery(id="d", correlation_id=about, address=PLACE, agent=agent, text=text)


def said(pieces: list[DraftPiece]) -> str:
    """Write pieces as people would see them: `anna<…>` for a complete answer."""
    return "".join(
        (f"{piece.agent}<" if piece.begins else "")
        + piece.text
        + (">" if piece.ends else "")
        for piece in pieces
    )


def test_an_answer_without_drafts_is_said_whole() -> None:
    assert said(DraftSpeakers().deliver(answer("anna", "hello"))) == "anna<hello>"


def test_drafts_are_shown_as_they_come_and_completed_by_the_delivery() -> None:
    speakers = DraftSpeakers()
    assert said(speakers.draft(draft("anna", "hel"))) == "anna<hel"
    assert speakers.is_speaking
    assert said(speakers.draft(draft("anna", "lo"))) == "lo"
    assert said(speakers.deliver(answer("anna", "hello you"))) == " you>"
    assert not speakers.is_speaking


def test_a_second_speaker_waits_until_the_first_has_finished() -> None:
    speakers = DraftSpeakers()
    pieces = speakers.draft(draft("anna", "one "))
    pieces += speakers.draft(draft("ben", "uno "))
    pieces += speakers.draft(draft("anna", "two"))
    pieces += speakers.deliver(answer("anna", "one two"))
    pieces += speakers.draft(draft("ben", "dos"))
    pieces += speakers.deliver(answer("ben", "uno dos"))
    assert said(pieces) == "anna<one two>ben<uno dos>"


def test_a_whole_answer_waits_while_another_is_being_shown() -> None:
    speakers = DraftSpeakers()
    pieces = speakers.draft(draft("anna", "one "))
    assert speakers.deliver(answer("ben", "uno")) == []
    pieces += speakers.deliver(answer("anna", "one two"))
    assert said(pieces) == "anna<one two>ben<uno>"


def test_the_addressed_agent_speaks_first_even_if_another_drafts_first() -> None:
    speakers = DraftSpeakers(first=("m1", "anna"))
    pieces = speakers.draft(draft("ben", "uno"))
    pieces += speakers.deliver(answer("anna", "ask ben"))
    pieces += speakers.deliver(answer("ben", "uno dos"))
    assert said(pieces) == "anna<ask ben>ben<uno dos>"


def test_giving_up_ends_the_answer_being_shown_and_lets_the_next_speak() -> None:
    speakers = DraftSpeakers()
    pieces = speakers.draft(draft("anna", "one", about="m1"))
    pieces += speakers.deliver(answer("ben", "uno", about="m2"))
    pieces += speakers.give_up("m1")
    assert said(pieces) == "anna<one>ben<uno>"
    assert speakers.give_up("m1") == []


def test_giving_up_forgets_the_drafts_that_waited() -> None:
    speakers = DraftSpeakers()
    pieces = speakers.draft(draft("anna", "one", about="m1"))
    pieces += speakers.draft(draft("ben", "uno", about="m2"))
    pieces += speakers.give_up("m2")
    pieces += speakers.deliver(answer("anna", "one", about="m1"))
    assert said(pieces) == "anna<one>"


def test_giving_up_the_addressed_agent_lets_others_speak() -> None:
    speakers = DraftSpeakers(first=("m1", "anna"))
    pieces = speakers.draft(draft("ben", "uno", about="m2"))
    pieces += speakers.give_up("m1")
    assert said(pieces) == "ben<uno"


def test_drafts_of_a_turn_begun_again_are_not_shown_twice() -> None:
    speakers = DraftSpeakers()
    pieces = speakers.draft(draft("anna", "one two", turn="t1"))
    pieces += speakers.draft(draft("anna", "one ", turn="t2"))
    pieces += speakers.draft(draft("anna", "two three", turn="t2"))
    pieces += speakers.deliver(answer("anna", "one two three"))
    assert said(pieces) == "anna<one two three>"


def test_a_draft_that_comes_after_its_answer_is_not_shown() -> None:
    speakers = DraftSpeakers()
    pieces = speakers.draft(draft("anna", "one"))
    pieces += speakers.deliver(answer("anna", "one two"))
    pieces += speakers.draft(draft("anna", " two"))
    assert said(pieces) == "anna<one two>"


def test_a_speaker_who_never_ends_cannot_hold_the_others_for_ever() -> None:
    speakers = DraftSpeakers()
    pieces = speakers.draft(draft("anna", "one"))
    for _ in range(MOST_HELD + 1):
        pieces += speakers.deliver(answer("ben", "uno"))
    assert said(pieces) == "anna<one>" + "ben<uno>" * (MOST_HELD + 1)


def test_drafts_of_too_many_answers_are_left_out_but_the_answers_are_not() -> None:
    speakers = DraftSpeakers()
    pieces: list[DraftPiece] = []
    for number in range(100):
        pieces += speakers.draft(draft("anna", "x", about=f"m{number}"))
    for number in range(100):
        pieces += speakers.deliver(answer("anna", f"x{number}", about=f"m{number}"))
    assert all(f"<x{number}>" in said(pieces) for number in range(100))


def test_what_is_missing_is_the_rest_or_the_whole_if_it_differs() -> None:
    assert missing_part("", "hello") == "hello"
    assert missing_part("hel", "hello") == "lo"
    assert missing_part(" hello \n", "hello") == ""
    assert missing_part("hello ", "hello") == ""
    assert missing_part(" hello", "hello you") == " you"
    assert missing_part(" hello ", "hello you") == "you"
    assert missing_part("hullo", "hello") == "\n\nhello"


texts = st.lists(st.sampled_from(["a", "b ", "c\n", " d"]), min_size=1, max_size=6)


@given(answers=st.dictionaries(st.sampled_from("xyz"), texts), dice=st.randoms())
def test_every_answer_is_shown_once_and_whole_whatever_the_order(
    answers: dict[str, list[str]], dice: random.Random
) -> None:
    speakers = DraftSpeakers(first=("m1", "x"))
    todo = {agent: list(words) for agent, words in answers.items()}
    shown: list[DraftPiece] = []
    while todo:
        agent = dice.choice(sorted(todo))
        if todo[agent]:
            shown += speakers.draft(draft(agent, todo[agent].pop(0)))
        else:
            del todo[agent]
            shown += speakers.deliver(answer(agent, "".join(answers[agent])))
    shown += speakers.give_up("m1")
    parts = sorted(said(shown).split(">")[:-1])
    assert parts == sorted(
        f"{agent}<{''.join(words)}" for agent, words in answers.items()
    )
