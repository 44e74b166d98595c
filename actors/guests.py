"""Whom owners have let in, for whoever must not wait; and what `pairing` is told.

The list is shared by actors on the kernel thread: `pairing` alone writes it, connectors
read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.messages import Address
from actors.rules.pairing import Guest, Request

if TYPE_CHECKING:
    from collections.abc import Iterable


class GuestList:
    """The accounts that were let in, each as `connector/sender_id`."""

    def __init__(self) -> None:
        self._accounts: frozenset[str] = frozenset()
        self._is_read = False

    @property
    def is_read(self) -> bool:
        """Whether the store has been read: until then nobody is surely a stranger."""
        return self._is_read

    def __contains__(self, account: str) -> bool:
        """Whether an account was let in."""
        return account in self._accounts

    def replace(self, accounts: Iterable[str]) -> None:
        """Know these, as the store has them."""
        self._accounts, self._is_read = frozenset(accounts), True


class Knock(msgspec.Struct, frozen=True):
    """To `pairing`: a stranger wrote in a direct chat; their words stay outside."""

    account: str
    name: str
    address: Address


class ReadGuests(msgspec.Struct, frozen=True):
    """To `pairing`: another program has changed the store; read all rows again."""


class ListGuests(msgspec.Struct, frozen=True):
    """To `pairing`, asked: who asks, and who was let in? See `GuestBook`."""


class GuestBook(msgspec.Struct, frozen=True):
    """Who asks to be let in, and who was."""

    requests: tuple[Request, ...]
    """Those whose codes hold."""

    guests: tuple[Guest, ...]
    now: float
    """Unix seconds."""


class DecideRequest(msgspec.Struct, frozen=True):
    """To `pairing`, asked: an owner typed this code. See `Decided`."""

    code: str
    by: str
    """The owner, as `connector/sender_id`."""

    is_approved: bool


class RevokeGuest(msgspec.Struct, frozen=True):
    """To `pairing`, asked: an owner says this account may write no more."""

    account: str
    by: str


class Decided(msgspec.Struct, frozen=True):
    """What came of an owner's word."""

    outcome: Literal["done", "unknown", "too_many", "full"]
    """`too_many` wrong codes; `full`: as many as may be were let in."""

    account: str = ""
    name: str = ""
