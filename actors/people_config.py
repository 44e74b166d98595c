"""What the domain lets people set about people, and about what they may command."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Who = Literal["everyone", "admins", "owners", "nobody"]
"""`admins`: owners, and those whom the platform calls admins of the chat."""

CommandWord = Literal[
    "clear",
    "cost",
    "forget",
    "language",
    "link",
    "memory",
    "model",
    "models",
    "new",
    "queue",
    "skills",
    "start",
    "status",
    "tasks",
    "unlink",
    "who",
    "whoami",
]
"""Commands that may be kept from people; what each does is in `rules/commands.py`."""


class PeopleConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is learnt of people."""

    language: Annotated[str, Meta(pattern="^[a-z]{2,3}$")] = "en"
    """ISO 639-1 code of the language the runtime speaks with those whose own is not
    known, or has no translation."""

    propose_links: bool = True
    """Whether somebody is told, when they ask, that a person of a like name writes on
    another platform."""


class CommandsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may use which command."""

    who: dict[CommandWord, Who] = {}
    """Who may use a command, where that is not as usual."""

    who_in_groups: dict[CommandWord, Who] = {}
    """The same, in chats that several people share."""

    models: tuple[str, ...] = ("*",)
    """Models that people may choose, by patterns of their names."""

    answer_within: Annotated[float, Meta(gt=0, le=30)] = 3.0
    """Seconds that looking something up for a command may take."""
