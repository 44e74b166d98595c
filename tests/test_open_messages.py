"""Proves that who is on their way is counted, and that nobody is counted for ever."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from actors.open_messages import FORGET_AFTER, OpenMessages


def test_it_is_full_at_its_most_and_not_before() -> None:
    opened = OpenMessages(2)
    opened.add("a", 0.0)
    assert not opened.is_full(0.0)
    opened.add("b", 0.0)
    assert opened.is_full(0.0)
    opened.discard("a")
    assert not opened.is_full(0.0)


def test_what_is_older_than_an_hour_takes_no_room() -> None:
    opened = OpenMessages(1)
    opened.add("a", 10.0)
    assert opened.is_full(10.0 + FORGET_AFTER)
    assert not opened.is_full(10.0 + FORGET_AFTER + 0.1)
    assert len(opened) == 0


class AgainstASet(RuleBasedStateMachine):
    """Compares with a plain dictionary that forgets by looking at everything."""

    @initialize(most=st.integers(1, 4))
    def open(self, most: int) -> None:
        self.most, self.now = most, 0.0
        self.opened = OpenMessages(most)
        self.known: dict[str, float] = {}

    @rule(name=st.sampled_from("abcdef"))
    def add(self, name: str) -> None:
        if name not in self.known:  # ids are never used again
            self.opened.add(name, self.now)
            self.known[name] = self.now

    @rule(name=st.sampled_from("abcdef"))
    def discard(self, name: str) -> None:
        self.opened.discard(name)
        self.known.pop(name, None)

    @rule(seconds=st.sampled_from([1.0, FORGET_AFTER / 2, FORGET_AFTER * 2]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def counts_the_young(self) -> None:
        self.known = {
            name: since
            for name, since in self.known.items()
            if since >= self.now - FORGET_AFTER
        }
        assert self.opened.is_full(self.now) == (len(self.known) >= self.most)
        assert len(self.opened) == len(self.known)


TestAgainstASet = AgainstASet.TestCase
