"""Hands one message in, with what it quotes and what came with it.

Neither is fetched for somebody who may not write: a stranger has us carry nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from actors.messages import Address, Inbound
from connectors.chat.album import MOST_IN_ALL, left_out
from connectors.chat.entrance import Entrance
from connectors.chat.matrix.events import Spoken
from connectors.chat.matrix.files import fetch_file
from connectors.chat.matrix.room import Room
from connectors.chat.matrix.telling import tell
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Attachment
    from actors.transport import Ingress
    from connectors.chat.entrance import Trouble
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.figures import Outcome
    from connectors.chat.matrix.shared import Shared

LOG = EventLog("matrix")


class Heard(msgspec.Struct, frozen=True):
    """A message, and where it was said."""

    spoken: Spoken
    room_id: str
    room: Room


class Handing:
    """The way of one account's messages into the company.

    Args:
        account: which one.
        shared: what all accounts share.
    """

    def __init__(self, account: MatrixAccount, shared: Shared) -> None:
        self._account = account
        self._shared = shared
        self._entrance = Entrance(LOG, self._count, self._tell)

    async def hand_in(self, heard: Heard, ingress: Ingress) -> None:
        """Have a message stored, however long that takes.

        Raises:
            ShutOutError: the account is not let in.
        """
        await self._entrance.hand_in(
            self._bare(heard), ingress, partial(self._filled, heard)
        )

    def _count(self, outcome: Outcome) -> None:
        self._shared.figures.event(self._account.agent, outcome)

    async def _tell(self, inbound: Inbound, words: str, trouble: Trouble) -> None:
        key = f"{trouble}-{inbound.platform_id}"
        await tell(inbound.address.chat, words, key, self._account)

    def _bare(self, heard: Heard) -> Inbound:
        """Give a message as it came, with nothing fetched."""
        shared, spoken, room = self._shared, heard.spoken, heard.room
        present = room.present(shared.users) or (self._account.agent,)
        is_direct = room.is_direct(shared.users)
        sender_name = room.name_of(spoken.sender)
        return Inbound(
            id=shared.ids.new(),
            platform="matrix",
            platform_id=spoken.event_id,
            address=Address(shared.connector, heard.room_id, spoken.thread),
            sender_id=spoken.sender,
            sender_name=sender_name,
            text=worded(spoken.text, spoken, sender_name),
            received_at=shared.clock.wall(),
            is_direct=is_direct,
            agent=present[0] if is_direct else "",
            reply_to=spoken.reply_to,
            mentions=tuple(each for each in spoken.mentions if each in present),
            present=present,
            roles=room.roles_of(spoken.sender),
            is_bot=spoken.is_bot,
            platform_fields=specifics(spoken, room),
        )

    async def _filled(self, heard: Heard, inbound: Inbound) -> Inbound:
        """Fetch what a message quotes and what came with it."""
        spoken, quoted = heard.spoken, None
        words, attachments = await self._files(spoken)
        if spoken.reply_to:
            quoted = await self._shared.quotes.quote(
                spoken.reply_to, heard.room_id, heard.room, self._account
            )
        text = worded(words, spoken, inbound.sender_name)
        return msgspec.structs.replace(
            inbound, text=text, quoted=quoted, attachments=attachments
        )

    async def _files(self, spoken: Spoken) -> tuple[str, tuple[Attachment, ...]]:
        """Give the words of a message, and the files that could be had."""
        file = spoken.file
        if file is None:
            return spoken.text, ()
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)
        attachment, why = await fetch_file(file, self._account, most)
        if attachment is not None:
            return spoken.text, (attachment,)
        self._count("media_left_out")
        LOG.warning("file not fetched", event=spoken.event_id, why=why)
        return f"{spoken.text}\n{left_out(file.kind, file.name, why)}".strip(), ()


def worded(words: str, spoken: Spoken, sender_name: str) -> str:
    """Give a message's words as they read in a chat."""
    return f"* {sender_name} {words}" if spoken.kind == "m.emote" else words


def specifics(spoken: Spoken, room: Room) -> dict[str, str]:
    """Keep what only Matrix knows of."""
    found = {"msgtype": spoken.kind, "room_name": room.name}
    if spoken.mentions_room:
        found["mentions_room"] = "true"
    return {name: value for name, value in found.items() if value}
