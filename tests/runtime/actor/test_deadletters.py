"""Proves that dead letters are kept within bounds, and told of on any thread."""

from __future__ import annotations

import sys
import threading

from runtime.actor.dead_letters import DeadLetter, DeadLetters
from runtime.actor.messages import weight_of


def test_dead_letters_are_bounded_by_number_and_weight() -> None:
    letters = DeadLetters(weight_of, print, keep=4, keep_bytes=100)
    seen: list[DeadLetter] = []
    letters.observe(seen.append)
    for number in range(10):
        letters.add("anna", "stopped", number)
    assert [letter.message for letter in letters.last()] == [6, 7, 8, 9]
    letters.add("anna", "stopped", b"x" * 99)
    assert letters.last()[-1].message == "bytes of 99 bytes, not kept"
    assert seen[-1].message == b"x" * 99
    for _ in range(4):
        letters.add("anna", "killed", "x" * 25)
    assert letters._weights.total() == 100
    letters.add("anna", "killed", "x" * 25)
    assert len(letters.last()) == 4
    assert letters.counts == {"stopped": 11, "killed": 5}
    assert len(seen) == 16


def test_a_flood_at_one_actor_hides_no_other() -> None:
    letters = DeadLetters(weight_of, print, keep=4, keep_bytes=100)
    letters.add("ben", "failed", "first")
    for number in range(10):
        letters.add("anna", "mailbox_full", number)
    letters.add("carl", "failed", "last")
    kept = [(letter.recipient, letter.message) for letter in letters.last()]
    assert kept == [("ben", "first"), ("anna", 8), ("anna", 9), ("carl", "last")]
    assert letters.counts == {"failed": 2, "mailbox_full": 10}


def test_dead_letters_are_told_on_any_thread_while_others_come() -> None:
    letters, is_over = DeadLetters(weight_of, print), threading.Event()

    def add() -> None:
        while not is_over.is_set():
            letters.add("anna", "stopped", 1)

    adding = threading.Thread(target=add)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    adding.start()
    try:
        for _ in range(30_000):
            letters.last()
    finally:
        is_over.set()
        adding.join()
        sys.setswitchinterval(before)
