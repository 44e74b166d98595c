"""What the domain lets people set about who may write, and to which agents.

Only shapes, bounds and defaults; what must fit together is checked once for the whole
file in `connectors/access_checks.py`. In every pattern `*` stands for anything and `?`
for one character; an id is its own pattern, whatever stands in it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

People = Literal["listed", "pairing", "anyone"]


class AccessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may write by one connector; unless told otherwise its owners alone."""

    people: People = "listed"
    """Who may write in direct chats beside owners: those who are listed; those, too,
    whom an owner lets in by a code; or anyone."""

    allowed: tuple[str, ...] = ()
    """Who is listed: the platform's ids of people, or patterns."""

    allowed_roles: tuple[str, ...] = ()
    """The same by what somebody is on the platform (`admin`, …), by patterns."""

    denied: tuple[str, ...] = ()
    """Who may never write, whatever else is set; owners may."""

    groups: Literal["handle", "drop"] = "handle"
    """Whether what is written in groups is taken in at all."""

    allowed_chats: tuple[str, ...] = ("*",)
    """In which groups it is: the platform's ids of chats, or patterns."""

    group_people: Literal["admitted", "everyone"] = "admitted"
    """Who may write there: those who may write in direct chats, or everyone."""

    code_for: Annotated[float, Meta(ge=60, le=86_400)] = 600.0
    """Seconds that a code holds."""

    max_codes: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Codes that may hold at once; further strangers are told nothing."""

    code_again_after: Annotated[float, Meta(ge=30, le=86_400)] = 300.0
    """Seconds after which a stranger who goes on writing is told their code again."""

    codes_per_minute: Annotated[int, Meta(ge=1, le=600)] = 10
    """Codes that are told in a minute, over all strangers."""


class AgentAccessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may use which agent. Of all rules that fit, the first counts."""

    may_use: bool
    """Whether whom it fits may use the agent."""

    agent: str = "*"
    """Name of the agent."""

    connector: str = "*"
    """Name of the connector."""

    chat: str = "*"
    """The platform's id of the chat."""

    sender: str = "*"
    """The platform's id of the person."""

    role: str = "*"
    """What the person is on the platform; `*` fits those, too, who are nothing."""
