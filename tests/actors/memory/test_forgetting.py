"""Proves that of what is older than a forgetting nothing is gone through again."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.memory.forgetting import is_forgotten, since
from actors.messages.inbound import TranscriptLine

sizes = st.lists(st.integers(1, 3), max_size=12)
names = st.sampled_from(["", "01A", "01B", "01C"])


@given(sizes=sizes, forgotten=st.integers(0, 12), newer=st.integers(0, 40))
def test_exactly_the_lines_of_newer_exchanges_stay(
    sizes: list[int], forgotten: int, newer: int
) -> None:
    told = [
        (f"{number:02}", TranscriptLine("user", f"{number:02}"))
        for number, size in enumerate(sizes, 1)
        for _ in range(size)
    ]
    lines = [line for _, line in told][: max(0, len(told) - newer)]
    said = [(f"{number:02}", size) for number, size in enumerate(sizes, 1)][::-1]
    mark = f"{forgotten:02}" if forgotten else ""
    kept = since(lines, said, mark, min(newer, len(told)))
    assert list(kept) == [line for line in lines if line.text > mark]


@given(sizes=sizes, given_=st.lists(st.tuples(names, st.integers(0, 99)), max_size=9))
def test_whatever_the_journal_says_the_newest_lines_stay(
    sizes: list[int], given_: list[tuple[str, int]]
) -> None:
    lines = [TranscriptLine("user", str(number)) for number in range(len(sizes))]
    kept = since(lines, given_, "01A", 1)
    assert list(kept) == lines[len(lines) - len(kept) :]


@given(name=names, mark=names)
def test_words_are_older_than_what_asks_for_them_to_be_forgotten(
    name: str, mark: str
) -> None:
    assert is_forgotten(name, mark) == (bool(name) and bool(mark) and name < mark)
