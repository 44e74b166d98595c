"""What nodes tell each other of rows that they wrote."""

from __future__ import annotations

from hypothesis import given, strategies as st

from runtime.nodes.hints import RowsWritten, encode, read


@given(node=st.text(), kinds=st.frozensets(st.text()))
def test_all_others_read_what_a_node_tells(node: str, kinds: frozenset[str]) -> None:
    text = encode(node, kinds)
    assert read(text, f"{node}2") == RowsWritten(node, tuple(sorted(kinds)))
    assert read(text, node) is None


@given(text=st.text(st.characters()))
def test_what_cannot_be_read_is_passed_over(text: str) -> None:
    found = read(text, "a")
    assert found is None or encode(found.node, found.kinds)
