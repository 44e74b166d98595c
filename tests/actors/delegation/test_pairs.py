"""Proves that two agents pause after so many exchanges in a row, whoever began."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from actors.delegation.pairs import PairExchange, PairLimiter, PairLimits

LIMITS = PairLimits(max_rounds=3, cooldown=30.0)


def said(number: int, **fields: Any) -> PairExchange:
    given_: dict[str, Any] = {"chat": "c/1", "source": "anna", "target": "ben"}
    return PairExchange(**{**given_, "key": f"k{number}", **fields})


def allowed(
    limiter: PairLimiter, *exchanges: PairExchange, at: float = 0.0
) -> list[bool]:
    return [limiter.rule(each, at).is_allowed for each in exchanges]


def test_after_so_many_rounds_the_pair_is_to_pause() -> None:
    limiter = PairLimiter(LIMITS)
    assert allowed(limiter, *map(said, range(5))) == [True] * 3 + [False] * 2
    ruling = limiter.rule(said(9), 10.0)
    assert (ruling.reason, ruling.wait) == ("max_rounds", 20.0)


def test_whoever_begins_is_the_same_pair() -> None:
    limiter = PairLimiter(LIMITS)
    back = [said(n, source="ben", target="anna") for n in (1, 3)]
    assert allowed(limiter, said(0), back[0], said(2), back[1]) == [True] * 3 + [False]


def test_another_chat_and_another_agent_are_another_pair() -> None:
    limiter = PairLimiter(LIMITS)
    allowed(limiter, *map(said, range(4)))
    assert allowed(limiter, said(5, chat="c/2"), said(6, target="carl")) == [True, True]


def test_a_pause_lets_it_begin_anew_and_asking_does_not_prolong_it() -> None:
    limiter = PairLimiter(LIMITS)
    allowed(limiter, *map(said, range(3)))
    assert allowed(limiter, said(4), at=29.9) == [False]
    assert allowed(limiter, *map(said, range(5, 9)), at=30.0) == [True] * 3 + [False]


def test_what_is_asked_again_is_ruled_alike_and_counted_once() -> None:
    limiter = PairLimiter(LIMITS)
    assert allowed(limiter, *[said(1)] * 9) == [True] * 9
    assert allowed(limiter, said(2), said(3), said(4)) == [True, True, False]
    assert allowed(limiter, said(1), said(4)) == [True, False]


def test_each_message_of_a_person_may_cause_one_that_is_not_counted() -> None:
    limiter = PairLimiter(LIMITS)
    people = [said(n, begun_by=f"m{n}") for n in range(9)]
    assert all(allowed(limiter, *people))
    more = [said(n, begun_by="m1") for n in range(10, 14)]
    assert allowed(limiter, *more) == [True] * 3 + [False]


def test_no_rounds_leave_what_people_cause() -> None:
    limiter = PairLimiter(PairLimits(0, 30.0))
    assert allowed(limiter, said(1, begun_by="m"), said(2, begun_by="m")) == [
        True,
        False,
    ]


def test_pairs_that_are_quiet_are_forgotten_and_no_others() -> None:
    limiter = PairLimiter(LIMITS)
    limiter.rule(said(1), 0.0)
    limiter.rule(said(2, chat="c/2"), 20.0)
    assert (limiter.sweep(29.0), limiter.sweep(30.0), len(limiter)) == (0, 1, 1)


def test_one_pair_too_many_is_refused_until_others_were_quiet() -> None:
    limiter = PairLimiter(LIMITS, most=2)
    chats = [said(n, chat=f"c/{n}") for n in range(3)]
    assert allowed(limiter, *chats) == [True, True, False]
    assert limiter.rule(chats[2], 1.0).reason == "too_many_pairs"
    assert allowed(limiter, chats[0]) == [True]
    assert allowed(limiter, chats[2], at=31.0) == [True]


def test_another_incarnation_goes_on_counting() -> None:
    limiter = PairLimiter(LIMITS)
    allowed(limiter, *map(said, range(2)))
    limiter = PairLimiter(LIMITS, limiter.states)
    assert allowed(limiter, *map(said, range(2, 5))) == [True, False, False]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["anna", "ben"]),
        st.floats(0, 20),
        st.sampled_from(["", "", "m1", "m2"]),
    ),
    max_size=60,
)


@given(steps=STEPS, rounds=st.integers(0, 5), cooldown=st.floats(0.1, 40))
def test_there_are_never_more_in_a_row_without_a_pause(
    steps: list[tuple[str, float, str]], rounds: int, cooldown: float
) -> None:
    limiter = PairLimiter(PairLimits(rounds, cooldown))
    now, in_a_row, last, begun = 0.0, 0, 0.0, set[str]()
    for number, (source, pause, begun_by) in enumerate(steps):
        now += pause
        if now - last >= cooldown:
            in_a_row = 0
        target = "ben" if source == "anna" else "anna"
        exchange = said(number, source=source, target=target, begun_by=begun_by)
        is_persons = bool(begun_by) and begun_by not in begun
        is_allowed = limiter.rule(exchange, now).is_allowed
        assert is_allowed or not is_persons
        begun.add(begun_by)
        if is_allowed and not is_persons:
            in_a_row, last = in_a_row + 1, now
        assert in_a_row <= rounds


@given(chats=st.lists(st.integers(0, 30), max_size=80), most=st.integers(1, 8))
def test_there_are_never_more_pairs_than_may_be(chats: list[int], most: int) -> None:
    limiter = PairLimiter(LIMITS, most=most)
    for number, chat in enumerate(chats):
        limiter.rule(said(number, chat=f"c/{chat}"), float(number))
        assert len(limiter) <= most
