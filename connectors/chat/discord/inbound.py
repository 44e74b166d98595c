"""Turns Discord's messages into inbound messages, and submits them with their files.

Nothing is fetched for somebody who may not write: a stranger has us carry nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.messages.inbound import Address, Attachment, Inbound, Quoted
from connectors.chat.discord import content
from connectors.chat.discord.events import DiscordMessage, DiscordScene, readable
from connectors.chat.errors import PlatformError
from connectors.chat.inbound import MOST_IN_ALL, NO_ROOM, Album, Submission, left_out
from connectors.chat.lenient_json import text
from connectors.chat.requests import LinkedAttachment, fetch_linked
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.transport import Ingress
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.shared import DiscordShared, Outcome
    from connectors.chat.inbound import Found, Trouble

LOG = EventLog("discord")

THREADS = frozenset({10, 11, 12})
"""Types of channels. Source: developers' reference, "Channel Types"."""


class MessageInScene(msgspec.Struct, frozen=True):
    """A message, and its channel."""

    said: DiscordMessage
    scene: DiscordScene


class DiscordSubmitter:
    """Submits the messages that one bot hears."""

    def __init__(self, account: DiscordAccount, shared: DiscordShared) -> None:
        self._account = account
        self._shared = shared
        self._submission = Submission(LOG, self._count, self._tell)

    async def submit(self, heard: MessageInScene, ingress: Ingress) -> None:
        """Submit a message, however long that takes."""
        fill = partial(self._filled, heard) if heard.said.files else None
        await self._submission.submit(await self.bare(heard), ingress, fill)

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._account.agent, outcome)

    async def _tell(self, inbound: Inbound, words: str, trouble: Trouble) -> None:
        key = f"{trouble}-{inbound.platform_id}"
        message = content.message(words, key, inbound.platform_id)
        channel = inbound.address.thread or inbound.address.chat
        try:
            await self._account.ask(lambda bot: bot.say(channel, message))
        except PlatformError as error:
            LOG.warning("notice not said", channel=channel, why=str(error))

    async def bare(self, heard: MessageInScene, *, agent: str = "") -> Inbound:
        """Return a message as it came, with nothing fetched.

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

    def _quoted(self, heard: MessageInScene) -> Quoted | None:
        quote, ours = heard.said.quote, self._shared.ours
        if quote is None:
            return None
        said = readable(quote.text, heard.said, heard.scene, ours)
        return Quoted(
            text=said,
            sender_name=quote.author_name,
            agent=ours.get(quote.author, ""),
        )

    async def _address(self, heard: MessageInScene) -> Address:
        channel, members = heard.said.channel, self._shared.members
        members.learn(channel, heard.scene.present)
        parent: str | None = heard.scene.parent
        if not heard.scene.is_known:
            parent = members.parent(channel)
        if parent is None:
            parent = await self._parent_of(channel)
        members.learn_parent(channel, parent)
        if parent:
            return Address(self._shared.connector, parent, channel)
        return Address(self._shared.connector, channel)

    async def _parent_of(self, channel: str) -> str:
        """Ask what a channel belongs to that no bot knows: a thread that was asleep."""
        try:
            found = await self._account.ask(lambda bot: bot.look_at(channel))
        except PlatformError as error:
            LOG.warning("channel not known", channel=channel, why=str(error))
            return ""
        return text(found.get("parent_id")) if found.get("type") in THREADS else ""

    async def _filled(self, heard: MessageInScene, inbound: Inbound) -> Inbound:
        """Fetch what came with a message, all at once."""
        found: dict[int, Attachment] = {}
        notes: dict[int, str] = {}
        album = Album()

        async def fetch(index: int, file: LinkedAttachment) -> None:
            attachment, why = album.settle(file.size, await self._fetch(file))
            if attachment is not None:
                found[index] = attachment
            else:
                notes[index] = self._left_out(heard.said, file, why)

        async with trio.open_nursery() as nursery:
            for index, file in enumerate(heard.said.files):
                if album.claim(file.size):
                    nursery.start_soon(fetch, index, file)
                else:
                    notes[index] = self._left_out(heard.said, file, NO_ROOM)
        lines = [inbound.text, *(notes[index] for index in sorted(notes))]
        return msgspec.structs.replace(
            inbound,
            text="\n".join(line for line in lines if line),
            attachments=tuple(found[index] for index in sorted(found)),
        )

    async def _fetch(self, file: LinkedAttachment) -> Found:
        config = self._shared.config
        most = min(config.max_media_bytes, MOST_IN_ALL)
        return await fetch_linked(file, config.files, most, "Discord")

    def _left_out(self, said: DiscordMessage, file: LinkedAttachment, why: str) -> str:
        """Count a file that does not come along; say so in the words."""
        self._count("media_left_out")
        LOG.warning("file not fetched", message=said.id, why=why)
        return left_out(file.kind, file.name, why)


def specifics(heard: MessageInScene) -> dict[str, str]:
    """Return the fields that only Discord has."""
    said, scene = heard.said, heard.scene
    found = {
        "discord_guild_id": said.guild,
        "discord_channel_id": said.channel,
        "guild_name": scene.guild_name,
        "channel_name": scene.name,
        "mentions_everyone": "true" if said.mentions_everyone else "",
    }
    return {name: value for name, value in found.items() if value}
