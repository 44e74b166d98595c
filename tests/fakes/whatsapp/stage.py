"""A number on WhatsApp, with Meta in memory, for the suites of all transports."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from tests.support.chat.whatsapp_bed import ANNA, HERE, WhatsAppBed


class WhatsAppStage:
    """A number and one person, whose messages Meta brings."""

    can_repeat = True

    def __init__(self, nursery: trio.Nursery) -> None:
        self.bed = WhatsAppBed()
        self.transport = self.bed.transport
        self.ingress = self.bed.ingress
        self.listening = trio.CancelScope()
        self.ended = trio.Event()
        self._nursery = nursery
        self._taken = 0

    async def write(self, text: str, key: str = "") -> None:
        await self.bring(text, **({"id": f"wamid.{key}"} if key else {}))

    async def bring(self, text: str, **more: Any) -> None:
        """Have Meta bring a message, again and again until it is taken."""
        message = self.bed.server.message(text, **more)
        body = self.bed.server.webhook(ANNA, message)
        await self._nursery.start(self._call, body)

    def acknowledged(self) -> int:
        """Count the calls that Meta does not repeat."""
        return self._taken

    def shown(self) -> str:
        return "\n".join(self.bed.server.texts())

    async def wait_change(self) -> None:
        await self.bed.server.wait_change()

    async def _call(
        self,
        body: bytes,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        task_status.started()
        is_taken = False
        while not is_taken:
            await self.bed.server.wait(self.bed.is_open)
            is_taken = (await self.bed.call(body)).status == 200
            self._taken += is_taken
            self.bed.server.note_change()
            if not is_taken and self.bed.ingress.error is not None:
                return  # a week later nobody would see it in a test


class WhatsAppPresence:
    """What stands in a chat with a number."""

    agent = "anna"
    address = HERE

    def __init__(self, bed: WhatsAppBed) -> None:
        self.transport = bed.transport
        self._bed = bed

    async def write(self) -> str:
        await self._bed.write("hello")
        return self._bed.ingress.accepted[-1].platform_id

    async def read(self, receipt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        said = {each["id"]: each["text"]["body"] for each in self._bed.server.said}
        return said.get(receipt)

    async def signs(self, message: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        sign = self._bed.server.signs.get((ANNA, message), "")
        return [sign] if sign else []


@asynccontextmanager
async def open_whatsapp() -> AsyncGenerator[WhatsAppStage]:
    """Listen until the block ends."""
    async with trio.open_nursery() as nursery:
        stage = WhatsAppStage(nursery)
        nursery.start_soon(listen, stage)
        await trio.testing.wait_all_tasks_blocked()
        yield stage
        nursery.cancel_scope.cancel()


async def listen(stage: WhatsAppStage) -> None:
    """Listen until the stage's scope is cancelled."""
    with stage.listening:
        await stage.transport.listen(stage.ingress)
    stage.ended.set()
