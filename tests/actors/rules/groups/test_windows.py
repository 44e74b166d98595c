"""Proves that it is known whom an agent answered a short time ago, and no longer."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.messages.keys import parse_key
from actors.rules.groups.reply_windows import PersonInChat, ReplyWindows, key_of

ROOM = PersonInChat("chat", "ro/om", "", "zoe")
HALL = PersonInChat("chat", "hall", "t", "zoe")


def test_each_agent_each_chat_and_each_person_has_its_own() -> None:
    windows = ReplyWindows()
    windows.answered("anna", ROOM, 1.0)
    windows.answered("ben", ROOM, 2.0)
    windows.answered("anna", HALL, 3.0)
    windows.answered("anna", ROOM, 4.0)
    assert windows.of(ROOM) == {"anna": 4.0, "ben": 2.0}
    assert windows.of(HALL) == {"anna": 3.0}
    assert windows.of(PersonInChat("chat", "hall", "", "zoe")) == {}


def test_what_is_over_is_forgotten_by_the_agent_s_own_length() -> None:
    windows = ReplyWindows()
    for agent in ("anna", "ben", "gone"):
        windows.answered(agent, ROOM, 0.0)
    over = windows.expire({"anna": 1.0, "ben": 10.0}, 61.0)
    assert over == (key_of("anna", ROOM), key_of("gone", ROOM))
    assert windows.of(ROOM) == {"ben": 0.0}
    assert windows.expire({"anna": 1.0, "ben": 10.0}, 61.0) == ()


def test_its_name_can_be_read_back() -> None:
    key = key_of("anna", ROOM)
    assert parse_key(key.text) == key


names = st.sampled_from(["anna", "ben"])
places = st.builds(
    PersonInChat, st.just("c"), st.sampled_from("xyz"), st.just(""), names
)


@given(st.lists(st.tuples(names, places), max_size=40))
def test_of_too_many_those_of_long_ago_are_forgotten(
    answers: list[tuple[str, PersonInChat]],
) -> None:
    windows, newest = ReplyWindows(most=3), dict[tuple[str, PersonInChat], float]()
    for at, (agent, place) in enumerate(answers):
        windows.answered(agent, place, float(at))
        newest.pop((agent, place), None)
        newest[agent, place] = float(at)
    kept = dict(list(newest.items())[-3:])
    assert len(windows) == len(kept)
    assert all(windows.of(place)[agent] == at for (agent, place), at in kept.items())
