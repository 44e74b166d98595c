"""Settings of access: who may write, to which agents, and who may use which command.

Only types, bounds and defaults; `connectors/settings/checks/access.py` checks what must
fit together. In every pattern `*` matches anything and `?` one character. An id matches
itself, whatever characters it has.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

People = Literal["listed", "pairing", "anyone"]


class AccessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may write through one connector; by default only the owners."""

    people: People = "listed"
    """Who may write in direct chats beside owners: listed people; also people whom an
    owner admits by a pairing code; or everyone.
    """

    allowed: tuple[str, ...] = ()
    """Listed people: the platform's ids, or patterns."""

    allowed_roles: tuple[str, ...] = ()
    """Listed roles on the platform, such as `admin`; patterns."""

    denied: tuple[str, ...] = ()
    """People who may never write, whatever else is set; owners always may."""

    groups: Literal["handle", "drop"] = "handle"
    """Whether messages in groups are accepted at all."""

    allowed_chats: tuple[str, ...] = ("*",)
    """Groups whose messages are accepted: the platform's ids of chats, or patterns."""

    group_people: Literal["admitted", "everyone"] = "admitted"
    """Who may write in groups: people who may write in direct chats, or everyone."""

    tell_strangers: bool = True
    """Whether people who may not write are told whom to ask, once a day in each chat:
    in direct chats, and in groups if they call an agent.
    """

    code_for: Annotated[float, Meta(ge=60, le=86_400)] = 600.0
    """Seconds for which a pairing code is valid."""

    max_codes: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Most valid codes at once; further strangers get no code."""

    code_again_after: Annotated[float, Meta(ge=30, le=86_400)] = 300.0
    """Seconds after which a stranger who keeps writing gets the code again."""

    codes_per_minute: Annotated[int, Meta(ge=1, le=600)] = 10
    """Most codes per minute, and most hints, to all strangers together."""


class AgentAccessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may use which agent. The first matching rule decides."""

    may_use: bool
    """Whether matching people may use the agent."""

    agent: str = "*"
    """Name of the agent."""

    connector: str = "*"
    """Name of the connector."""

    chat: str = "*"
    """The platform's id of the chat."""

    sender: str = "*"
    """The platform's id of the person."""

    role: str = "*"
    """The person's role on the platform; `*` also matches people without a role."""


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
    """Models that people may choose; name patterns. A budget in dollars needs the price
    of each."""
