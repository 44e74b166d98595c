"""Counts the answers that an exchange still expects; pure.

A person's message is owed one answer. An answer may announce more, for each task
it hands on and each further agent that heard the same words. Those may come in
any order, except that the exchange is not over before its own answer has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.messages.deliveries import Delivery


class Owed:
    """The answers that one message is still to get."""

    __slots__ = ("_has_root", "_left")

    def __init__(self) -> None:
        self._left = 1
        self._has_root = False

    def count(self, delivery: Delivery) -> bool:
        """Take one answer off, and add what it announces.

        Returns:
            Whether the exchange is over.
        """
        self._left += delivery.answers_left - 1
        self._has_root = self._has_root or delivery.is_root
        return self._has_root and self._left <= 0
