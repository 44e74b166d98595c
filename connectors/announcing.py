"""Tells other programs of what happens at the edges, outside of any actor's commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.telling import announced, wake_notifiers
from runtime.logs import EventLog
from runtime.rows import Commit, Committed

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.notices import Happened
    from actors.services import Services
    from runtime.ref import ActorRef

LOG = EventLog("webhooks")


class Announcing:
    """Has events stored and sent; on the kernel's thread only.

    Args:
        services: store, clock, ids, and who is told of what.
        find: finds an actor by its name.
    """

    def __init__(
        self, services: Services, find: Callable[[str], ActorRef | None]
    ) -> None:
        self._services = services
        self._find = find

    def tell(self, *happened: Happened) -> None:
        """Store events, without waiting; each is sent once that is durable."""
        entries = announced(happened, self._services)
        if not entries:
            return

        def done(outcome: Committed | Exception) -> None:
            if isinstance(outcome, Committed):
                wake_notifiers(self._find, entries)
            else:
                LOG.warning("event not stored, and told to nobody", why=str(outcome))

        commit = Commit(at=self._services.clock.wall(), entries=entries)
        self._services.store.submit(commit, done)
