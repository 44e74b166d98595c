"""The guests that owners let in, readable at once; and the messages to `pairing`.

The list is shared by actors on the kernel thread: `pairing` alone writes it, connectors
read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.messages.inbound import Address
from actors.people.pairing_rules import Guest, PairingRequest


class GuestList:
    """The accounts of all guests, each as `connector/sender_id`."""

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


class StrangerWrote(msgspec.Struct, frozen=True, kw_only=True):
    """To `pairing`: somebody wrote who may not; the text is not passed on."""

    account: str
    name: str
    address: Address
    answer: Literal["code", "direct_hint", "group_hint"] = "code"
    """What they may be told: a code to be let in by, or only where to ask."""

    speaker: str = ""
    """The agent they called; its account speaks. Empty: any."""

    reply_to: str = ""
    """The platform's id of their message; empty: it is not replied to."""

    language: str = ""
    """The language they are told in; empty: the company's."""


class ReadGuests(msgspec.Struct, frozen=True):
    """To `pairing`: another program has changed the store; read all rows again."""


class ListGuests(msgspec.Struct, frozen=True):
    """To `pairing`, asked: list requests and guests; answered by a `GuestBook`."""


class GuestBook(msgspec.Struct, frozen=True):
    """All open requests, and all guests."""

    requests: tuple[PairingRequest, ...]
    """Those whose codes hold."""

    guests: tuple[Guest, ...]
    now: float
    """Unix seconds."""


class DecideRequest(msgspec.Struct, frozen=True):
    """To `pairing`, asked: an owner typed this code; answered by `RequestDecided`."""

    code: str
    by: str
    """The owner, as `connector/sender_id`."""

    is_approved: bool


class RevokeGuest(msgspec.Struct, frozen=True):
    """To `pairing`, asked: an owner takes an account's right to write away."""

    account: str
    by: str


class RequestDecided(msgspec.Struct, frozen=True):
    """The result of an owner's decision."""

    outcome: Literal["done", "unknown", "too_many", "full"]
    """`too_many` wrong codes; `full`: as many as may be were let in."""

    account: str = ""
    name: str = ""
