"""By whose app something is said, and what its refusal means to a courier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.errors import (
    DeliveryBusyError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.rooms import Rooms

SOON = 1.0
"""Seconds until an app that is starting is asked again."""


class Speakers:
    """The apps, and which of them speaks.

    Args:
        accounts: by agent, in the order of the settings.
        rooms: which of them are where.
    """

    def __init__(self, accounts: Mapping[str, SlackAccount], rooms: Rooms) -> None:
        self._accounts = accounts
        self._rooms = rooms

    def choose(self, agent: str, channel: str) -> SlackAccount:
        """Find the app that speaks for an agent in a channel.

        Its own if it is there, or nobody knows who is; else, and for the runtime's own
        words, the first of the settings that is: always the same one.

        Raises:
            DeliveryBusyError: none listens now.
        """
        ready = {name: each for name, each in self._accounts.items() if each.is_open}
        if not ready:
            raise DeliveryBusyError("no app listens now", retry_after=SOON)
        own = self._accounts.get(agent)
        if own is not None and not own.is_open and not own.refused:
            raise DeliveryBusyError(f"the app of {agent} is starting", retry_after=SOON)
        present = [name for name in self._rooms.present(channel) if name in ready]
        if agent in ready and (agent in present or not present):
            return ready[agent]
        return ready[present[0] if present else next(iter(ready))]


def prefixed(text: str, agent: str, account: SlackAccount) -> str:
    """Say who speaks, where another's app says it."""
    return text if agent in {"", account.agent} else f"{agent}: {text}"
