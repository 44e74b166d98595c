"""Which tool calls need an approval, and whose answer counts; pure.

Each has a short id that people can type. It is made from the call, so that the
question is still answered by the same id when it is asked again after a restart.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from actors.messages.inbound import Address
from actors.rules.text.codes import LETTERS

SHORTEST = 2
"""Letters of an id, while it is the only one of its kind."""

YES = frozenset({"yes", "y", "ok", "okay", "approve", "approved"})
NO = frozenset({"no", "n", "deny", "denied", "nope"})


MOST_NAMED = 10
"""Questions named in one line."""


class OpenApproval(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call that waits for an approval."""

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


class PostedApproval(msgspec.Struct, frozen=True):
    """A call that waits, and whether people can have read the question."""

    approval: OpenApproval
    shown_at: float = math.inf
    """Monotonic seconds since when the question stands in its chat; never: it does
    not yet."""


class ApprovalTerms(msgspec.Struct, frozen=True):
    """Whose answers count, and from when on."""

    approvers: frozenset[str]
    """Who may approve anything, each as `connector/sender_id`."""

    asker_may: tuple[str, ...]
    """Effects of calls that the asking person may approve."""

    plain_after: float = 1.0
    """Seconds a question has stood before a word that names no id answers it."""

    def admits(self, approval: OpenApproval, who: str) -> bool:
        """Whether somebody's word counts; `who` as `connector/sender_id`."""
        if who in self.approvers:
            return True
        return who == approval.asker and approval.effect in self.asker_may


class ApprovalRuling(msgspec.Struct, frozen=True):
    """What somebody's answer decides."""

    approval: OpenApproval
    is_approved: bool
    is_lasting: bool = False


class ApprovalRefused(msgspec.Struct, frozen=True):
    """Why somebody's answer decides nothing."""

    reason: Literal["unknown", "not_allowed", "ambiguous", "too_early"]
    text: str
    """Reply to the person who gave the command."""

    agent: str = ""
    """Who waits for such words; empty: nobody does."""


def short_id(seed: str, taken: Collection[str]) -> str:
    """Make an id that nobody has: the same for the same call, if that can be."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest(), "big")
    letters = ""
    while len(letters) < SHORTEST or letters in taken:
        number, place = divmod(number, len(LETTERS))
        letters += LETTERS[place]
    return letters


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


def one_meant(
    here: Sequence[PostedApproval], arrived_at: float, plain_after: float
) -> OpenApproval | ApprovalRefused | None:
    """Find the question that words without an id answer.

    Words that were written before the question could be read are not an answer to it.

    Args:
        here: what waits at the address of the words.
        arrived_at: when the words came in, in monotonic seconds.
        plain_after: see `ApprovalTerms`.

    Returns:
        The question; why none of them can be told; None: they are no answer.
    """
    if not any(each.shown_at <= arrived_at for each in here):
        return None
    first = here[0].approval
    if len(here) > 1:
        named = ", ".join(_named(each.approval) for each in here[:MOST_NAMED])
        more = f" and {len(here) - MOST_NAMED} more" if len(here) > MOST_NAMED else ""
        text = (
            f"{len(here)} requests are open here: {named}{more}. Say which one:"
            f" /approve {first.id} or /deny {first.id}, for example."
        )
        return ApprovalRefused("ambiguous", text, first.agent)
    if arrived_at < here[0].shown_at + plain_after:
        text = (
            f"That came so soon after the question {first.id} that it may have been"
            f" meant for something else. Say it again, or /approve {first.id} or"
            f" /deny {first.id}."
        )
        return ApprovalRefused("too_early", text, first.agent)
    return first


def _named(approval: OpenApproval) -> str:
    return f"{approval.id} ({approval.agent}, `{approval.tool}`)"
