"""Copies of a message that several agents hear: a stored message for each of them.

The router's own part. Each further agent answers and settles its copy; the first one
answers the original.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors.journal import commits
from actors.journal.unsettled import UnroutedMessage
from actors.messages.inbound import Inbound
from actors.messages.state import AttemptHistory
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.errors import DuplicateError, StoreError, StoreUnavailableError
from runtime.store.rows import Commit, Committed
from runtime.telemetry.logs import EventLog

LOG = EventLog("router")


class CopiesStored(msgspec.Struct, frozen=True):
    """A note to the router: the outcome of storing copies for further agents."""

    copies: tuple[Inbound, ...]
    """The original, then its copies."""

    past: AttemptHistory
    """Earlier attempts at the original."""

    outcome: Committed | Exception


class Copies:
    """Makes and finds the copies."""

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._committer = Committer(services.store)

    async def find(
        self, message: UnroutedMessage, agents: Iterable[str]
    ) -> UnroutedMessage:
        """Find out which agents have a copy of a message already.

        A stored decision stays: these agents answer their copies, and never the
        original beside it.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        inbound = message.inbound
        connector = inbound.address.connector
        keys = {(connector, copy_id(inbound, agent)): agent for agent in agents}
        try:
            found = await self._services.store.messages(keys)
        except StoreUnavailableError:
            raise
        except StoreError as error:
            LOG.fault("copies not read", error, correlation_id=inbound.id)
            found = ()
        has = (keys[each.connector, each.platform_id] for each in found)
        return msgspec.structs.replace(message, copied=frozenset(has))

    def store(self, message: UnroutedMessage, agents: tuple[str, ...]) -> None:
        """Store a copy for each agent but the first, and tell the router.

        Args:
            message: the original.
            agents: agents that have no copy yet; at least two.
        """
        copies, router = self._split(message, agents), self._router

        def make() -> Commit:
            now = self._services.clock.wall()
            accepts = tuple(commits.as_accept(each, now) for each in copies[1:])
            return Commit(at=now, accepts=accepts)

        self._committer.submit(
            router,
            make,
            lambda outcome: router.note(CopiesStored(copies, message.past, outcome)),
        )

    def _split(
        self, message: UnroutedMessage, agents: tuple[str, ...]
    ) -> tuple[Inbound, ...]:
        first, *further = agents
        others = len(further) + len(message.copied)
        inbound = msgspec.structs.replace(message.inbound, heard_by=others + 1)
        copies = tuple(
            msgspec.structs.replace(
                inbound,
                id=self._services.ids.new(),
                platform_id=copy_id(inbound, agent),
                agent=agent,
                copy_of=message.number,
            )
            for agent in further
        )
        return (msgspec.structs.replace(inbound, agent=first, others=others), *copies)


def to_be_heard(stored: CopiesStored) -> list[UnroutedMessage]:
    """Give the original and its copies; each names its agent."""
    first, *further = stored.copies
    if isinstance(stored.outcome, DuplicateError):
        # They were stored before a restart, and are routed by their own rows.
        LOG.warning("copies were stored before", correlation_id=first.id)
        further = []
    elif isinstance(stored.outcome, Exception):
        LOG.error("copies not stored", correlation_id=first.id)
        first, further = msgspec.structs.replace(first, others=0), []
    return [UnroutedMessage(first, past=stored.past), *map(UnroutedMessage, further)]


def without_copies(message: UnroutedMessage) -> UnroutedMessage:
    """Give a message for one agent, while others have a copy from before."""
    others = len(message.copied)
    if not others:
        return message
    inbound = msgspec.structs.replace(
        message.inbound, others=others, heard_by=others + 1
    )
    return msgspec.structs.replace(message, inbound=inbound)


def copy_id(inbound: Inbound, agent: str) -> str:
    """Name an agent's copy of a message: always the same. See `Inbound.source_id`."""
    return f"{inbound.platform_id}+{agent}"
