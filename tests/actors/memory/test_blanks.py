"""Proves that nothing which was remembered is ever taken for nothing."""

from __future__ import annotations

from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from actors.memory.scopes import VALID, EmptyScopes, ReadStarted

SCOPES = ("person:fake/zoe", "person:fake/sam", "agent")
asked = st.lists(st.sampled_from(SCOPES), min_size=1, unique=True).map(tuple)


class Remembering(RuleBasedStateMachine):
    """Looks, commits and word of them, in any order that there may be.

    A look begins, reads the store some time later and is over some time after that; a
    fact is committed, and the memory is told some time later.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blanks = EmptyScopes(most=2)
        self.now = 0.0
        self.stored: set[str] = set()
        self.untold: list[str] = []
        self.told: set[str] = set()
        self.begun: list[tuple[tuple[str, ...], ReadStarted]] = []
        self.read: list[tuple[tuple[str, ...], ReadStarted]] = []

    @rule(scopes=asked)
    def begin(self, scopes: tuple[str, ...]) -> None:
        self.begun.append((scopes, self.blanks.look(self.now)))

    @rule(number=st.integers(0, 9))
    def read_store(self, number: int) -> None:
        if self.begun:
            scopes, look = self.begun.pop(number % len(self.begun))
            if not self.stored & set(scopes):
                self.read.append((scopes, look))

    @rule(number=st.integers(0, 9))
    def end(self, number: int) -> None:
        if self.read:
            self.blanks.found(*self.read.pop(number % len(self.read)))

    @rule(scope=st.sampled_from(SCOPES))
    def commit(self, scope: str) -> None:
        self.stored.add(scope)
        self.untold.append(scope)

    @rule()
    def tell(self) -> None:
        if self.untold:
            scope = self.untold.pop(0)
            self.told.add(scope)
            self.blanks.wrote((scope,))

    @rule(scope=st.sampled_from(SCOPES))
    def forget(self, scope: str) -> None:
        if scope not in self.untold:
            self.stored.discard(scope)
            self.told.discard(scope)

    @rule(seconds=st.floats(0, 2 * VALID))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def nothing_told_is_missed(self) -> None:
        for scope in self.told:
            assert not self.blanks.cover((scope,), self.now)
            assert not self.blanks.cover(SCOPES, self.now)


TestRemembering = Remembering.TestCase


def test_what_was_found_blank_is_known_until_it_is_written_to() -> None:
    blanks = EmptyScopes()
    assert not blanks.cover(SCOPES, 0.0)
    blanks.found(SCOPES, blanks.look(0.0))
    assert blanks.cover(SCOPES, 0.0)
    assert blanks.cover(SCOPES[:1], VALID - 1)
    blanks.wrote(SCOPES[1:2])
    assert not blanks.cover(SCOPES, 0.0)
    assert blanks.cover(SCOPES[:1], 0.0)


def test_a_look_that_began_before_something_was_written_settles_nothing() -> None:
    blanks = EmptyScopes()
    look = blanks.look(0.0)
    blanks.wrote(SCOPES[:1])
    blanks.found(SCOPES, look)
    assert not any(blanks.cover((scope,), 0.0) for scope in SCOPES)


@given(st.floats(VALID, 1e9))
def test_nothing_is_taken_for_blank_for_longer_than_it_is_valid(later: float) -> None:
    blanks = EmptyScopes()
    blanks.found(SCOPES, blanks.look(0.0))
    assert not blanks.cover(SCOPES, later)


def test_nobody_is_blank_if_nobody_is_named_and_few_are_known() -> None:
    blanks = EmptyScopes(most=2)
    blanks.found(SCOPES, blanks.look(0.0))
    assert not blanks.cover((), 0.0)
    assert not blanks.cover(SCOPES, 0.0)
    assert blanks.cover(SCOPES[1:], 0.0)
