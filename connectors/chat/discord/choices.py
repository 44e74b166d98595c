"""The commands that somebody chose and that nothing was said about yet."""

from __future__ import annotations

from collections import OrderedDict

import trio

MOST_CHOICES = 1_000
"""Choices that are remembered; what is said about older ones is an ordinary message."""


class Choice:
    """One choice of a command.

    Args:
        token: with which its first answer is said; a secret for a quarter of an hour.
        channel: where it was made.
        agent: whose command it is.
        correlation_id: of what it led to.
        until: trio's time after which its first answer cannot be said any more.
    """

    def __init__(
        self, token: str, channel: str, agent: str, correlation_id: str, until: float
    ) -> None:
        self.token = token
        self.channel = channel
        self.agent = agent
        self.correlation_id = correlation_id
        self.until = until
        self.is_shown = trio.Event()
        """Set once Discord shows that an answer is to come."""

        self.said_by = ""
        """The delivery that is its first answer; empty: none yet."""


class Choices:
    """The choices of late, by the platform's id.

    Args:
        most: choices that are remembered.
    """

    def __init__(self, most: int = MOST_CHOICES) -> None:
        self._most = most
        self._choices: OrderedDict[str, Choice] = OrderedDict()

    def __contains__(self, known: str) -> bool:
        """Tell whether an id is one of a choice."""
        return known in self._choices

    def add(self, known: str, choice: Choice) -> None:
        """Remember a choice."""
        self._choices[known] = choice
        while len(self._choices) > self._most:
            self._choices.popitem(last=False)

    def drop(self, known: str) -> None:
        """Forget a choice."""
        self._choices.pop(known, None)

    def open_to(self, known: str, delivery: str, now: float) -> Choice | None:
        """Give the choice whose first answer a delivery is; None: there is none.

        Args:
            known: what the delivery answers to.
            delivery: its id.
            now: trio's time.
        """
        choice = self._choices.get(known)
        if choice is None or now >= choice.until:
            return None
        return choice if choice.said_by in {"", delivery} else None

    def unanswered(self, correlation_id: str) -> Choice | None:
        """Take out the choice that led to something and got no answer."""
        for known, choice in self._choices.items():
            if choice.correlation_id == correlation_id and not choice.said_by:
                del self._choices[known]
                return choice
        return None
