"""Whose turn comes first when more wait than may run; pure.

Lower is more urgent. Source: FEATURES C5, F284.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

OWNER = 1
CONDUCTOR = 3
DELEGATION = 4
NORMAL = 5
SCHEDULED = 10


def of_person(connector: str, sender_id: str, owners: Collection[str]) -> int:
    """Rank what a person wrote.

    Args:
        connector: name of the account it came in by.
        sender_id: the platform's id of the person.
        owners: who runs this company, each as `connector/sender_id`.
    """
    return OWNER if f"{connector}/{sender_id}" in owners else NORMAL


def of_delegation(asked: int, *, is_by_conductor: bool) -> int:
    """Rank a task that an agent hands on.

    Args:
        asked: priority of the message that the task comes from: an owner's stays
            the owner's.
        is_by_conductor: whether the agent is the one that leads the others.
    """
    rank = CONDUCTOR if is_by_conductor else DELEGATION
    return min(asked, rank)
