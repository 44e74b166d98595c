"""Proves whose word about a tool call counts, and which words are one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from actors.approvals.board import MOST_OPEN, ApprovalBoard
from actors.approvals.permissions import (
    ApprovalRefused,
    ApprovalRuling,
    ApprovalTerms,
    OpenApproval,
    plain_word,
    short_id,
)
from actors.messages.commands import ApprovalDecision
from actors.messages.inbound import Address, DelegationChain
from actors.rules.text.codes import LETTERS
from runtime.actor.ref import ActorRef
from tests.fakes.actors.neighbours import ROOM, words

OWNERS = frozenset({"fake/olga"})
ASKER_MAY = ("read", "write")
TERMS = ApprovalTerms(OWNERS, ASKER_MAY, plain_after=1.0)
SHOWN = 100.0


def waiting(approval_id: str = "3F", **fields: Any) -> OpenApproval:
    given: dict[str, Any] = {
        "id": approval_id,
        "turn_id": "t1",
        "key": "k1",
        "agent": "anna",
        "asker": "fake/zoe",
        "tool": "shell",
        "effect": "run",
        "address": ROOM,
    }
    return OpenApproval(**{**given, **fields})


def board_with(*approvals: OpenApproval) -> ApprovalBoard:
    board = ApprovalBoard()
    session: ActorRef = object()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    for each in approvals:
        board.put(each, session, f"q-{each.id}")
        board.note_shown(f"q-{each.id}", SHOWN)
    return board


def rule(
    board: ApprovalBoard,
    text: str,
    sender: str = "olga",
    decision: Any = None,
    at: float = SHOWN + 1.0,
    **of: Any,
) -> ApprovalRuling | ApprovalRefused | None:
    inbound = words(text, sender_id=sender, **of)
    return board.rule(inbound, decision, at, TERMS)


@given(st.text(), st.sets(st.text(alphabet=LETTERS, min_size=2, max_size=3)))
def test_an_id_is_short_new_and_always_the_same(seed: str, taken: set[str]) -> None:
    made = short_id(seed, taken)
    assert made not in taken
    assert set(made) <= set(LETTERS)
    assert 2 <= len(made) <= 8
    assert short_id(seed, taken) == made


@given(
    effect=st.sampled_from(["read", "write", "run"]),
    is_owner=st.booleans(),
    is_asker=st.booleans(),
)
def test_owners_decide_all_and_the_asker_what_the_settings_say(
    effect: Any, *, is_owner: bool, is_asker: bool
) -> None:
    approval = waiting(effect=effect, asker="fake/zoe" if is_asker else "fake/sam")
    who = "fake/olga" if is_owner else "fake/zoe"
    expected = is_owner or (is_asker and effect in ASKER_MAY)
    assert TERMS.admits(approval, who) is expected


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("yes", True),
        (" OK! ", True),
        ("y", True),
        ("No.", False),
        ("nope", False),
        ("yes please", None),
        ("", None),
        ("know", None),
    ],
)
def test_only_a_bare_yes_or_no_is_one(text: str, *, meaning: bool | None) -> None:
    assert plain_word(text) is meaning


def test_a_plain_word_counts_where_exactly_one_question_stands() -> None:
    one = waiting("3F")
    assert rule(board_with(one), "yes") == ApprovalRuling(one, is_approved=True)
    assert rule(board_with(one), "no") == ApprovalRuling(one, is_approved=False)
    assert rule(board_with(), "yes") is None
    assert rule(board_with(one), "yes", address=Address("fake", "other")) is None
    assert rule(board_with(one), "yes", address=Address("fake", "room", "t")) is None


def test_where_several_stand_a_plain_word_is_answered_with_their_ids() -> None:
    two = board_with(waiting("3F"), waiting("4G", agent="ben", tool="write_file"))
    for decision in (None, ApprovalDecision("", is_approved=True)):
        found = rule(two, "yes", decision=decision)
        assert found == ApprovalRefused(
            "ambiguous",
            "2 requests are open here: 3F (anna, `shell`), 4G (ben, `write_file`). Say"
            " which one: /approve 3F or /deny 3F, for example.",
            "anna",
        )
    assert rule(two, "yes", "sam") is None
    for count, end in (
        (10, "9 (anna, `shell`). Say"),
        (11, "9 (anna, `shell`) and 1 more. Say"),
    ):
        many = board_with(*(waiting(f"{number}") for number in range(count)))
        found = rule(many, "no")
        assert isinstance(found, ApprovalRefused)
        assert end in found.text


@pytest.mark.parametrize("decision", [None, ApprovalDecision("", is_approved=True)])
def test_what_was_written_before_the_question_stood_there_is_no_answer(
    decision: Any,
) -> None:
    board = board_with(waiting())
    before = rule(board, "yes", decision=decision, at=SHOWN - 0.01)
    if decision is None:
        assert before is None
    else:
        assert isinstance(before, ApprovalRefused)
        assert before.reason == "unknown"
    for at in (SHOWN, SHOWN + 0.99):
        early = rule(board, "yes", decision=decision, at=at)
        assert isinstance(early, ApprovalRefused)
        assert early.reason == "too_early"
        assert "/approve 3F" in early.text
    assert rule(board, "yes", "sam", at=SHOWN) is None
    by_id = rule(
        board, "/approve 3F", decision=ApprovalDecision("3F", is_approved=True), at=0
    )
    assert by_id == ApprovalRuling(waiting(), is_approved=True)


def test_a_question_is_shown_once() -> None:
    board = board_with(waiting())
    board.note_shown("q-3F", SHOWN + 50)
    board.note_shown("another", SHOWN)
    assert isinstance(rule(board, "yes"), ApprovalRuling)


def test_a_bystander_s_ok_is_a_word_like_any_other() -> None:
    assert rule(board_with(waiting()), "ok", "sam") is None


@pytest.mark.parametrize(
    ("chat", "sender", "named", "reason"),
    [
        ("room", "olga", "3F", ""),
        ("room", "olga", "", ""),
        ("room", "zoe", "3F", "not_allowed"),
        ("room", "sam", "3F", "not_allowed"),
        ("other", "olga", "3F", "unknown"),
        ("room", "olga", "9Z", "unknown"),
    ],
)
def test_a_command_decides_in_its_chat_if_its_writer_may(
    chat: str, sender: str, named: str, reason: str
) -> None:
    decision = ApprovalDecision(named, is_approved=True, is_lasting=True)
    where = Address("fake", chat, "thread") if named else Address("fake", chat)
    found = rule(board_with(waiting()), "/approve", sender, decision, address=where)
    if reason:
        assert isinstance(found, ApprovalRefused)
        assert found.reason == reason
        assert found.text
    else:
        assert found == ApprovalRuling(waiting(), is_approved=True, is_lasting=True)


def test_what_was_taken_down_is_no_longer_heard() -> None:
    board = board_with(waiting())
    assert list(board.ids) == ["3F"]
    assert board.take(waiting("3F", key="k2")) is None  # another that had its id
    assert board.take(waiting("3F")) is not None
    assert board.take(waiting("3F")) is None
    assert rule(board, "yes") is None


def test_a_board_holds_so_many_and_no_more() -> None:
    board = board_with(*(waiting(str(number)) for number in range(MOST_OPEN)))
    assert board.is_full


@pytest.mark.parametrize(
    ("text", "sender", "of", "agent"),
    [
        ("yes", "olga", {}, "anna"),
        ("/approve 3F", "olga", {}, "anna"),
        ("/approve 3F", "sam", {}, "anna"),  # who says that sam may not
        ("hello", "olga", {}, ""),
        ("yes", "sam", {}, ""),
        ("/new", "olga", {}, ""),
        ("yes", "olga", {"occasion": "said"}, ""),
        ("yes", "olga", {"changed_by": "a hook"}, ""),
        ("yes", "olga", {"chain": DelegationChain(agents=("ben",))}, ""),
    ],
)
def test_an_answer_is_heard_by_the_agent_that_waits_for_it(
    text: str, sender: str, of: dict[str, Any], agent: str
) -> None:
    inbound = words(text, sender_id=sender, **of)
    board = board_with(waiting())
    assert board.agent_waiting_for(inbound, SHOWN + 1.0, TERMS) == agent
    assert ApprovalBoard().agent_waiting_for(inbound, SHOWN + 1.0, TERMS) == ""
