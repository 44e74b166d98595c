"""Persons and their accounts: linking and unlinking; pure.

An *account* is `connector/sender_id`. A person is known by the id of one account, and
may have further ones, its *aliases*. Accounts are linked by the word of the person or
of an owner, never by likeness alone; what an account said for itself before it was
linked stays in its own row, so that unlinking gives it back.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher

import msgspec

# Chosen: eight accounts in all, more than there are platforms; it bounds what is read
# for one person.
MOST_ALIASES = 7

MOST_PROPOSALS = 3

LONGEST_NAME = 200
"""Characters of a name that are kept."""

LONGEST_PERSONALITY = 1_000
"""Characters of how somebody wants to be spoken to."""

# Chosen by trying it on pairs: "Jon Smith" and "John Smith" are 0.95, "Anna" and
# "Anne" 0.75, "Maria Lopez" and "Mario Lopez" 0.91, which is why it only proposes.
LIKENESS = 0.85

# Chosen: "Jo" or "Al" is like too many.
SHORTEST_NAME = 3


class Person(msgspec.Struct, frozen=True, omit_defaults=True):
    """One person, as stored in their row."""

    id: str
    """`connector/sender_id` of the account it is known by."""

    name: str = ""
    language: str = ""
    """ISO 639-1; empty while it is not known."""

    is_language_chosen: bool = False
    """Whether they said so themselves; else it was recognised."""

    is_welcomed: bool = False
    """Whether they wrote here before."""

    model: str = ""
    """Which of `[models.<name>]` they want; empty: the agent's own."""

    provider: str = ""
    """Whose models they want to choose from; empty: any."""

    personality: str = ""
    """How they want to be spoken to."""

    aliases: tuple[str, ...] = ()
    """Their other accounts."""

    proposals: tuple[str, ...] = ()
    """Accounts that may be theirs, by their names."""

    @property
    def accounts(self) -> tuple[str, ...]:
        """All accounts of theirs."""
        return (self.id, *self.aliases)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Under which names facts about them are kept: one for each account."""
        return tuple(f"person:{account}" for account in self.accounts)


class PeopleChange(msgspec.Struct, frozen=True):
    """The rows to write so that accounts are linked, or no longer."""

    people: tuple[Person, ...] = ()
    whose: dict[str, str] = {}
    """By alias: the person it belongs to from now on; empty: to nobody but itself."""


def folded(name: str) -> str:
    """Make names equal that people would call the same: no case, accents, order."""
    plain = unicodedata.normalize("NFKD", name[:LONGEST_NAME]).casefold()
    kept = (c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    return " ".join(sorted("".join(kept).split()))


def bucket(name: str) -> str:
    """Give what names that may be alike have in common: how they begin."""
    return folded(name)[:2]


def is_alike(one: str, other: str) -> bool:
    """Tell whether two names may be one person's."""
    first, second = folded(one), folded(other)
    if min(len(first), len(second)) < SHORTEST_NAME:
        return False
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return matcher.quick_ratio() >= LIKENESS and matcher.ratio() >= LIKENESS


def propose(person: Person, others: Iterable[Person]) -> tuple[str, ...]:
    """Name accounts on other platforms whose names are like this one's."""
    known = {connector_of(account) for account in person.accounts}
    found = [
        other.id
        for other in others
        if other.id not in person.accounts
        and known.isdisjoint(map(connector_of, other.accounts))
        and is_alike(person.name, other.name)
    ]
    return tuple(found[:MOST_PROPOSALS])


def connector_of(account: str) -> str:
    """Name the connector of an account."""
    return account.partition("/")[0]


def link(person: Person, other: Person) -> PeopleChange | None:
    """Make two people one, known by the first one's id.

    Returns:
        None if they are one already, or would have too many accounts.
    """
    aliases = tuple(dict.fromkeys((*person.aliases, other.id, *other.aliases)))
    if person.id == other.id or len(aliases) > MOST_ALIASES:
        return None
    joined = msgspec.structs.replace(
        person,
        aliases=aliases,
        proposals=tuple(p for p in person.proposals if p not in aliases),
        language=person.language or other.language,
        model=person.model or other.model,
        personality=person.personality or other.personality,
    )
    left = msgspec.structs.replace(other, aliases=(), proposals=())
    whose = dict.fromkeys(other.accounts, person.id)
    return PeopleChange(people=(joined, left), whose=whose)


def unlink(person: Person, account: str, heir: Person | None) -> PeopleChange | None:
    """Take one account away from a person.

    Args:
        account: which one; the person's own id leaves its other accounts together.
        heir: what the first alias said for itself, if it has a row.

    Returns:
        None if the account is none of theirs, or the only one.
    """
    if account in person.aliases:
        left = tuple(each for each in person.aliases if each != account)
        alone = msgspec.structs.replace(person, aliases=left)
        return PeopleChange(people=(alone,), whose={account: ""})
    if account != person.id or not person.aliases:
        return None
    first, *others = person.aliases
    alone = msgspec.structs.replace(person, aliases=())
    successor = heir or Person(first, is_welcomed=True)
    successor = msgspec.structs.replace(successor, id=first, aliases=tuple(others))
    return PeopleChange(
        people=(alone, successor), whose={first: "", **dict.fromkeys(others, first)}
    )
