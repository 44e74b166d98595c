"""Whose invitations are accepted; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from connectors.chat.loose_json import Json, table, text

if TYPE_CHECKING:
    from collections.abc import Iterable

Invites = Literal["nobody", "owners", "listed", "anyone"]
Verdict = Literal["join", "not_invited", "not_allowed", "encrypted"]

REASONS: dict[Verdict, str] = {
    "not_allowed": "This account accepts invitations only from people whom its"
    " operator has named.",
    "encrypted": "This account can read unencrypted rooms only: invite it to one"
    " that was made without encryption.",
}


class Policy(msgspec.Struct, frozen=True):
    """Who may invite."""

    invites: Invites
    owners: frozenset[str] = frozenset()
    """Ids of those who run this company."""

    listed: tuple[str, ...] = ()
    """Ids, or `*:server` for all of a server."""

    def allows(self, user: str) -> bool:
        """Tell whether somebody's invitation is accepted."""
        match self.invites:
            case "nobody":
                return False
            case "owners":
                return user in self.owners
            case "listed":
                return user in self.owners or is_listed(user, self.listed)
            case "anyone":
                return True


def is_listed(user: str, listed: tuple[str, ...]) -> bool:
    """Tell whether an id, or its server, stands in a list."""
    _, _, server = user.partition(":")
    return user in listed or (server != "" and f"*:{server}" in listed)


def judge(events: Iterable[Json], user: str, policy: Policy) -> tuple[Verdict, str]:
    """Say what to do about an invitation, and who sent it.

    Args:
        events: what the invited may know of the room.
        user: who is invited.
        policy: whose invitations are accepted.
    """
    inviter, is_encrypted = "", False
    for event in events:
        kind, content = event.get("type"), table(event.get("content"))
        is_us = kind == "m.room.member" and event.get("state_key") == user
        if is_us and content.get("membership") == "invite":
            inviter = text(event.get("sender"))
        is_encrypted = is_encrypted or kind == "m.room.encryption"
    if not inviter:
        return "not_invited", ""
    if not policy.allows(inviter):
        return "not_allowed", inviter
    return ("encrypted" if is_encrypted else "join"), inviter
