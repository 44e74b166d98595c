"""What people are called, and what they are in the workspace."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import trio

from connectors.chat.faults import PlatformError
from connectors.chat.loose_json import Json, table, text
from connectors.chat.shown_name import shown_name

if TYPE_CHECKING:
    from connectors.chat.slack.account import SlackAccount
    from runtime.clock import Clock

MOST_PEOPLE = 5_000
"""People who are remembered."""

KNOWN_FOR = 3_600.0
"""Seconds after which somebody is looked up anew."""

UNKNOWN_FOR = 60.0
"""Seconds after which it is tried again after trouble."""

WITHIN = 2.0
"""Seconds: a message is not held back for long because of a name."""


class Person(msgspec.Struct, frozen=True):
    """One member of the workspace."""

    name: str = ""
    """Empty: it is not known."""

    roles: tuple[str, ...] = ()
    is_bot: bool = False


class People:
    """Who was looked up of late.

    Args:
        clock: how old that is.
        most: people who are remembered.
    """

    def __init__(self, clock: Clock, most: int = MOST_PEOPLE) -> None:
        self._clock = clock
        self._most = most
        self._known: OrderedDict[str, tuple[float, Person]] = OrderedDict()

    async def get(self, user: str, account: SlackAccount) -> Person:
        """Give a person; nobody in particular if Slack does not say."""
        known = self._known.get(user)
        now = self._clock.monotonic()
        if known is not None and now < known[0]:
            return known[1]
        person = await self._look_up(user, account)
        until = now + (KNOWN_FOR if person.name else UNKNOWN_FOR)
        if not person.name and known is not None:
            person = known[1]
        self._known[user] = until, person
        self._known.move_to_end(user)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return person

    async def _look_up(self, user: str, account: SlackAccount) -> Person:
        found: Json = {}
        with trio.move_on_after(WITHIN):
            with suppress(PlatformError):
                answer = await account.ask("users.info", {"user": user})
                found = table(answer.get("user"))
        return read_person(found)


def read_person(said: Json) -> Person:
    """Read what Slack says of somebody."""
    profile = table(said.get("profile"))
    names = (
        profile.get("display_name"),
        profile.get("real_name"),
        said.get("real_name"),
        said.get("name"),
    )
    flags = {"owner": "is_owner", "admin": "is_admin", "guest": "is_restricted"}
    return Person(
        name=next((shown_name(text(each)) for each in names if text(each).strip()), ""),
        roles=tuple(role for role, flag in flags.items() if said.get(flag) is True),
        is_bot=said.get("is_bot") is True,
    )
