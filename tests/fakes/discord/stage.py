"""Discord's place in the contract suite of transports."""

from __future__ import annotations

import trio

from tests.fakes.discord.world import ZOE
from tests.support.chat.discord_bed import DiscordBed


class DiscordStage:
    """A direct chat with one bot, by discord.py itself."""

    can_repeat = False

    def __init__(self, bed: DiscordBed) -> None:
        self.bed = bed
        self.transport = bed.transport
        self.ingress = bed.ingress
        self.listening = trio.CancelScope()
        self.ended = trio.Event()
        self.chat = bed.world.direct(bed.bots["anna"])

    async def write(self, text: str, key: str = "") -> None:
        assert not key
        await self.bed.say(text, channel=self.chat)

    def acknowledged(self) -> int:
        """Count the messages up to the place where the bot reads on."""
        place = self.bed.bookmarks.places.get("anna")
        after = place.after if place is not None else 0
        return sum(
            int(each["id"]) <= after
            for each in self.bed.world.messages[self.chat]
            if each["author"]["id"] == ZOE
        )

    def shown(self) -> str:
        return "\n".join(self.bed.said(self.chat))

    async def wait_change(self) -> None:
        await trio.sleep(0.01)
