"""Proves what one commit says of a message: answer, history, work for others."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.config.limits import LimitsConfig
from actors.journal import answers, commits
from actors.journal.history import History
from actors.messages.deliveries import Abilities, Owed
from actors.messages.inbound import DelegationChain, Inbound, TranscriptLine
from actors.protocol import Failed, Finished
from actors.rules.markers.actions import Delegation
from actors.transport import Account
from tests.fakes.actors.neighbours import anna, make_services, words
from tests.fakes.company.furnished import changed

STREAM = "anna/fake/room//zoe"
PERSONA = anna(delegates=("ben", "carl"))


def reply(
    text: str, inbound: Inbound | None = None, max_delegations: int = 16
) -> answers.Answer:
    services = make_services(limits=LimitsConfig(max_delegations=max_delegations))
    asked = (TranscriptLine("user", "hello"),)
    return answers.reply(inbound or words(), asked, Finished(text), PERSONA, services)


async def test_an_answer_settles_its_message_with_all_that_comes_of_it() -> None:
    answer = reply("yes [DELEGATE:ben] look [/DELEGATE]")
    history = History(STREAM, 20)
    history.version = 3
    commit = commits.as_exchange(answer, history, make_services())
    (handed,) = answer.handed
    assert [row.id for row in commit.accepts] == [handed.id]
    assert [row.inbox_id for row in commit.settles] == ["m1"]
    assert [row.delivery_id for row in commit.deliveries] == ["m1:0"]
    assert [(row.stream, row.expected) for row in commit.appends] == [(STREAM, 3)]
    assert [row.kind for row in commit.records] == ["audit", "conversation"]


async def test_work_is_handed_on_with_the_reply_address_and_the_chain() -> None:
    answer = reply("yes [DELEGATE:ben] look [/DELEGATE]")
    (handed,) = answer.handed
    assert handed.address == words().address
    assert handed.correlation_id == "m1"
    assert handed.chain.agents == ("anna", "ben")
    assert (handed.agent, handed.sender_name, handed.text) == ("ben", "anna", "look")
    assert answer.deliveries[0].answers_left == 1


async def test_handed_on_again_after_a_crash_it_is_the_same_message() -> None:
    first = reply("[DELEGATE:ben] look [/DELEGATE]").handed[0]
    again = reply("[DELEGATE:ben] look [/DELEGATE]").handed[0]
    assert first.id != again.id
    assert first.platform_id == again.platform_id == "m1>0"


async def test_more_tasks_than_allowed_are_refused_in_words() -> None:
    text = "yes " + "[DELEGATE:ben] x [/DELEGATE]" * 3
    answer = reply(text, max_delegations=2)
    assert len(answer.handed) == 2
    assert "one message may cause 2 delegations" in answer.deliveries[-1].text
    assert answer.deliveries[0].answers_left == 3


async def test_a_delegate_may_hand_on_only_its_share() -> None:
    inbound = words(chain=DelegationChain(("carl", "anna"), left=3), agent="anna")
    text = "yes [DELEGATE:ben] x [/DELEGATE][DELEGATE:ben] y [/DELEGATE]"
    answer = reply(text, inbound)
    assert [each.chain.left for each in answer.handed] == [0, 0]


async def test_a_failure_is_told_and_remembered_as_such() -> None:
    asked = (TranscriptLine("user", "hello"),)
    late = answers.failure(
        words(),
        asked,
        Failed("sorry", "timeout", "timeout"),
        ("replied", "timeout"),
        0.0,
    )
    broken = answers.failure(
        words(), asked, Failed("sorry", "bug"), ("dead", "bug"), 0.0
    )
    assert [late.lines[-1].text, broken.lines[-1].text] == [
        answers.TIMED_OUT,
        answers.FAILED,
    ]
    assert late.settled == ("replied", "timeout")
    assert late.deliveries[0].kind == "notice"


@pytest.mark.parametrize(
    ("wait", "told"),
    [
        (300.0, "soon"),
        (301.0, "Please ask again in 6 minutes."),
        (3_600.0, "Please ask again in 1 hour."),
        (5_000.0, "Please ask again in 2 hours."),
    ],
)
async def test_who_is_told_when_to_ask_again_is_not_told_too_early(
    wait: float, told: str
) -> None:
    failed = Failed("sorry", "model", advice="soon", not_before=9.0 + wait)
    answer = answers.failure(words(), (), failed, ("dead", "model"), 9.0)
    assert answer.deliveries[0].text == f"sorry\n\n{told}"


async def test_every_way_to_end_a_copied_message_announces_the_copies() -> None:
    inbound = words(others=2)
    ends = [
        reply("yes", inbound),
        reply("[DELEGATE:ben] never closed", inbound),
        answers.notice(inbound, "busy", ("dropped", "busy")),
        answers.cancelled(inbound, ()),
        answers.failure(inbound, (), Failed("sorry", "bug"), ("dead", "bug"), 0.0),
    ]
    assert [each.deliveries[0].answers_left for each in ends] == [2] * 5


async def test_a_message_written_down_is_read_back_as_it_was() -> None:
    inbound = words(others=1, chain=DelegationChain(("anna", "ben"), left=2))
    row = commits.as_accept(inbound, 5.0)
    assert msgspec.json.decode(row.body, type=type(inbound)) == inbound


THOUGHTFUL = '{"text": "Spoken", "thought": "I wondered", "actions": ["reply"]}'


@pytest.mark.parametrize("shows", [True, False])
async def test_a_thought_goes_only_to_those_who_show_it(*, shows: bool) -> None:
    account = Account(Abilities(shows_thoughts=shows))
    services = changed(make_services(), accounts={"fake": account})
    persona = anna(json_answers=True)
    answer = answers.reply(words(), (), Finished(THOUGHTFUL), persona, services)
    (said,) = answer.deliveries
    assert said.text == "Spoken"
    known = ("I wondered", ("REPLY",)) if shows else ("", ())
    assert (said.thought, said.actions) == known


@given(
    text=st.text(max_size=30),
    tasks=st.lists(st.sampled_from(["ben", "carl", "anna", "nobody"]), max_size=12),
    by_tool=st.lists(st.sampled_from(["ben", "anna"]), max_size=3),
    others=st.integers(0, 3),
)
async def test_an_answer_announces_exactly_what_will_come(
    text: str, tasks: list[str], by_tool: list[str], others: int
) -> None:
    tags = "".join(f"[DELEGATE:{name}] x [/DELEGATE]" for name in tasks)
    finished = Finished(
        f"ok {text}{tags}", tuple(Delegation(name, "x") for name in by_tool)
    )
    inbound = words(others=others)
    answer = answers.reply(inbound, (), finished, PERSONA, make_services())
    owed = Owed()
    verdicts = [owed.count(each) for each in answer.deliveries]
    for number in range(2, 2 + others + len(answer.handed)):
        later = words(number=number, correlation_id="m1")
        notice = answers.notice(later, "x", ("replied", "ok"))
        verdicts.append(owed.count(notice.deliveries[0]))
    assert verdicts == [False] * (len(verdicts) - 1) + [True]
    assert all(each.text.strip() for each in answer.deliveries)


@pytest.mark.parametrize("text", ["NO_REPLY", "**IGNORE**", "[DONE].", "heartbeat_ok"])
async def test_an_answer_of_control_words_is_silence(text: str) -> None:
    answer = reply(text, words(others=2))
    (said,) = answer.deliveries
    assert (said.kind, said.text, said.answers_left) == ("silence", "", 2)
    assert answer.settled == ("replied", "silent")
    assert answer.lines[-1].text in {"NO_REPLY", "IGNORE", "DONE", "HEARTBEAT_OK"}


async def test_what_means_something_beside_a_control_word_is_said() -> None:
    assert reply("The disk is full. HEARTBEAT_OK").deliveries[0].text == (
        "The disk is full."
    )
    assert reply("\N{BULLET} HEARTBEAT_OK").deliveries[0].kind == "silence"


async def test_what_is_not_carried_out_is_told() -> None:
    answer = reply("I will.\nPURGE_FACTS")
    assert [each.text for each in answer.deliveries] == [
        "I will.",
        "PURGE_FACTS was not carried out: this agent may not do that.",
    ]
    assert reply("[MEMORY:a] b [/MEMORY]").deliveries[0].text == "✓"


async def test_a_task_is_shown_without_its_marks() -> None:
    answer = reply("[DELEGATE:ben] a <think>b</think> c [/DELEGATE]")
    assert answer.deliveries[0].text == "@ben a c"
