"""The rows that say which nodes there are, and which node owns what.

A *lease* names something that one node at a time may act for: a part of the
conversations, an account on a chat platform, the scheduler. Its *epoch* grows with
each new owner. Each node writes through one *writer* row, whose *fence* number a
take-over raises: what the old owner sends after that is refused. The *formats* that a
node knows say beside which nodes of other releases it can work.
"""

from __future__ import annotations

from typing import Literal

import msgspec

COMPANY = "company"
"""The lease of the node that does what is done once, and all that is not shared."""

ACCOUNT = "account/"
"""How the lease of a connector begins that calls its platform; its name follows."""

PART = "part/"
"""How the lease of a part of all chats begins; the part's number follows."""

NodeState = Literal["up", "fenced", "left"]
"""It renews its row; another node took over from it; it gave all away and ended."""


class NodeRow(msgspec.Struct, frozen=True):
    """One node, as another one reads it."""

    id: str
    incarnation: int
    """Grows each time the node joins."""

    beat: int
    """Grows while the node is alive; only whether it changes counts."""

    state: NodeState = "up"
    is_drained: bool = False
    """Whether an operator has it give all away, and take nothing meanwhile."""


class LeaseRow(msgspec.Struct, frozen=True):
    """One lease."""

    name: str
    owner: str
    """Id of a node; empty: nobody's yet."""

    epoch: int
    wanted: str = ""
    """The node that its owner is to give it to; empty or the owner: it stays."""


class Fence(msgspec.Struct, frozen=True):
    """What a transaction claims before it writes; the database checks it."""

    node: str
    fence: int
    """The number that the node was given when it joined."""

    group: int
    """Number of the transaction; the writer row keeps the last one."""

    leases: tuple[tuple[str, int], ...] = ()
    """Name and epoch of each lease that it acts for."""


class Member(msgspec.Struct, frozen=True):
    """What a node was given when it joined."""

    incarnation: int
    fence: int
    leases: tuple[tuple[str, int], ...]
    """Name and new epoch of each lease that it owned in its last life."""


class Format(msgspec.Struct, frozen=True):
    """The version of something that nodes share, as a release knows it."""

    version: int
    oldest: int
    """Beside releases that know this version or a later one, it can be used."""


class Formats(msgspec.Struct, frozen=True):
    """All that nodes share, as a release knows it."""

    tables: Format
    protocol: Format
    """Of what they write for each other: bodies of rows, hints, questions, cards."""


def why_apart(mine: Formats, theirs: Formats | None) -> str:
    """Say why nodes of two releases cannot work side by side; empty: they can.

    Args:
        theirs: None: their release does not say.
    """
    if theirs is None:
        return "it does not say beside which releases it can work"
    for what, own, other in (
        ("tables", mine.tables, theirs.tables),
        ("the protocol of nodes", mine.protocol, theirs.protocol),
    ):
        if other.version < own.oldest:
            return (
                f"it knows {what} up to version {other.version}, and this one needs"
                f" others to know version {own.oldest}"
            )
        if own.version < other.oldest:
            return (
                f"this one knows {what} up to version {own.version}, and it needs"
                f" others to know version {other.oldest}"
            )
    return ""
