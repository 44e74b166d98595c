"""QQ for the suite of all transports."""

from __future__ import annotations

import trio

from tests.support.chat.qq_bed import QQBed


class QQStage:
    """A bot and one person, alone with it."""

    can_repeat = True

    def __init__(self, bed: QQBed) -> None:
        self.bed = bed
        self.transport = bed.transport
        self.ingress = bed.ingress
        self.listening = trio.CancelScope()
        self.ended = trio.Event()

    async def write(self, text: str, key: str = "") -> None:
        await self.bed.write(text, **({"id": f"ROBOT1.0_{key}"} if key else {}))

    def acknowledged(self) -> int:
        """Count the messages of the session up to the place that is kept."""
        (session,) = self.bed.gateway.sessions.values()
        done = session.log[: self.bed.place()]
        return sum(each["t"] == "C2C_MESSAGE_CREATE" for each in done)

    def shown(self) -> str:
        return "\n".join(self.bed.server.texts())

    async def wait_change(self) -> None:
        await self.bed.server.wait_change()
