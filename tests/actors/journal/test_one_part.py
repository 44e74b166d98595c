"""Proves that a commit keeps the rows of its part, and hands over all others once."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, strategies as st

from actors.journal.parts import entries_of, in_one_part
from actors.memory import scopes
from actors.messages.inbound import Address
from actors.messages.keys import chat_partition, fact_partition
from runtime.store.facts import ForgetFacts, SaveFact, UseFacts
from runtime.store.port import refuse_misuse
from runtime.store.rows import Commit, Entry, Record

PARTS = st.integers(0, 4)
ROWS = st.lists(PARTS, max_size=6)
SCOPES = ("person:cli/a", "person:cli/b", "chat:cli/room/", scopes.AGENT)
FORGETS = st.lists(st.sampled_from(SCOPES), min_size=1, max_size=4, unique=True)


def made_of(entries: list[int], records: list[int], forgets: list[list[str]]) -> Commit:
    """Make a commit with rows of these parts, numbered in their order."""
    return Commit(
        at=1.0,
        entries=tuple(
            Entry(kind="e", id=f"{n}", part=part, body=b"")
            for n, part in enumerate(entries)
        ),
        records=tuple(
            Record(kind="r", id=f"{n}", owner="", part=part, body=b"")
            for n, part in enumerate(records)
        ),
        facts=tuple(
            ForgetFacts(agent="anna", scopes=tuple(each), ids=(f"{n}",))
            for n, each in enumerate(forgets)
        ),
    )


@given(PARTS, ROWS, ROWS, st.lists(FORGETS, max_size=3))
def test_each_row_is_in_its_part_once_and_in_its_order(
    home: int, entries: list[int], records: list[int], forgets: list[list[str]]
) -> None:
    commit = made_of(entries, records, forgets)
    made = in_one_part(commit, home, "cause")
    refuse_misuse(made)
    assert {row.part for row in made.entries} <= {home}
    assert {row.part for row in made.records} <= {home}
    handed = [each.part for each in made.handovers]
    assert len({*handed, home}) == len(handed) + 1
    assert Counter(entries_of(made)) == Counter(commit.entries)
    told = [made, *(each.rows for each in made.handovers)]
    assert Counter(x for each in told for x in each.records) == Counter(commit.records)
    forgotten: Counter[tuple[str, str]] = Counter()
    for each in told:
        numbers = [int(row.id) for row in each.entries]
        assert all(first < second for first, second in pairwise(numbers))
        for change in each.facts:
            assert isinstance(change, ForgetFacts)
            assert len({fact_partition("anna", x) for x in change.scopes}) == 1
            forgotten.update((change.ids[0], scope) for scope in change.scopes)
    assert forgotten == Counter(
        (f"{n}", x) for n, got in enumerate(forgets) for x in got
    )


def test_what_is_of_its_part_alone_stays_as_it_is() -> None:
    entry = Entry(kind="e", id="x", part=3, body=b"")
    commit = Commit(at=1.0, entries=(entry,))
    assert in_one_part(commit, 3, "cause") is commit


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_what_a_group_remembers_is_of_its_chats_part(
    connector: str, chat: str, member: str
) -> None:
    scope = scopes.chat(Address(connector, chat, "thread"), member)
    assert fact_partition("anna", scope) == chat_partition(connector, chat)


def test_facts_of_a_person_are_of_one_part_in_whatever_chat_they_are_told() -> None:
    part = fact_partition("anna", "person:cli/zoe")
    fact = SaveFact(
        id="f", agent="anna", scope="person:cli/zoe", part=part, kind="fact", text="x"
    )
    use = UseFacts(agent="anna", scopes=(fact.scope,), ids=("f",))
    for home in {0, 1, part}:
        made = in_one_part(Commit(at=1.0, facts=(fact, use)), home, "m")
        handed = [x for each in made.handovers for x in each.rows.facts]
        assert [*made.facts, *handed] == [fact, use]
