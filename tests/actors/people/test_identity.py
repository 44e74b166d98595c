"""Proves how accounts become one person's and their own again; never by likeness."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.people.identity import (
    MOST_ALIASES,
    PeopleChange,
    Person,
    bucket,
    folded,
    is_alike,
    link,
    propose,
    unlink,
)

ANNA = Person("discord/1", name="Anna Lopez", language="es", model="smart")
ANA = Person("telegram/2", name="Ana López", personality="brief")


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Anna Lopez", "anna LÓPEZ", True),
        ("Lopez, Anna", "Anna Lopez", True),
        ("Jon Smith", "John Smith", True),
        ("Anna", "Ben", False),
        ("Anna Lopez", "Anton Lopes", False),
        ("Jo", "Jo", False),
        ("", "", False),
        ("🙂", "🙂", False),
    ],
)
def test_names_are_alike_or_not(one: str, other: str, alike: bool) -> None:  # noqa: FBT001  a table
    assert is_alike(one, other) is alike
    assert is_alike(other, one) is alike


@given(st.text())
def test_any_name_can_be_compared(name: str) -> None:
    assert folded(folded(name)) == folded(name)
    assert folded(name).startswith(bucket(name))


def test_only_accounts_of_other_platforms_are_proposed() -> None:
    same = Person("discord/9", name="Anna Lopez")
    assert propose(ANNA, [ANA, same, ANNA]) == ("telegram/2",)


def test_linking_keeps_what_the_first_one_said_and_takes_what_is_missing() -> None:
    change = link(ANNA, ANA)
    assert change is not None
    joined, left = change.people
    assert joined.accounts == ("discord/1", "telegram/2")
    assert (joined.language, joined.model, joined.personality) == (
        "es",
        "smart",
        "brief",
    )
    assert left == ANA
    assert change.whose == {"telegram/2": "discord/1"}
    assert joined.scopes == ("person:discord/1", "person:telegram/2")


def test_nobody_is_linked_with_themselves_or_with_too_many() -> None:
    assert link(ANNA, ANNA) is None
    crowd = Person("a/0", aliases=tuple(f"b/{n}" for n in range(MOST_ALIASES)))
    assert link(crowd, ANNA) is None
    assert link(ANNA, crowd) is None


def test_unlinking_gives_an_account_back() -> None:
    change = link(ANNA, ANA)
    assert change is not None
    back = unlink(change.people[0], "telegram/2", None)
    assert back is not None
    assert back.whose == {"telegram/2": ""}
    assert back.people[0].aliases == ()


def test_the_first_account_leaves_the_others_together() -> None:
    person = Person("a/1", aliases=("b/2", "c/3"))
    change = unlink(person, "a/1", Person("b/2", name="Bee"))
    assert change == PeopleChange(
        people=(Person("a/1"), Person("b/2", name="Bee", aliases=("c/3",))),
        whose={"b/2": "", "c/3": "b/2"},
    )


@pytest.mark.parametrize("account", ["a/1", "x/9"])
def test_whoever_is_linked_with_nobody_cannot_be_unlinked(account: str) -> None:
    assert unlink(Person("a/1"), account, None) is None


class World:
    """Rows of people, changed as the rules say."""

    def __init__(self, accounts: list[str]) -> None:
        self.people = {each: Person(each) for each in accounts}
        self.whose: dict[str, str] = {}

    def of(self, account: str) -> Person:
        return self.people[self.whose.get(account, account)]

    def take(self, change: PeopleChange | None) -> None:
        if change is None:
            return
        self.people |= {each.id: each for each in change.people}
        for account, owner in change.whose.items():
            self.whose.pop(account, None)
            if owner:
                self.whose[account] = owner


ACCOUNTS = [f"c{n}/{n}" for n in range(6)]
STEPS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(ACCOUNTS), st.sampled_from(ACCOUNTS)),
    max_size=30,
)


@given(STEPS)
def test_every_account_is_always_one_person_s(
    steps: list[tuple[bool, str, str]],
) -> None:
    world = World(ACCOUNTS)
    for links, one, other in steps:
        if links:
            world.take(link(world.of(one), world.of(other)))
        else:
            person = world.of(one)
            first = person.aliases[0] if person.aliases else ""
            world.take(unlink(person, one, world.people.get(first)))
            assert world.of(one).accounts == (one,)
        for account in ACCOUNTS:
            assert account in world.of(account).accounts
        claimed = [
            a
            for p in {id(world.of(x)): world.of(x) for x in ACCOUNTS}.values()
            for a in p.accounts
        ]
        assert sorted(claimed) == ACCOUNTS
