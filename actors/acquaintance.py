"""What is known of people, for whoever must not wait; and what `people` is told.

The cache is shared by actors on the kernel thread: `people` alone writes it, everybody
else reads. Whom it does not know yet is a stranger with the settings' language.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.rules.identity import Person
from actors.rules.recent import Recent

# Chosen: one is half a kilobyte; five megabytes hold those who wrote last.
MOST_KNOWN = 10_000


class Acquaintances:
    """The people learnt of last, by account; those learnt of longest ago make room.

    Args:
        most: how many accounts it holds.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._known: Recent[str, Person] = Recent(most)

    @property
    def maxlen(self) -> int:
        """Say how many it holds at most."""
        return self._known.maxlen

    def __len__(self) -> int:
        """Say how many accounts are known."""
        return len(self._known)

    def find(self, account: str) -> Person | None:
        """Give the person behind an account; None: not known here, or not yet."""
        return self._known.get(account)

    def needs(self, account: str) -> bool:
        """Whether more is to be learnt of somebody: who it is, what they speak."""
        person = self._known.get(account)
        return person is None or not (person.is_welcomed and person.language)

    def keep(self, account: str, person: Person) -> None:
        """Know who is behind an account."""
        self._known[account] = person

    def forget(self, account: str) -> None:
        """Know an account no longer."""
        self._known.pop(account, None)

    def clear(self) -> None:
        """Know nobody: somebody else has changed what is stored."""
        self._known.clear()


class Met(msgspec.Struct, frozen=True):
    """To `people`: somebody wrote this."""

    account: str
    name: str
    text: str


class FindPerson(msgspec.Struct, frozen=True):
    """To `people`, asked: who is this? The answer is a `Person`."""

    account: str


class ChangePerson(msgspec.Struct, frozen=True):
    """To `people`, asked or told: change what somebody may say of themselves.

    What is None stays as it is. The answer is the `Person` as it is stored.
    """

    account: str
    language: str | None = None
    """ISO 639-1, chosen by them; empty: to be recognised again."""

    model: str | None = None
    provider: str | None = None
    personality: str | None = None
    """How they want to be spoken to (F249); cut if it is too long."""


class ShowCode(msgspec.Struct, frozen=True):
    """To `people`, asked: make a code for this account. The answer is a `Code`."""

    account: str


class Code(msgspec.Struct, frozen=True):
    """What is to be typed on the other account."""

    code: str
    seconds: float
    """How long it holds."""


class TypeCode(msgspec.Struct, frozen=True):
    """To `people`, asked: this was typed on this account. See `Linked`."""

    account: str
    code: str


class LinkAccounts(msgspec.Struct, frozen=True):
    """To `people`, asked: an owner says these are one person. See `Linked`."""

    account: str
    other: str
    by: str
    """The owner, as `connector/sender_id`."""


class UnlinkAccount(msgspec.Struct, frozen=True):
    """To `people`, asked: this account is somebody else again. See `Linked`."""

    account: str
    by: str


class Linked(msgspec.Struct, frozen=True):
    """What came of linking or unlinking."""

    outcome: Literal["done", "unknown", "own", "too_many", "nothing"]
    """`nothing`: they were one already, or no two; or have too many accounts."""

    person: Person | None = None
    """With `done`: the person as it is now."""


class ForgetPeople(msgspec.Struct, frozen=True):
    """To `people`: another program has changed the store; read everybody again."""
