"""What the chat on the page is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.blobs import BlobFolder
    from connectors.web.page.hub import Hub
    from connectors.web.page.talk import Talk


@dataclass(frozen=True)
class Chat:
    """What its routes are given."""

    talk: Talk
    """What is said; asked in the kernel."""

    agents: Callable[[], tuple[str, ...]]
    """Names those that people can speak to now."""

    hub: Hub
    """The tabs that have a chat open."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send; only looked into."""
