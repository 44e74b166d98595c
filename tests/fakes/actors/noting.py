"""What is being handed in, noted, should it be cut off."""

from __future__ import annotations

from actors.errors import ChatError
from actors.messages.inbound import Inbound
from actors.transport import Earlier, Ingress, RefusedAttempt
from runtime.errors import KernelError


class Noting:
    """An ingress that notes what is being handed in, should it be cut off.

    Args:
        ingress: the connector's.
    """

    def __init__(self, ingress: Ingress) -> None:
        self._ingress = ingress
        self.in_hand: Inbound | None = None

    async def is_admitted(self, inbound: Inbound) -> bool:
        return await self._ingress.is_admitted(inbound)

    async def accept(self, inbound: Inbound) -> bool:
        self.in_hand = inbound
        try:
            accepted = await self._ingress.accept(inbound)
        except (ChatError, KernelError):
            self.in_hand = None
            raise
        self.in_hand = None
        return accepted

    async def earlier(self, connector: str, platform_id: str) -> Earlier | None:
        return await self._ingress.earlier(connector, platform_id)

    async def withdraw(self, connector: str, platform_id: str) -> None:
        await self._ingress.withdraw(connector, platform_id)

    def refuse(self, attempt: RefusedAttempt) -> None:
        self._ingress.refuse(attempt)
