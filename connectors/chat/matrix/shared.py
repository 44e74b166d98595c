"""What all accounts of one homeserver share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.bookmarks import Bookmarks
    from connectors.chat.matrix.figures import MatrixFigures
    from connectors.chat.matrix.homeserver import Homeserver
    from connectors.chat.matrix.invites import Policy
    from connectors.chat.matrix.quotes import Quotes
    from connectors.chat.matrix.rooms import Rooms
    from connectors.chat.seen import Seen
    from connectors.matrix_config import MatrixConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


@dataclass(frozen=True)
class Shared:
    """One homeserver as this company sees it."""

    connector: str
    """The name of the connector, as in the settings."""

    config: MatrixConfig
    users: Mapping[str, str]
    """Our agents by the ids of their accounts, in the order of the settings."""

    homeserver: Homeserver
    policy: Policy
    rooms: Rooms
    seen: Seen
    quotes: Quotes
    bookmarks: Bookmarks
    figures: MatrixFigures
    clock: Clock
    ids: IdSource
