"""The web page on a real socket, with somebody in front of it who reads along."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from tests.fakes.web.page import ANNA, PageBed, Reading, one_line, open_page, reading


class PageStage:
    """A browser with the chat with one agent open, and its stream."""

    can_repeat = True

    def __init__(self, bed: PageBed, nursery: trio.Nursery) -> None:
        self.bed = bed
        self.transport = bed.transport
        self.ingress = bed.ingress
        self.listening = bed.serving
        self.ended = bed.ended
        self._nursery = nursery
        self._changed = trio.Event()
        self._posting = trio.Lock()
        self._taken = 0
        self._said: dict[str, str] = {}
        self._errors: list[str] = []

    async def write(self, text: str, key: str = "") -> None:
        self._nursery.start_soon(self._post, text, key)

    def acknowledged(self) -> int:
        """Count the forms that were taken."""
        return self._taken

    def shown(self) -> str:
        return "\n".join([*self._said.values(), *self._errors])

    async def wait_change(self) -> None:
        await self._changed.wait()

    async def read_along(self, stream: Reading) -> None:
        """Take in what the stream tells, as the script does."""
        while True:
            event = await stream.next_ever()
            if 'class="said agent' in event.data:
                name = event.data.partition('id="')[2].partition('"')[0]
                self._said[name] = one_line(event.data)
            self._note_change()

    async def _post(self, text: str, key: str) -> None:
        async with self._posting:
            response = await self.bed.say(text, key=key)
        if response.status_code == 202:
            self._taken += 1
        else:
            is_json = "json" in response.headers.get("content-type", "")
            self._errors.append(response.json()["error"] if is_json else response.text)
        self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


@asynccontextmanager
async def open_page_stage() -> AsyncGenerator[PageStage]:
    """Open the chat with one agent until the block ends."""
    async with (
        open_page() as bed,
        reading(bed.client, ANNA) as stream,
        trio.open_nursery() as nursery,
    ):
        stage = PageStage(bed, nursery)
        nursery.start_soon(stage.read_along, stream)
        yield stage
        nursery.cancel_scope.cancel()
