"""Hands one message in, with who wrote it and what came with it.

No file is fetched for somebody who may not write: a stranger has us carry nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from actors.messages import Address, Inbound, Quoted
from connectors.chat.album import MOST_IN_ALL, Album, left_out
from connectors.chat.buttons import UNKNOWN
from connectors.chat.entrance import Entrance
from connectors.chat.faults import PlatformError
from connectors.chat.slack.content import mrkdwn, quiet
from connectors.chat.slack.files import fetch_file
from connectors.chat.slack.moments import is_ts, message_id
from connectors.chat.slack.words import named, plain
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Attachment
    from actors.transport import Ingress
    from connectors.chat.entrance import Trouble
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.events import File, Spoken
    from connectors.chat.slack.figures import Outcome
    from connectors.chat.slack.people import Person
    from connectors.chat.slack.shared import Shared

LOG = EventLog("slack")


class Handing:
    """The way of one app's messages into the company.

    Args:
        account: which one.
        shared: what all apps share.
    """

    def __init__(self, account: SlackAccount, shared: Shared) -> None:
        self._account = account
        self._shared = shared
        self._entrance = Entrance(LOG, self._count, self._tell)

    async def hand_in(self, spoken: Spoken, ingress: Ingress) -> None:
        """Have a message stored, however long that takes."""
        fill = partial(self._filled, spoken) if spoken.files else None
        await self._entrance.hand_in(await self._bare(spoken), ingress, fill)

    def _count(self, outcome: Outcome) -> None:
        self._shared.figures.event(self._account.agent, outcome)

    async def _tell(self, inbound: Inbound, words: str, _: Trouble) -> None:
        place = inbound.address
        said: dict[str, object] = {
            "channel": place.chat,
            "text": mrkdwn(words),
            **quiet(),
        }
        if is_ts(place.thread):
            said["thread_ts"] = place.thread
        try:
            await self._account.ask("chat.postMessage", said)
        except PlatformError as error:
            LOG.warning("notice not said", channel=place.chat, why=str(error))

    async def decline(self, channel: str, user: str) -> None:
        """Tell whoever pressed a button, and them alone, that it stands for nothing."""
        said = {"channel": channel, "user": user, "text": UNKNOWN}
        try:
            await self._account.ask("chat.postEphemeral", said)
        except PlatformError as error:
            LOG.warning("notice not said", channel=channel, why=str(error))

    async def _bare(self, spoken: Spoken) -> Inbound:
        """Give a message as it came, with nothing fetched but names."""
        shared, account = self._shared, self._account
        person = await shared.people.get(spoken.sender, account)
        name = spoken.sender_name if spoken.is_bot else ""
        name = name or person.name or spoken.sender_name or spoken.sender
        here = shared.rooms.present(spoken.channel)
        present = (account.agent,) if spoken.is_direct else here or (account.agent,)
        answers = shared.ours().users.get(spoken.answers, "")
        reply_to = message_id(spoken.channel, spoken.thread) if answers else ""
        said = shared.said.text_of(reply_to)
        return Inbound(
            id=shared.ids.new(),
            platform="slack",
            platform_id=spoken.id,
            address=Address(shared.connector, spoken.channel, self._thread(spoken)),
            sender_id=spoken.sender,
            sender_name=name,
            text=await self._worded(spoken, name),
            received_at=shared.clock.wall(),
            is_direct=spoken.is_direct,
            agent=account.agent if spoken.is_direct else "",
            reply_to=reply_to,
            quoted=Quoted(text=said, agent=answers) if answers else None,
            mentions=tuple(each for each in spoken.mentions if each in present),
            present=present,
            roles=person.roles,
            is_bot=spoken.is_bot or person.is_bot,
            platform_fields=specifics(spoken, account, person),
        )

    def _thread(self, spoken: Spoken) -> str:
        """Say in which thread it is answered; empty: in the channel."""
        is_first = not (spoken.thread or spoken.is_direct or spoken.is_command)
        if is_first and self._shared.config.start_threads:
            return spoken.ts
        return spoken.thread

    async def _worded(self, spoken: Spoken, sender_name: str) -> str:
        """Give a message's words as they read on the screen."""
        ours, people = self._shared.ours().users, self._shared.people
        names = {
            user: ours.get(user) or (await people.get(user, self._account)).name
            for user in named(spoken.text)
        }
        words = plain(spoken.text, lambda user: names.get(user, "")).strip()
        return f"* {sender_name} {words}" if spoken.is_me else words

    async def _filled(self, spoken: Spoken, inbound: Inbound) -> Inbound:
        """Fetch the files that came with a message."""
        attachments: list[Attachment] = []
        notes: list[str] = []
        album = Album()
        for file in spoken.files:
            attachment, note = await self._file(file, spoken, album)
            if attachment is not None:
                attachments.append(attachment)
            else:
                notes.append(note)
        text = "\n".join((inbound.text, *notes)).strip()
        return msgspec.structs.replace(
            inbound, text=text, attachments=tuple(attachments)
        )

    async def _file(
        self, file: File, spoken: Spoken, album: Album
    ) -> tuple[Attachment | None, str]:
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)
        fetch = partial(fetch_file, file, self._account, most)
        attachment, why = await album.fill(file.size, fetch)
        if attachment is not None:
            return attachment, ""
        self._count("media_left_out")
        LOG.warning("file not fetched", message=spoken.id, why=why)
        return None, left_out(file.kind, file.name, why)


def specifics(spoken: Spoken, account: SlackAccount, person: Person) -> dict[str, str]:
    """Keep what only Slack knows of."""
    found = {
        "team": account.team,
        "mentions_room": "true" if spoken.mentions_all else "",
        "is_command": "true" if spoken.is_command else "",
        "sender_roles": ",".join(person.roles),
    }
    return {name: value for name, value in found.items() if value}
