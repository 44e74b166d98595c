"""Settings of people and their commands."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Who = Literal["everyone", "admins", "owners", "nobody"]
"""`admins`: owners, and those whom the platform calls admins of the chat."""


class PeopleConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of people."""

    language: Annotated[str, Meta(pattern="^[a-z]{2,3}$")] = "en"
    """ISO 639-1 code of the runtime's language for people whose own is unknown or has
    no translation.
    """

    propose_links: bool = True
    """Whether a person who asks is told of a similar name on another platform."""


class CommandsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may use which command."""

    who: dict[str, Who] = {}
    """Who may use a command, where that differs from the default."""

    who_in_groups: dict[str, Who] = {}
    """The same in group chats."""

    models: tuple[str, ...] = ("*",)
    """Models that people may choose; name patterns."""

    answer_within: Annotated[float, Meta(gt=0, le=30)] = 3.0
    """Time limit of a command's lookups in seconds."""
