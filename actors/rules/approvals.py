"""Which tool calls wait for somebody's leave, and whose word counts; pure (B8).

Each has a short id that people can type. It is made from the call, so that the
question is still answered by the same id when it is asked again after a restart.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.messages import Address

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from actors.messages import Inbound

# Source: Crockford's base 32: no I, L, O or U, which look like others, or swear.
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

SHORTEST = 2
"""Letters of an id, while it is the only one of its kind."""

YES = frozenset({"yes", "y", "ok", "okay", "approve", "approved"})
NO = frozenset({"no", "n", "deny", "denied", "nope"})


class OpenApproval(msgspec.Struct, frozen=True, kw_only=True):
    """One call that waits."""

    id: str
    turn_id: str
    key: str
    """Says which call of the message it is."""

    agent: str
    asker: str
    """Whose words the call goes back to, as `connector/sender_id`."""

    tool: str
    effect: Literal["read", "write", "run"]
    address: Address
    """Where the question stands."""


class Ruling(msgspec.Struct, frozen=True):
    """What somebody's words decide."""

    approval: OpenApproval
    is_approved: bool
    is_lasting: bool = False


class Refused(msgspec.Struct, frozen=True):
    """Why somebody's words decide nothing."""

    reason: Literal["unknown", "not_allowed"]
    text: str
    """For whoever said them."""


def short_id(seed: str, taken: Collection[str]) -> str:
    """Make an id that nobody has: the same for the same call, if that can be.

    Args:
        seed: what the call is known by.
        taken: ids in use.
    """
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big")
    letters = ""
    while len(letters) < SHORTEST or letters in taken:
        number, place = divmod(number, len(LETTERS))
        letters += LETTERS[place]
    return letters


def person(inbound: Inbound) -> str:
    """Say who wrote a message, as `connector/sender_id`."""
    return f"{inbound.address.connector}/{inbound.sender_id}"


def may_decide(
    approval: OpenApproval,
    who: str,
    approvers: Collection[str],
    asker_may: Collection[str],
) -> bool:
    """Whether somebody's word counts.

    Args:
        approval: what waits.
        who: as `connector/sender_id`.
        approvers: who may approve anything.
        asker_may: what whoever asked may approve, by its effect.
    """
    return who in approvers or (who == approval.asker and approval.effect in asker_may)


def is_there(approval: OpenApproval, address: Address) -> bool:
    """Whether a question stands in a chat, in whatever thread."""
    place = approval.address
    return (place.connector, place.chat) == (address.connector, address.chat)


def plain_word(text: str) -> bool | None:
    """Read a message that is nothing but a yes or a no; None if it is not."""
    word = text.strip().rstrip(".!").casefold()
    if word in YES:
        return True
    return False if word in NO else None


def only_one(open_: Iterable[OpenApproval], address: Address) -> OpenApproval | None:
    """Give the one question that stands at an address, if it is the only one."""
    here = [each for each in open_ if each.address == address]
    return here[0] if len(here) == 1 else None
