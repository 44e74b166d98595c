"""Proves whose memory is meant, and what a question needs of it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.config.memory import MemoryConfig
from actors.memory import scopes
from actors.memory.messages import EVERYTHING, needs
from actors.memory.note_rules import auto_saved
from actors.messages.inbound import Address, DelegationChain
from tests.fakes.actors.neighbours import words

parts = st.text("ab/~", max_size=4)
addresses = st.builds(Address, st.sampled_from(["x", "y"]), parts, parts)
people = st.tuples(st.sampled_from("xy"), parts).map("/".join)


@given(first=addresses, second=addresses)
def test_two_groups_never_share_a_scope(first: Address, second: Address) -> None:
    assert (scopes.chat(first) == scopes.chat(second)) == (first == second)


@given(address=addresses, zoe=people, sam=people, is_direct=st.booleans())
def test_nobody_reads_where_another_writes_in_private(
    address: Address, zoe: str, sam: str, *, is_direct: bool
) -> None:
    private = scopes.writing(address, zoe, is_direct=True)
    reads = scopes.reading(address, (sam,), is_direct=is_direct)
    assert (private in reads) == (zoe == sam and is_direct)
    assert private not in scopes.reading(address, (zoe,), is_direct=False)


@given(address=addresses, zoe=people)
def test_what_is_told_somewhere_is_read_there_and_the_agents_own_everywhere(
    address: Address, zoe: str
) -> None:
    for is_direct in (True, False):
        own = scopes.writing(address, zoe, is_direct=is_direct)
        reads = scopes.reading(address, (zoe,), is_direct=is_direct)
        assert own == reads[0] != scopes.AGENT == reads[-1]
    both = scopes.reading(address, (zoe,), is_direct=False, person_in_groups=True)
    assert both == (scopes.chat(address), scopes.person(zoe), scopes.AGENT)


@given(address=addresses, other=addresses, zoe=parts, sam=parts)
def test_a_members_words_are_theirs_alone_and_only_there(
    address: Address, other: Address, zoe: str, sam: str
) -> None:
    own = scopes.writing(address, "x/zoe", is_direct=False, member=zoe)
    reads = scopes.reading(other, ("x/sam",), is_direct=False, member=sam)
    is_the_groups = not zoe
    assert (own in reads) == (address == other and (is_the_groups or zoe == sam))
    assert scopes.is_persons(own) == bool(zoe)
    assert own not in scopes.reading(address, ("x/zoe",), is_direct=True)
    assert reads[-2:] == (scopes.chat(other), scopes.AGENT)


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Do you remember my cat?", {"summaries", "recall"}),
        ("¿Recuerdas lo que dije ayer?", {"summaries", "recall"}),
        ("Was hatten wir GESTERN besprochen?", {"summaries", "recall"}),
        ("What we talked  about", {"summaries", "recall"}),
        ("Remind me tomorrow", {"tasks"}),
        ("Any progress?", {"outcomes"}),
        ("residue of the beforehand dueling", {""} - {""}),
        ("make tea", {""} - {""}),
    ],
)
def test_whole_words_open_the_gates(question: str, wanted: set[str]) -> None:
    assert needs(question, is_gated=True) == wanted
    assert needs(question, is_gated=False) == EVERYTHING


def test_a_message_is_kept_under_a_key_of_its_own() -> None:
    config = MemoryConfig(auto_save=True)
    said = words("I moved to Lisbon last week", number=7)
    assert auto_saved(said, config) == ("m7", "I moved to Lisbon last week")
    assert auto_saved(words("x" * 19), config) is None
    assert auto_saved(said, MemoryConfig()) is None
    by_agent = words(
        "I moved to Lisbon last week", chain=DelegationChain(agents=("ben",))
    )
    assert auto_saved(by_agent, config) is None
