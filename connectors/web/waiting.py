"""Which requests wait for which answers.

Lives on the edge's loop only. Usually one request waits for a message; a repeated one
(the same `Idempotency-Key`) waits beside the first.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from actors.deliveries import Delivery, Draft
    from connectors.web.exchange import Exchange


class Waiting:
    """Exchanges by correlation id; no more of them than there are connections."""

    def __init__(self) -> None:
        self._exchanges: dict[str, list[Exchange]] = {}

    def __len__(self) -> int:
        """Count the messages that somebody waits for."""
        return len(self._exchanges)

    @contextmanager
    def holding(self, correlation_id: str, exchange: Exchange) -> Generator[None]:
        """Have an exchange told of its answers during the block."""
        held = self._exchanges.setdefault(correlation_id, [])
        held.append(exchange)
        try:
            yield
        finally:
            held.remove(exchange)
            if not held:
                del self._exchanges[correlation_id]

    def all(self) -> Iterator[Exchange]:
        """Give every exchange."""
        for held in tuple(self._exchanges.values()):
            yield from tuple(held)

    def deliver(self, delivery: Delivery) -> bool:
        """Give an answer to all who wait for it; False: nobody does any more."""
        heard = [each.deliver(delivery) for each in self._of(delivery.correlation_id)]
        return any(heard)

    def draft(self, draft: Draft) -> None:
        """Show a piece of an answer to all who wait for it."""
        for exchange in self._of(draft.correlation_id):
            exchange.draft(draft)

    def settle(self, correlation_id: str, reason: str) -> None:
        """Tell all who wait that nothing more will be said."""
        for exchange in self._of(correlation_id):
            exchange.settle(reason)

    def _of(self, correlation_id: str) -> tuple[Exchange, ...]:
        return tuple(self._exchanges.get(correlation_id, ()))
