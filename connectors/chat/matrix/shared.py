"""What all accounts of one homeserver share: metrics, settings, and caches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from connectors.chat.matrix.events import Reason
from connectors.chat.metrics import Family, PlatformCounters, PlatformMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connectors.chat.bookmarks import Bookmarks
    from connectors.chat.inbound import SeenMessages
    from connectors.chat.matrix.api import Homeserver
    from connectors.chat.matrix.inbound import Quotes
    from connectors.chat.matrix.listener import InvitePolicy
    from connectors.chat.matrix.platform import MatrixConfig
    from connectors.chat.matrix.rooms import MatrixRooms
    from runtime.clock import Clock
    from runtime.ids import IdSource


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "old",
        "encrypted_room",
        "refused",
        "lost",
        "joined",
        "declined",
        "not_joined",
        "media_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`seen`: another account submitted it. `old`: it was written before the account joined.
`not_joined`: an invitation was accepted in vain. The rest is about invitations, rooms
and files."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_matrix_events",
        "What became of what homeservers sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_matrix_synced_timestamp_seconds",
        "When an account last heard from its homeserver, in Unix seconds.",
    ),
    up=Family("callboard_matrix_up", "1 while an account hears its homeserver."),
    reconnects=Family(
        "callboard_matrix_reconnects",
        "How often an account heard from its homeserver again after trouble.",
    ),
    gaps=Family(
        "callboard_matrix_gaps",
        "Gaps in a room's messages: filled, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class MatrixShared:
    """All that the accounts on one homeserver share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: MatrixConfig
    users: Mapping[str, str]
    """Our agents by the ids of their accounts, in the order of the settings."""

    homeserver: Homeserver
    policy: InvitePolicy
    rooms: MatrixRooms
    seen: SeenMessages
    quotes: Quotes
    bookmarks: Bookmarks
    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    received_sign: Callable[[], str]
    """Gives the sign at messages that are worked on; empty: there is none here."""
