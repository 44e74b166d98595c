"""Who may ask, and for what: keys, their scopes and their channels; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.globs import Globs, globs
from connectors.web.eliza.errors import forbidden
from connectors.web.errors import ApiError
from connectors.web_config import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connectors.web.eliza.shapes import Channel
    from connectors.web_config import WebConfig
    from runtime.secret import Secret

EVERYTHING: frozenset[Scope] = frozenset({"read", "write", "manage", "act", "operate"})


class Caller(msgspec.Struct, frozen=True):
    """Whoever has shown a key, or needs none."""

    name: str
    """Of the key, in the settings; empty: the one that may do everything."""

    scopes: frozenset[Scope] = EVERYTHING
    entity: str = ""
    """Whom alone it speaks for; empty: for anybody."""

    channels: Globs = globs(("*",))

    def may_enter(self, channel: Channel) -> bool:
        """Whether it may see a channel."""
        is_in = not self.entity or self.entity in channel.participants
        return is_in and bool(self.channels.fit(channel.id))

    @property
    def sees_all(self) -> bool:
        """Whether nothing is kept from it."""
        return not self.entity and any(way == "*" for way, _ in self.channels.patterns)

    def may_know(self, entity: str) -> bool:
        """Whether it may see what somebody told in private, wherever that was."""
        return self.entity == entity if self.entity else self.sees_all

    def need(self, scope: Scope) -> None:
        """Check that it may do something of a kind.

        Raises:
            ApiError: 403.
        """
        if scope not in self.scopes:
            raise forbidden(f"this key lacks the scope {scope!r}; use another key")

    def speaker(self, claimed: str) -> str:
        """Say in whose name it speaks.

        Args:
            claimed: who it says that it is; empty: it does not say.

        Raises:
            ApiError: 403: it may not speak for them.
        """
        if not self.entity or "act" in self.scopes:
            return claimed or self.entity
        if claimed and claimed != self.entity:
            raise forbidden(f"this key speaks for {self.entity} and for nobody else")
        return self.entity


NOBODY = Caller("", frozenset())
"""Who has shown no key, where nobody need show one."""


class Keys:
    """The keys of one connector.

    Args:
        config: its settings.
    """

    def __init__(self, config: WebConfig) -> None:
        self._keys: list[tuple[Secret, Caller]] = []
        if config.api_key is not None:
            self._keys.append((config.api_key, Caller("")))
        for name, each in config.keys.items():
            caller = Caller(
                name,
                frozenset(each.scopes),
                each.entity.lower(),
                globs(each.channels),
            )
            self._keys.append((each.key, caller))

    @property
    def are_needed(self) -> bool:
        """Whether anybody must show a key."""
        return bool(self._keys)

    def caller(self, offered: str) -> Caller | None:
        """Give who has shown a key; None: it is none.

        All keys are compared, so that the time tells nothing.
        """
        found = [caller for key, caller in self._keys if key.matches(offered)]
        if found:
            return found[0]
        return None if self.are_needed else Caller("")


def offered_key(headers: Iterable[tuple[str, str]]) -> str:
    """Find the key among the headers: `X-API-KEY`, or a bearer token."""
    found = ""
    for name, value in headers:
        if name.lower() == "x-api-key":
            return value.strip()
        scheme, _, token = value.partition(" ")
        if name.lower() == "authorization" and scheme.lower() == "bearer":
            found = token.strip()
    return found


def not_let_in() -> ApiError:
    """Make the error for who has shown no key that is one."""
    text = "API key required: send the header X-API-KEY with a key of this server"
    return ApiError(401, text, code="invalid_api_key")
