"""Proves that a mailbox loses nothing, keeps its order and knows its bounds."""

from __future__ import annotations

from collections import deque

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtime.actor.envelope import Envelope
from runtime.actor.mailbox import EMPTY, Mailbox, MailboxConfig
from runtime.actor.messages import weight_of


class Parcel(msgspec.Struct, frozen=True):
    """A message that weighs something."""

    number: int
    weight: int


class MailboxMachine(RuleBasedStateMachine):
    """A mailbox beside plain lists."""

    def __init__(self) -> None:
        super().__init__()
        self.mailbox = Mailbox(MailboxConfig(capacity=5, max_bytes=20))
        self.waiting: deque[Parcel] = deque()
        self.system: deque[int] = deque()
        self.stashed: list[Parcel] = []
        self.serial = 0
        self.taken: Parcel | None = None

    @property
    def weight(self) -> int:
        return sum(parcel.weight for parcel in (*self.waiting, *self.stashed))

    @rule(weight=st.integers(0, 25))
    def offer(self, weight: int) -> None:
        self.serial += 1
        parcel = Parcel(self.serial, weight)
        count = len(self.waiting) + len(self.stashed)
        fits = count < 5 and (count == 0 or self.weight + weight <= 20)
        assert self.mailbox.has_room(parcel) is fits
        assert self.mailbox.offer(parcel) is fits
        if fits:
            self.waiting.append(parcel)

    @rule()
    def get(self) -> None:
        expected = self.waiting.popleft() if self.waiting else EMPTY
        assert self.mailbox.get() is expected
        self.taken = expected if isinstance(expected, Parcel) else None

    @precondition(lambda self: self.taken is not None)
    @rule(to_stash=st.booleans())
    def give_back(self, *, to_stash: bool) -> None:
        parcel, self.taken = self.taken, None
        assert parcel is not None
        if to_stash:
            self.mailbox.stash(parcel)
            self.stashed.append(parcel)
        else:
            self.mailbox.put_back(parcel)
            self.waiting.appendleft(parcel)

    @rule()
    def unstash(self) -> None:
        assert self.mailbox.unstash() == len(self.stashed)
        self.waiting.extendleft(reversed(self.stashed))
        self.stashed.clear()

    @rule()
    def take_back(self) -> None:
        assert not self.mailbox.take_back(Parcel(0, 0))
        if self.stashed:
            assert self.mailbox.take_back(self.stashed[-1])
            self.taken = self.stashed.pop()

    @rule()
    def put_system_first(self) -> None:
        self.serial += 1
        self.mailbox.put_system_first(self.serial)
        self.system.appendleft(self.serial)

    @rule()
    def get_system(self) -> None:
        expected: object = self.system.popleft() if self.system else EMPTY
        assert self.mailbox.get_system() == expected

    @rule()
    def adopt(self) -> None:
        self.mailbox.adopt(MailboxConfig(capacity=5))
        assert self.mailbox.has_room("x" * 99) is (self.mailbox.count < 5)
        self.mailbox.adopt(MailboxConfig(capacity=5, max_bytes=20))

    @invariant()
    def counts_are_right(self) -> None:
        mailbox = self.mailbox
        assert mailbox.count == len(self.waiting) + len(self.stashed)
        assert mailbox.depth == len(self.waiting)
        assert mailbox.stashed == len(self.stashed)
        assert mailbox.weight == self.weight
        assert mailbox.empty() is (not self.waiting and not self.system)
        assert bool(mailbox.system) is bool(self.system)


TestMailbox = MailboxMachine.TestCase


@pytest.mark.parametrize(
    ("message", "weight"),
    [
        ("four", 4),
        (b"four", 4),
        (bytearray(3), 3),
        (Parcel(1, 7), 7),
        (7, 0),
        (None, 0),
    ],
)
def test_messages_weigh_what_they_say(message: object, weight: int) -> None:
    assert weight_of(message) == weight


def test_an_ask_weighs_as_much_as_its_message() -> None:
    mailbox = Mailbox(MailboxConfig(max_bytes=10))
    assert mailbox.offer(Envelope("x" * 8))
    assert mailbox.weight == 8
    assert not mailbox.offer("xxx")


def test_a_message_that_grew_leaves_no_debt() -> None:
    mailbox = Mailbox(MailboxConfig(max_bytes=10))
    message = bytearray(1)
    mailbox.put(message)
    message.extend(b"more")
    assert mailbox.get() is message
    assert mailbox.weight == 0


@pytest.mark.parametrize(("capacity", "max_bytes"), [(0, None), (1, 0)])
def test_bounds_that_nothing_fits_are_refused(
    capacity: int, max_bytes: int | None
) -> None:
    with pytest.raises(ValueError, match="must hold 1"):
        MailboxConfig(capacity=capacity, max_bytes=max_bytes)
