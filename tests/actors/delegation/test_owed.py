"""An exchange ends with its last answer, in whatever order answers come."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.messages.deliveries import Delivery, Owed
from actors.messages.inbound import Address


def answer(number: int, left: int, *, is_root: bool) -> Delivery:
    return Delivery(
        id=f"m:{number}",
        correlation_id="m",
        address=Address("test", "chat"),
        agent="anna",
        text="words",
        answers_left=left,
        is_root=is_root,
    )


def test_one_answer_that_announces_nothing_ends_the_exchange() -> None:
    assert Owed().count(answer(0, 0, is_root=True))


@given(others=st.integers(0, 6), place=st.integers(0, 6))
def test_copies_may_come_before_the_answer_that_announces_them(
    others: int, place: int
) -> None:
    said = [answer(number, 0, is_root=False) for number in range(1, others + 1)]
    said.insert(min(place, others), answer(0, others, is_root=True))
    owed = Owed()
    verdicts = [owed.count(each) for each in said]
    assert verdicts == [False] * others + [True]
