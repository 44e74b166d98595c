"""A map of the newest: bounded, and in the order of writing."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.rules.text.limits import RecentMap


@given(st.integers(1, 5), st.lists(st.integers(0, 9)))
def test_the_newest_keys_are_kept(most: int, keys: list[int]) -> None:
    recent: RecentMap[int, int] = RecentMap(most)
    for at, key in enumerate(keys):
        recent[key] = at
    newest = list(dict.fromkeys(reversed(keys)))[:most]
    assert list(recent) == newest[::-1]
    assert all(keys[at] == key for key, at in recent.items())


def test_it_is_bounded_however_it_is_written() -> None:
    recent: RecentMap[int, str] = RecentMap(2)
    assert [recent.setdefault(key, "a") for key in (1, 2, 3)] == ["a"] * 3
    assert recent.setdefault(2, "b") == "a"
    recent.update({4: "c"})
    assert list(recent.items()) == [(3, "a"), (4, "c")]
