"""Proves that nothing is lost or overtakes in its chat, and who writes goes first."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from actors.inbound.backlog import Backlog

chats = st.sampled_from("abcd")


def filled(chats_of_items: str) -> Backlog[str]:
    backlog: Backlog[str] = Backlog()
    backlog.refill((chat, f"{chat}{n}") for n, chat in enumerate(chats_of_items))
    return backlog


def test_the_oldest_goes_first() -> None:
    backlog = filled("abac")
    assert backlog.take(3) == ["a0", "b1", "a2"]
    assert ("a" in backlog, "c" in backlog) == (False, True)
    assert backlog.take(3) == ["c3"]
    assert not backlog


def test_where_somebody_writes_that_chat_goes_first() -> None:
    backlog = filled("abacc")
    assert backlog.hurry("c", 9) == ["c3", "c4"]
    assert backlog.take(9) == ["a0", "b1", "a2"]


def test_of_a_long_chat_only_so_many_are_taken_at_once() -> None:
    backlog = filled("abbb")
    backlog.add("b", "new")
    assert backlog.hurry("b", 2) == ["b1", "b2"]
    assert backlog.hurry("b", 2) == []
    assert backlog.take(1) == ["b3"]
    backlog.refill([("a", "a0"), ("b", "new")])
    assert backlog.take(9) == ["new", "a0"]


def test_a_chat_without_items_is_in_no_hurry() -> None:
    backlog = filled("a")
    assert backlog.hurry("b", 2) == []
    backlog.add("b", "b1")
    assert backlog.take(9) == ["a0", "b1"]


class Crowd(RuleBasedStateMachine):
    """Compares a backlog with a list in the order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.backlog: Backlog[tuple[str, int]] = Backlog()
        self.left: list[tuple[str, int]] = []
        self.first: list[str] = []
        self.count = 0

    def item(self, chat: str) -> tuple[str, int]:
        self.count += 1
        return chat, self.count

    def taken(self, item: tuple[str, int]) -> None:
        same = [each for each in self.left if each[0] == item[0]]
        assert item == same[0]
        self.left.remove(item)
        if len(same) == 1 and item[0] in self.first:
            self.first.remove(item[0])

    @rule(chat=chats)
    def add(self, chat: str) -> None:
        item = self.item(chat)
        self.backlog.add(chat, item)
        self.left.append(item)

    @rule(found=st.lists(chats, max_size=9))
    def refill(self, found: list[str]) -> None:
        self.left = [self.item(chat) for chat in found]
        self.backlog.refill((item[0], item) for item in self.left)
        self.first = [chat for chat in self.first if chat in found]

    @rule(chat=chats, most=st.integers(1, 3))
    def hurry(self, chat: str, most: int) -> None:
        of_it = [each for each in self.left if each[0] == chat]
        wanted = [] if chat in self.first else of_it[:most]
        assert self.backlog.hurry(chat, most) == wanted
        if wanted:
            self.first.append(chat)
        for item in wanted:
            self.taken(item)

    @rule(most=st.integers(0, 5))
    def take(self, most: int) -> None:
        found = self.backlog.take(most)
        assert len(found) == min(most, len(self.left))
        for item in found:
            assert item[0] == self.first[0] if self.first else item in self.left
            self.taken(item)

    @invariant()
    def it_knows_what_is_left(self) -> None:
        assert bool(self.backlog) == bool(self.left)
        left = {chat for chat, _ in self.left}
        assert {chat for chat in "abcd" if chat in self.backlog} == left


TestCrowd = Crowd.TestCase
