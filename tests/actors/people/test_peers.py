"""Proves that two programs do not answer each other for ever."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.people.access import Peers


def talk(peers: Peers, chat: str = "room", *, now: float = 0.0) -> bool:
    may = peers.may_answer(chat, "anna", "robot", 3, now)
    if may:
        peers.answers(chat, "anna", "robot", 30.0, now)
    return may


def test_after_some_rounds_it_has_to_be_quiet() -> None:
    peers = Peers()
    assert [talk(peers, now=at) for at in (0, 1, 2, 3, 31.9)] == [True] * 3 + [
        False
    ] * 2
    assert [talk(peers, now=at) for at in (32, 33, 34, 35)] == [True] * 3 + [False]


def test_what_is_said_in_one_chat_changes_nothing_elsewhere() -> None:
    peers = Peers()
    assert [talk(peers) for _ in range(4)][-1] is False
    assert talk(peers, "hall")
    assert peers.may_answer("room", "ben", "robot", 3, 0.0)
    assert peers.may_answer("room", "anna", "other", 3, 0.0)


def test_who_was_quiet_is_forgotten() -> None:
    peers = Peers()
    talk(peers)
    talk(peers, "hall", now=10.0)
    peers.sweep(30.0)
    assert len(peers) == 1


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0, 5)), max_size=60))
def test_it_never_remembers_more_than_it_may(
    steps: list[tuple[int, float]],
) -> None:
    peers, now = Peers(most=5), 0.0
    for chat, wait in steps:
        now += wait
        talk(peers, str(chat), now=now)
        assert len(peers) <= 5
