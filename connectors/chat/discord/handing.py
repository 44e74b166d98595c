"""Hands one message in, with what came with it.

Nothing is fetched for somebody who may not write: a stranger has us carry nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import ChatError, MessageRefusedError, OverloadedError, StoppingError
from actors.messages import Address, Inbound, Quoted
from connectors.chat.discord import content
from connectors.chat.discord.errors import DiscordError
from connectors.chat.discord.files import fetch_file
from connectors.chat.discord.payloads import readable
from connectors.chat.discord.wire import Said, Scene
from connectors.chat.matrix.wire import text
from connectors.chat.waits import Waits
from runtime.errors import KernelError, StoreUnavailableError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.messages import Attachment
    from actors.transport import Ingress
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.shared import Shared

LOG = EventLog("discord")

LATER = (OverloadedError, StoppingError, StoreUnavailableError)
"""Nothing was stored, and it is tried again: Discord keeps the message."""

THREADS = frozenset({10, 11, 12})
"""Types of channels. Source: developers' reference, "Channel Types"."""


class Heard(msgspec.Struct, frozen=True):
    """A message, and where it was said."""

    said: Said
    scene: Scene


class Handing:
    """The way of one bot's messages into the company.

    Args:
        account: which one.
        shared: what all bots share.
    """

    def __init__(self, account: DiscordAccount, shared: Shared) -> None:
        self._account = account
        self._shared = shared

    async def hand_in(self, heard: Heard, ingress: Ingress) -> None:
        """Have a message stored, however long that takes."""
        inbound = await self.bare(heard)
        figures, agent = self._shared.figures, self._account.agent
        try:
            if heard.said.files and await self._insist(ingress.is_admitted, inbound):
                inbound = await self._filled(inbound, heard)
            await self._insist(ingress.accept, inbound)
        except MessageRefusedError as error:
            figures.event(agent, "refused")
            await self._tell(inbound, str(error), "refused")
        except (ChatError, KernelError) as error:
            # It would be refused for ever, and hold back all that comes after it.
            figures.event(agent, "lost")
            LOG.fault("message not taken", error, message=inbound.platform_id)
            await self._tell(inbound, "this message could not be taken", "lost")
        else:
            figures.event(agent, "handed_in")

    async def _insist(
        self, ask: Callable[[Inbound], Awaitable[bool]], inbound: Inbound
    ) -> bool:
        """Ask the company about a message until it answers; the sender is told once."""
        waits = Waits()
        is_told = False
        while True:
            try:
                return await ask(inbound)
            except LATER as error:
                LOG.warning(
                    "message waits", message=inbound.platform_id, why=str(error) or "?"
                )
                if not is_told and not isinstance(error, StoppingError):
                    is_told = True
                    words = f"{error}. Your message is kept, and tried again by itself."
                    await self._tell(inbound, words, "waits")
                await trio.sleep(waits.next())

    async def _tell(self, inbound: Inbound, words: str, why: str) -> None:
        """Tell somebody who waits for an answer that there is none yet."""
        if not (inbound.is_direct or inbound.mentions):
            return
        key = f"{why}-{inbound.platform_id}"
        message = content.message(f"⚠️ {words}", key, inbound.platform_id)
        channel = inbound.address.thread or inbound.address.chat
        try:
            await self._account.ask(lambda bot: bot.say(channel, message))
        except DiscordError as error:
            LOG.warning("notice not said", channel=channel, why=str(error))

    async def bare(self, heard: Heard, *, agent: str = "") -> Inbound:
        """Give a message as it came, with nothing fetched.

        Args:
            heard: the message.
            agent: whom it is for, whatever it says; empty: as it says.
        """
        shared, said, scene = self._shared, heard.said, heard.scene
        ours, is_direct = shared.ours, not said.guild
        named = [ours[each] for each in said.mentions if each in ours]
        mentions = tuple(dict.fromkeys((*named, *scene.called)))
        if is_direct:
            agent, mentions = self._account.agent, ()
        # Whoever is mentioned is there, though its bot may not have heard so yet.
        present = [*scene.present, *mentions]
        return Inbound(
            id=shared.ids.new(),
            platform="discord",
            platform_id=said.id,
            address=await self._address(heard),
            sender_id=said.author,
            sender_name=said.author_name,
            text=readable(said.text, said, scene, ours),
            received_at=shared.clock.wall(),
            is_direct=is_direct,
            agent=agent,
            reply_to=said.reply_to,
            quoted=self._quoted(heard),
            mentions=mentions,
            present=tuple(each for each in shared.accounts if each in present),
            roles=scene.roles,
            is_bot=said.is_bot,
            platform_fields=specifics(heard),
        )

    def _quoted(self, heard: Heard) -> Quoted | None:
        quote, ours = heard.said.quote, self._shared.ours
        if quote is None:
            return None
        said = readable(quote.text, heard.said, heard.scene, ours)
        return Quoted(
            text=said,
            sender_name=quote.author_name,
            agent=ours.get(quote.author, ""),
        )

    async def _address(self, heard: Heard) -> Address:
        channel, homes = heard.said.channel, self._shared.homes
        homes.learn(channel, heard.scene.present)
        parent: str | None = heard.scene.parent
        if not heard.scene.is_known:
            parent = homes.parent(channel)
        if parent is None:
            parent = await self._parent_of(channel)
        homes.learn_parent(channel, parent)
        if parent:
            return Address(self._shared.connector, parent, channel)
        return Address(self._shared.connector, channel)

    async def _parent_of(self, channel: str) -> str:
        """Ask what a channel belongs to that no bot knows: a thread that was asleep."""
        try:
            found = await self._account.ask(lambda bot: bot.look_at(channel))
        except DiscordError as error:
            LOG.warning("channel not known", channel=channel, why=str(error))
            return ""
        return text(found.get("parent_id")) if found.get("type") in THREADS else ""

    async def _filled(self, inbound: Inbound, heard: Heard) -> Inbound:
        """Fetch what came with a message, all at once."""
        found: dict[int, Attachment] = {}
        notes: dict[int, str] = {}
        fetch = partial(self._fetch, heard.said, found, notes)
        async with trio.open_nursery() as nursery:
            for index in range(len(heard.said.files)):
                nursery.start_soon(fetch, index)
        lines = [inbound.text, *(notes[index] for index in sorted(notes))]
        return msgspec.structs.replace(
            inbound,
            text="\n".join(line for line in lines if line),
            attachments=tuple(found[index] for index in sorted(found)),
        )

    async def _fetch(
        self,
        said: Said,
        found: dict[int, Attachment],
        notes: dict[int, str],
        index: int,
    ) -> None:
        file, config = said.files[index], self._shared.config
        attachment, why = await fetch_file(file, config.files, config.max_media_bytes)
        if attachment is not None:
            found[index] = attachment
            return
        self._shared.figures.event(self._account.agent, "media_left_out")
        LOG.warning("file not fetched", message=said.id, why=why)
        name = file.name or "without a name"
        notes[index] = f"[{file.kind} {name} was not fetched: {why}]"


def specifics(heard: Heard) -> dict[str, str]:
    """Keep what only Discord knows of."""
    said, scene = heard.said, heard.scene
    found = {
        "discord_guild_id": said.guild,
        "discord_channel_id": said.channel,
        "guild_name": scene.guild_name,
        "channel_name": scene.name,
        "mentions_everyone": "true" if said.mentions_everyone else "",
    }
    return {name: value for name, value in found.items() if value}
