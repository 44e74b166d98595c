"""Proves that who is on their way is counted, and that the store has the last word."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from actors.journal.commits import as_accept
from actors.journal.unsettled import PAGE, OpenMessages, unanswered
from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.messages.keys import chat_partition
from runtime.fairness import Owner, most_of_one
from runtime.store.rows import Commit, Settle
from tests.fakes.actors.neighbours import words
from tests.fakes.store.in_memory import MemoryStore

SAM, KIM = ("", "sam"), ("", "kim")


def test_it_is_full_at_its_most_and_not_before() -> None:
    opened = OpenMessages(2)
    opened.add("a", SAM)
    assert opened.may_add(KIM)
    opened.add("b", SAM)
    assert not opened.may_add(KIM)
    opened.discard("a")
    assert opened.may_add(KIM)


def test_one_person_leaves_room_for_others() -> None:
    opened = OpenMessages(4)
    for name in "abc":
        assert opened.may_add(SAM)
        opened.add(name, SAM)
    assert not opened.may_add(SAM)
    assert opened.may_add(KIM)
    opened.count_anew({"d": SAM, "e": KIM})
    assert opened.may_add(SAM)


def test_one_key_with_many_authors_leaves_room_for_others() -> None:
    opened = OpenMessages(8)
    for name in "abcdef":
        assert opened.may_add(("key", name))
        opened.add(name, ("key", name))
    assert not opened.may_add(("key", "g"))
    assert opened.may_add(("other key", "g"))


class AgainstASet(RuleBasedStateMachine):
    """Compares with a plain set."""

    @initialize(most=st.integers(1, 4))
    def open(self, most: int) -> None:
        self.most = most
        self.opened = OpenMessages(most)
        self.known: dict[str, Owner] = {}

    @rule(name=st.sampled_from("abcdef"), sender=st.sampled_from("xyz"))
    def add(self, name: str, sender: str) -> None:
        self.opened.add(name, ("", sender))
        self.known[name] = ("", sender)

    @rule(name=st.sampled_from("abcdef"))
    def discard(self, name: str) -> None:
        self.opened.discard(name)
        self.known.pop(name, None)

    @rule(names=st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz")))
    def count_anew(self, names: dict[str, str]) -> None:
        self.known = {name: ("", sender) for name, sender in names.items()}
        self.opened.count_anew(self.known)

    @invariant()
    def counts_all(self) -> None:
        is_full = len(self.known) >= self.most
        for sender in "xyz":
            own = sum(each == ("", sender) for each in self.known.values())
            may = not is_full and own < most_of_one(self.most)
            assert self.opened.may_add(("", sender)) == may
        assert len(self.opened) == len(self.known)


TestAgainstASet = AgainstASet.TestCase


async def stored(*inbounds: Inbound) -> MemoryStore:
    store = MemoryStore()
    rows = tuple(as_accept(each, 1.0) for each in inbounds)
    await store.commit(Commit(at=1.0, accepts=rows))
    return store


async def test_what_is_not_settled_waits_page_after_page() -> None:
    store = await stored(*(words(number=number) for number in range(PAGE + 2)))
    await store.commit(Commit(at=2.0, settles=(Settle("m0", "replied", "ok"),)))
    expected = {f"m{number}" for number in range(1, PAGE + 2)}
    assert (await unanswered(store, "fake")).keys() == expected


async def test_copies_and_delegations_wait_for_no_answer_of_their_own() -> None:
    copy = words(number=2, correlation_id="m1", copy_of=1, agent="ben")
    chain = DelegationChain(agents=("anna", "ben"))
    task = words(number=3, correlation_id="m1", chain=chain)
    alone = words(number=4, correlation_id="m0", chain=chain)
    store = await stored(words(), copy, task, alone)
    assert await unanswered(store, "fake") == {"m1": ("", words().sender_id)}


async def test_other_connectors_and_what_cannot_be_read_are_left_out() -> None:
    store = await stored(words(), words(number=2, address=Address("other", "room")))
    whole = as_accept(words(number=3), 1.0)
    garbled = msgspec.structs.replace(whole, body=b"\xff{")
    await store.commit(Commit(at=1.0, accepts=(garbled,)))
    assert await unanswered(store, "fake") == {"m1": ("", words().sender_id)}


async def test_what_other_nodes_answer_is_counted_by_them() -> None:
    store = await stored(words(), words(number=2, address=Address("fake", "there")))
    part = chat_partition("fake", "there")
    found = await unanswered(store, "fake", lambda _, found: found == part)
    assert found.keys() == {"m2"}
