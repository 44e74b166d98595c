"""What a transport holds of its connector: the way in, and what became of it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from actors.deliveries import Delivery
from actors.errors import OverloadedError
from actors.ingress import CheckSender, Earlier, RefusedAttempt
from actors.messages import Inbound
from actors.protocol import Receive, Refuse
from runtime.errors import MailboxFullError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from runtime.ref import ActorRef
    from runtime.rows import StoredDelivery
    from runtime.store import Store

LOG = EventLog("connector")


class ConnectorIngress:
    """What a transport holds of its connector; see `actors.transport.Ingress`.

    Args:
        connector: the connector actor.
        store: knows what was accepted earlier.
    """

    def __init__(self, connector: ActorRef, store: Store) -> None:
        self._connector = connector
        self._store = store

    async def is_admitted(self, inbound: Inbound) -> bool:
        """Tell whether somebody may write; see the port."""
        return await self._ask(CheckSender(inbound))

    async def accept(self, inbound: Inbound) -> bool:
        """Store a message; see the port."""
        return await self._ask(Receive(inbound))

    async def _ask(self, question: CheckSender | Receive) -> bool:
        try:
            return bool(await self._connector.ask(question))
        except MailboxFullError as error:
            raise OverloadedError(
                "too many messages at once; try again in a moment"
            ) from error
        except UNANSWERED as error:
            raise OverloadedError(
                "the message was not confirmed; try again in a moment"
            ) from error

    async def earlier(self, connector: str, platform_id: str) -> Earlier | None:
        """Tell what became of a message; see the port."""
        found = await self._store.answered(connector, platform_id)
        if found is None:
            return None
        row = found.message
        is_settled = row.state not in {"accepted", "running"}
        said = (read_delivery(each) for each in found.deliveries)
        return Earlier(
            inbound=msgspec.json.decode(row.body, type=Inbound),
            outcome=f"{row.state}:{row.reason}" if is_settled else "",
            deliveries=tuple(each for each in said if each is not None),
        )

    def refuse(self, attempt: RefusedAttempt) -> None:
        """Have a refused attempt put on record; see the port."""
        # A full mailbox makes it a dead letter, which is counted.
        with contextlib.suppress(MailboxFullError, *UNANSWERED):
            self._connector.tell(Refuse(attempt))


def read_delivery(row: StoredDelivery) -> Delivery | None:
    """Read what the outbox says; None if it cannot be read."""
    try:
        return msgspec.json.decode(row.body, type=Delivery)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Left as it is: a later release may read it, and it keeps no other waiting.
        LOG.fault("delivery cannot be read", error, delivery=row.id)
        return None
