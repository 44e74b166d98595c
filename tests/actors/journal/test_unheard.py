"""Proves that the little read of a stored message says what the whole of it does."""

from __future__ import annotations

import msgspec
from hypothesis import given, strategies as st

from actors.journal.commits import as_accept
from actors.journal.unsettled import MessagePlace, place, read_back, read_place
from actors.messages.inbound import Inbound
from runtime.store.rows import StoredMessage
from tests.fakes.actors.neighbours import words
from tests.support.store.rows import stored

MESSAGES = st.builds(
    words,
    st.text(max_size=9),
    number=st.integers(1, 99),
    copy_of=st.integers(0, 99),
    correlation_id=st.sampled_from(["", "m1", "m7"]),
)


def as_row(inbound: Inbound, number: int) -> StoredMessage:
    return stored(number, inbound.id, body=as_accept(inbound, 1.0).body)


@given(MESSAGES, st.integers(1, 99))
def test_it_stands_where_its_original_does(inbound: Inbound, number: int) -> None:
    row = as_row(inbound, number)
    (unheard,) = read_back(row)
    whole = unheard.inbound
    assert read_place(row) == MessagePlace(
        whole.correlation_id, whole.sender_id, whole.caller, whole.copy_of
    )
    assert place(row) == (whole.copy_of or number, number)


def test_what_cannot_be_read_stands_in_its_own_place() -> None:
    row = msgspec.structs.replace(as_row(words(copy_of=3), 8), body=b"\xff{")
    assert read_place(row) is None
    assert place(row) == (8, 8)
    assert read_back(row) == ()
