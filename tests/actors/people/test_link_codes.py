"""Proves that a code counts once, for a while, and cannot be tried out."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.people.people import HOLDS_FOR, MOST_CODES, LinkCodes, RedeemedCode
from actors.rules.text.codes import MOST_TRIES, TRIES_WITHIN

BYTES = b"\x01\x23\x45\x67\x89"


def test_a_code_counts_once() -> None:
    codes = LinkCodes()
    code = codes.issue("a/1", BYTES, 0.0)
    assert codes.redeem(code.lower(), "b/2", 1.0) == RedeemedCode("a/1")
    assert codes.redeem(code, "b/2", 2.0) == "unknown"


def test_a_code_is_read_as_people_type_it() -> None:
    codes = LinkCodes()
    code = codes.issue("a/1", b"\x00\x00\x00\x00\x21", 0.0)
    assert code == "0000-0011"
    assert codes.redeem(" oooo ooli ", "b/2", 0.0) == RedeemedCode("a/1")


def test_a_code_holds_for_a_while() -> None:
    codes = LinkCodes()
    code = codes.issue("a/1", BYTES, 0.0)
    assert codes.redeem(code, "b/2", HOLDS_FOR) == "unknown"


def test_a_new_code_takes_the_place_of_the_old_one() -> None:
    codes = LinkCodes()
    old = codes.issue("a/1", BYTES, 0.0)
    new = codes.issue("a/1", BYTES[::-1], 0.0)
    assert codes.redeem(old, "b/2", 0.0) == "unknown"
    assert codes.redeem(new, "b/2", 0.0) == RedeemedCode("a/1")


def test_nobody_links_an_account_with_itself() -> None:
    codes = LinkCodes()
    code = codes.issue("a/1", BYTES, 0.0)
    assert codes.redeem(code, "a/1", 0.0) == "own"
    assert codes.redeem(code, "b/2", 0.0) == RedeemedCode("a/1")


def test_wrong_codes_are_taken_a_few_times_only() -> None:
    codes = LinkCodes()
    code = codes.issue("a/1", BYTES, TRIES_WITHIN)
    for _ in range(MOST_TRIES):
        assert codes.redeem("zzzz-zzzz", "b/2", 0.0) == "unknown"
    assert codes.redeem(code, "b/2", 1.0) == "too_many"
    assert codes.redeem(code, "b/2", TRIES_WITHIN) == RedeemedCode("a/1")


def test_a_flood_of_codes_is_bounded() -> None:
    codes = LinkCodes()
    first = codes.issue("a/first", bytes(5), 0.0)
    for number in range(MOST_CODES):
        codes.issue(f"a/{number}", (number + 1).to_bytes(5, "big"), 0.0)
    assert codes.redeem(first, "b/2", 0.0) == "unknown"


@given(st.text(), st.binary(min_size=5, max_size=5))
def test_nothing_else_is_taken_for_a_code(typed: str, dice: bytes) -> None:
    codes = LinkCodes()
    code = codes.issue("a/1", dice, 0.0)
    outcome = codes.redeem(typed, "b/2", 0.0)
    if outcome == RedeemedCode("a/1"):
        letters = typed.upper().replace("O", "0").replace("I", "1").replace("L", "1")
        assert code.replace("-", "") in "".join(c for c in letters if c.isalnum())
