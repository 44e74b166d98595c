"""What nodes tell each other of rows that they wrote, and of what is to be shown."""

from __future__ import annotations

import msgspec
from hypothesis import given, strategies as st

from runtime.nodes.hints import (
    MOST_BYTES,
    HintsShown,
    RowsWritten,
    Shown,
    encode,
    pack,
    read,
)

BODIES = st.integers(0, 2 * MOST_BYTES).map(lambda size: "\u00e4" * size)


@given(node=st.text(), kinds=st.frozensets(st.text()))
def test_all_others_read_what_a_node_tells(node: str, kinds: frozenset[str]) -> None:
    text = encode(node, kinds)
    assert read(text, f"{node}2") == RowsWritten(node, tuple(sorted(kinds)))
    assert read(text, node) is None


@given(bodies=st.lists(BODIES | st.text()))
def test_what_is_to_be_shown_is_read_in_order_and_fits_into_a_notify(
    bodies: list[str],
) -> None:
    items = [Shown("bot", "k", msgspec.Raw(msgspec.json.encode(x))) for x in bodies]
    found = list[Shown]()
    for text in pack("a", items):
        assert len(text.encode()) <= MOST_BYTES
        hint = read(text, "b")
        assert isinstance(hint, HintsShown)
        found += hint.items
    longest = MOST_BYTES - len(msgspec.json.encode(HintsShown("a", ())))
    short = [x for x in items if len(msgspec.json.encode(x)) < longest]
    assert [bytes(x.body) for x in found] == [bytes(x.body) for x in short]


@given(text=st.text(st.characters()))
def test_what_cannot_be_read_is_passed_over(text: str) -> None:
    found = read(text, "a")
    assert found is None or msgspec.json.encode(found)
