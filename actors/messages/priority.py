"""Priorities of turns that wait for a permit. Pure.

Lower is more urgent.
"""

from __future__ import annotations

from collections.abc import Collection

OWNER = 1
CONDUCTOR = 3
DELEGATION = 4
NORMAL = 5
SCHEDULED = 10


def of_person(connector: str, sender_id: str, owners: Collection[str]) -> int:
    """Return the priority of a person's message.

    Args:
        connector: name of the connector account.
        sender_id: the platform's id of the person.
        owners: accounts of the owners, each as `connector/sender_id`.
    """
    return OWNER if f"{connector}/{sender_id}" in owners else NORMAL


def of_delegation(asked: int, *, is_by_conductor: bool) -> int:
    """Return the priority of a delegated task.

    Args:
        asked: priority of the message that caused the task; an owner's priority is
            kept.
        is_by_conductor: whether the delegating agent is the conductor.
    """
    rank = CONDUCTOR if is_by_conductor else DELEGATION
    return min(asked, rank)
