"""Proves what each busy policy does with a message; one test for each line of it."""

from __future__ import annotations

from typing import Any

import msgspec

from actors.messages.busy_policies import BusyPolicy, BusySettings
from actors.session.queue import (
    MOST_IN_A_ROW,
    Arrival,
    BeginTurn,
    CancelCurrent,
    Debounce,
    DebounceElapsed,
    DropWaiting,
    InjectMessages,
    KeepWaiting,
    MembersSettled,
    RefuseMessage,
    RoundStarting,
    SessionQueue,
    StopRequested,
    TurnSettled,
)


def says(name: str, sender: str = "zoe", **fields: Any) -> Arrival:
    """Make an ordinary message."""
    heard = Arrival(name, whose=(sender,), may_join=True, size=10)
    return msgspec.structs.replace(heard, **fields)


def busy(
    policy: BusyPolicy, *waiting: str, cap: int = 3, **fields: Any
) -> SessionQueue:
    buffering = msgspec.structs.replace(BusySettings(policy), **fields)
    queue = SessionQueue(cap, buffering)
    assert queue.on(says("now")) == [BeginTurn("now", 1)]
    for name in waiting:
        queue.on(says(name))
    return queue


# --- follow-up ----------------------------------------------------------------------


def test_what_came_during_a_turn_is_answered_by_one_turn() -> None:
    queue = busy("followup", "a", "b", "c")
    assert queue.on(TurnSettled("now", 1)) == [
        BeginTurn("a", 2, ("b", "c"), "numbered")
    ]
    assert queue.members == ("a", "b", "c")
    assert queue.on(TurnSettled("a", 2)) == []
    assert queue.is_idle


def test_words_of_another_join_nobody_and_keep_their_place() -> None:
    queue = busy("followup", "a", cap=9)
    queue.on(says("y1", "yan"))
    queue.on(says("b"))
    queue.on(says("y2", "yan"))
    assert queue.on(TurnSettled("now", 1)) == [BeginTurn("y1", 2, ("y2",), "numbered")]
    assert queue.on(TurnSettled("y1", 2)) == [BeginTurn("a", 3, ("b",), "numbered")]


def test_what_cannot_join_keeps_those_behind_it_from_joining() -> None:
    queue = busy("followup", "a")
    queue.on(says("task", may_join=False))
    queue.on(says("b"))
    assert queue.on(TurnSettled("now", 1)) == [BeginTurn("a", 2)]
    assert queue.on(TurnSettled("a", 2)) == [BeginTurn("task", 3)]
    assert queue.on(TurnSettled("task", 3)) == [BeginTurn("b", 4)]


def test_no_more_is_joined_than_one_turn_may_read() -> None:
    queue = busy("followup", "a", "b", "c", most_chars=25)
    assert queue.on(TurnSettled("now", 1)) == [BeginTurn("a", 2, ("b",), "numbered")]


def test_another_scope_is_as_another_sender() -> None:
    queue = busy("followup", "a")
    queue.on(says("b", whose=("zoe", "other scope")))
    assert queue.on(TurnSettled("now", 1)) == [BeginTurn("a", 2)]


# --- debounce -----------------------------------------------------------------------


def gathering(cap: int = 3) -> SessionQueue:
    return SessionQueue(
        cap, BusySettings("followup", debounce=2.0, longest_debounce=3.0)
    )


def test_quick_words_are_gathered_until_there_is_silence() -> None:
    queue = gathering()
    assert queue.on(says("a", now=0.0)) == [Debounce(1, 2.0)]
    assert queue.on(says("b", now=0.5)) == [Debounce(2, 2.0)]
    assert queue.on(DebounceElapsed(1)) == []
    assert not queue.is_idle
    assert queue.on(DebounceElapsed(2)) == [BeginTurn("a", 1, ("b",), "lines")]


def test_nobody_gathers_for_ever() -> None:
    queue = gathering()
    queue.on(says("a", now=0.0))
    assert queue.on(says("b", now=1.9)) == [Debounce(2, 3.0 - 1.9)]
    assert queue.on(says("c", now=3.5)) == [Debounce(3, 0.0)]


def test_a_picture_waits_for_no_more_words_and_takes_those_before_along() -> None:
    assert gathering().on(says("p", is_media=True)) == [BeginTurn("p", 1)]
    queue = gathering()
    queue.on(says("a"))
    assert queue.on(says("p", is_media=True)) == [BeginTurn("a", 1, ("p",), "lines")]


def test_words_of_another_wait_behind_those_that_are_gathered() -> None:
    queue = gathering()
    queue.on(says("a"))
    assert queue.on(says("y", "yan")) == [KeepWaiting("y", ahead=1)]
    assert queue.on(says("b")) == [Debounce(2, 2.0)]
    assert queue.on(DebounceElapsed(2)) == [BeginTurn("a", 1, ("b",), "lines")]
    assert queue.on(TurnSettled("a", 1)) == [BeginTurn("y", 2)]


def test_more_than_may_wait_ends_the_gathering() -> None:
    queue = gathering(cap=2)
    queue.on(says("a"))
    queue.on(says("b"))
    effects = queue.on(says("c"))
    assert effects == [BeginTurn("a", 1, ("b",), "lines"), KeepWaiting("c", 1)]


def test_a_stop_ends_the_gathering_of_its_sender_only() -> None:
    queue = gathering()
    for each in (says("a"), says("y", "yan"), says("b")):
        queue.on(each)
    effects = queue.on(StopRequested(frozenset("ab")))
    assert effects == [DropWaiting(("a", "b")), BeginTurn("y", 1)]
    assert queue.on(DebounceElapsed(2)) == []


# --- overflow -----------------------------------------------------------------------


def test_the_oldest_of_the_same_sender_makes_room() -> None:
    queue = busy("followup", "a", "b", cap=2, overflow="oldest")
    effects = queue.on(says("c"))
    assert effects == [DropWaiting(("a",), "overflow"), KeepWaiting("c", 2)]
    # Who has nothing waiting finds room, up to twice as many in all.
    assert queue.on(says("y", "yan")) == [KeepWaiting("y", 3)]
    assert queue.on(says("x", "max")) == [KeepWaiting("x", 4)]
    assert queue.on(says("i", "ida")) == [RefuseMessage("i")]


def test_what_is_too_much_is_cut_short_and_only_then_dropped() -> None:
    queue = busy("followup", "a", "b", cap=2, overflow="summarise")
    assert queue.on(says("c")) == [KeepWaiting("c", 3)]
    assert queue.on(says("d")) == [KeepWaiting("d", 4)]
    effects = queue.on(says("e"))
    assert effects == [DropWaiting(("a",), "overflow"), KeepWaiting("e", 4)]
    assert queue.on(TurnSettled("now", 1)) == [
        BeginTurn("b", 2, ("c", "d", "e"), "numbered", short=("b", "c"))
    ]


def test_one_by_one_nothing_is_cut_short() -> None:
    queue = busy("serial", "a", cap=1, overflow="summarise")
    assert queue.on(says("b")) == [RefuseMessage("b")]


def test_who_is_owed_a_turn_is_pushed_out_by_nobody() -> None:
    queue = busy("followup", cap=1, overflow="oldest")
    queue.on(says("a", is_begun=True, is_owed=True))
    assert queue.on(says("b")) == [RefuseMessage("b")]


# --- serial -------------------------------------------------------------------------


def test_the_first_that_waits_of_a_sender_is_told_so_once() -> None:
    queue = busy("serial", note=True)
    assert queue.on(says("a")) == [KeepWaiting("a", 1, is_noted=True)]
    assert queue.on(says("b")) == [KeepWaiting("b", 2)]
    assert queue.on(says("y", "yan")) == [KeepWaiting("y", 3, is_noted=True)]


# --- interrupt ----------------------------------------------------------------------


def test_new_words_end_the_turn_and_begin_after_its_end() -> None:
    queue = busy("interrupt")
    stop = CancelCurrent("now", 1, "interrupted")
    assert queue.on(says("a")) == [stop, KeepWaiting("a", 1)]
    turn = queue.turn("now")
    assert turn is not None
    assert turn.is_ending
    assert queue.on(says("b")) == [KeepWaiting("b", 2)]
    assert queue.on(TurnSettled("now", 1)) == [BeginTurn("a", 2, ("b",), "paragraphs")]
    assert queue.turn("now") is None


def test_nobody_interrupts_somebody_else_or_an_answer_on_its_way() -> None:
    queue = busy("interrupt")
    assert queue.on(says("y", "yan")) == [KeepWaiting("y", 1)]
    assert queue.on(says("late", is_late=True)) == [KeepWaiting("late", 2)]
    assert queue.on(says("task", may_join=False)) == [KeepWaiting("task", 3)]


def test_a_stop_while_a_turn_is_being_interrupted_cancels_it_no_second_time() -> None:
    queue = busy("interrupt", "a")
    assert queue.on(StopRequested(frozenset(("now", "a")))) == [DropWaiting(("a",))]
    assert queue.on(TurnSettled("now", 1)) == []
    assert queue.is_idle


def test_who_interrupts_again_and_again_does_not_starve_the_others() -> None:
    queue = busy("interrupt", cap=99)
    queue.on(says("y", "yan"))
    turn = ("now", 1)
    for number in range(MOST_IN_A_ROW):
        effects = queue.on(says(f"a{number}"))
        assert effects[0] == CancelCurrent(*turn, "interrupted")
        [start] = queue.on(TurnSettled(*turn))
        assert isinstance(start, BeginTurn)
        turn = (start.id, start.generation)
    assert queue.on(says("b")) == [KeepWaiting("b", 2)]
    assert queue.on(TurnSettled(*turn)) == [BeginTurn("y", 5)]


# --- steer --------------------------------------------------------------------------


def test_words_go_into_the_running_turn_before_its_next_round() -> None:
    queue = busy("steer", "a", "b", injections=2)
    queue.on(says("c"))
    assert queue.on(RoundStarting(1)) == [InjectMessages(("a", "b"))]
    assert queue.members == ("now", "a", "b")
    assert queue.on(RoundStarting(1)) == []  # no more than two
    assert queue.on(TurnSettled("now", 1)) == [BeginTurn("c", 2)]


def test_only_the_same_sender_steers_and_no_picture() -> None:
    queue = busy("steer", cap=9)
    for each in (says("y", "yan"), says("a"), says("p", is_media=True), says("b")):
        queue.on(each)
    assert queue.on(RoundStarting(9)) == []
    assert queue.on(RoundStarting(1)) == [InjectMessages(("a",))]


def test_what_the_turn_missed_comes_first_afterwards() -> None:
    queue = busy("steer", "a", "b", injections=1)
    queue.on(RoundStarting(1))
    effects = queue.on(TurnSettled("now", 1, (says("a"),)))
    assert effects == [BeginTurn("a", 2, ("b",), "numbered")]


# --- resumed ------------------------------------------------------------------------


def test_a_turn_that_was_cut_off_keeps_those_it_answered() -> None:
    queue = SessionQueue(3, BusySettings("followup"))
    queue.on(says("now"))
    queue.on(says("b", is_owed=True))
    again = says("a", is_begun=True, also=("b",), style="lines", short=("b",))
    queue.on(again)
    queue.on(says("c"))
    assert queue.on(says("b")) == []
    assert queue.on(TurnSettled("now", 1)) == [
        BeginTurn("a", 2, ("b",), "lines", ("b",))
    ]
    queue.on(MembersSettled(frozenset("b")))
    assert queue.members == ("a",)
    assert queue.on(TurnSettled("a", 2)) == [BeginTurn("c", 3)]
