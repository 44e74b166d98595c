"""What nodes tell each other: sent once, short enough, and to all others."""

from __future__ import annotations

from hypothesis import given, strategies as st

from runtime.nodes.hints import MOST_BYTES, MOST_WAITING, Hint, HintBoard

hints = st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9000)), max_size=40)


@given(told=hints)
def test_what_is_taken_arrives_once_and_in_order_in_messages_that_are_short_enough(
    told: list[tuple[str, str]],
) -> None:
    here, there, came = HintBoard("a"), HintBoard("b"), list[Hint]()
    for topic in {topic for topic, _ in told}:
        there.subscribe(topic, came.append)
        here.subscribe(topic, came.append)
    taken = [each for each in told if here.tell(*each)]
    sent = here.unsent()
    for text in sent:
        assert len(text.encode()) <= MOST_BYTES
        there.arrive(text)
        here.arrive(text)  # its own come back, and are passed over
    assert came == [Hint("a", *each) for each in dict.fromkeys(taken)]
    assert here.dropped == len(told) - len(taken)
    assert here.unsent() == []


@given(told=st.lists(st.text(max_size=100)))
def test_short_hints_are_all_taken(told: list[str]) -> None:
    board = HintBoard("a")
    assert all(board.tell("topic", each) for each in told)


def test_what_nobody_sends_takes_no_more_room() -> None:
    board = HintBoard("a")
    told = [board.tell("topic", str(number)) for number in range(MOST_WAITING + 2)]
    assert told == [True] * MOST_WAITING + [False] * 2
    assert board.tell("topic", "0")  # waits already
    assert board.dropped == 2


def test_who_has_had_enough_is_told_no_more() -> None:
    board, came = HintBoard("b"), list[Hint]()
    end = board.subscribe("topic", came.append)
    here = HintBoard("a")
    here.tell("topic")
    (text,) = here.unsent()
    board.arrive(text)
    end()
    end()
    board.arrive(text)
    assert came == [Hint("a", "topic")]


@given(text=st.text())
def test_what_cannot_be_read_is_passed_over(text: str) -> None:
    HintBoard("a").arrive(text)
