"""Proves that a receipt fits exactly one call, and only under its key."""

from __future__ import annotations

from hypothesis import given, strategies as st
from msgspec.structs import asdict, replace

from actors.approvals.receipts import (
    ReceiptClaim,
    digest_of_arguments,
    digest_of_result,
    is_genuine,
    sign,
)
from actors.messages.inbound import Image

KEY = b"k" * 32
NOTHING = ReceiptClaim(
    conversation="", message="", call_id="", name="", arguments="", result="", at=0.0
)
words = st.text(max_size=5)
claims = st.builds(
    ReceiptClaim,
    conversation=words,
    message=words,
    call_id=words,
    name=words,
    arguments=words,
    result=words,
    at=st.floats(0, 2e9),
)


@given(claims)
def test_a_receipt_is_genuine_under_its_key_alone(claim: ReceiptClaim) -> None:
    receipt = sign(KEY, claim)
    assert is_genuine(KEY, claim, receipt)
    assert not is_genuine(b"x" * 32, claim, receipt)
    assert not is_genuine(KEY, claim, receipt[:-1])
    assert not is_genuine(KEY, claim, "é")


@given(claims, st.sampled_from(sorted(asdict(NOTHING))))
def test_no_part_of_a_claim_can_be_changed(claim: ReceiptClaim, field: str) -> None:
    receipt = sign(KEY, claim)
    changed = claim.at + 1 if field == "at" else asdict(claim)[field] + "x"
    assert not is_genuine(KEY, replace(claim, **{field: changed}), receipt)


@given(words, words)
def test_words_cannot_move_from_one_part_to_the_next(one: str, two: str) -> None:
    claim = replace(NOTHING, conversation=one, message=two)
    moved = replace(NOTHING, conversation=one + two)
    assert (sign(KEY, claim) == sign(KEY, moved)) is (claim == moved)


def test_a_result_is_known_by_its_words_pictures_and_kind() -> None:
    image = Image("image/png", b"a")
    results = [
        digest_of_result("a", (), is_error=False),
        digest_of_result("a", (), is_error=True),
        digest_of_result("a", (image,), is_error=False),
        digest_of_result("a", (image, image), is_error=False),
        digest_of_result("\ud800", (), is_error=False),
        digest_of_arguments(b"a"),
    ]
    assert len(set(results)) == len(results)
