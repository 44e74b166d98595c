"""Turns WhatsApp's messages into inbound messages, and submits them with their files.

Files are fetched at once, because their addresses are good for minutes only, and never
for somebody who may not write. Meta waits for our answer meanwhile, so that they have
so long and no longer.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import ChatError, MessageRefusedError, OverloadedError, StoppingError
from actors.messages.inbound import Address, Attachment, Inbound
from actors.rules.text.limits import RecentMap
from connectors.chat.errors import BusyError, PlatformError
from connectors.chat.inbound import MOST_IN_ALL, left_out, words_of
from connectors.chat.whatsapp import content
from runtime.errors import KernelError, StoreUnavailableError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.transport import Ingress
    from connectors.chat.whatsapp.events import WhatsAppFile, WhatsAppMessage
    from connectors.chat.whatsapp.shared import WhatsAppShared

LOG = EventLog("whatsapp")

LATER = (OverloadedError, StoppingError, StoreUnavailableError)
"""Nothing was stored; Meta sends it again."""

# Chosen: Meta's second try comes within seconds, its last after 7 days; what is
# forgotten here is known to the database.
MOST_DONE = 10_000

FIRST_WAIT = 0.5
"""Seconds until a busy server is asked for a file again; then twice as long."""


class WhatsAppSubmitter:
    """Submits the messages of people, one of a chat after the other."""

    def __init__(self, shared: WhatsAppShared) -> None:
        self._shared = shared
        self._done: RecentMap[str, bool] = RecentMap(MOST_DONE)
        self._told: RecentMap[str, bool] = RecentMap(MOST_DONE)
        self._chats: dict[str, tuple[trio.Lock, int]] = {}
        """Chats whose messages are being submitted, and how many wait."""

    async def submit(
        self, heard: WhatsAppMessage, ingress: Ingress, until: float
    ) -> bool:
        """Have a message stored, one of a chat after the other.

        Args:
            heard: what was written.
            ingress: who stores it.
            until: when its files must have come (trio's clock).

        Returns:
            False: it is not stored, and is to be sent again.
        """
        lock, waiting = self._chats.get(heard.chat, (trio.Lock(), 0))
        self._chats[heard.chat] = lock, waiting + 1
        try:
            async with lock:
                return await self._submit(heard, ingress, until)
        finally:
            lock, waiting = self._chats.pop(heard.chat)
            if waiting > 1:
                self._chats[heard.chat] = lock, waiting - 1

    async def _submit(
        self, heard: WhatsAppMessage, ingress: Ingress, until: float
    ) -> bool:
        shared = self._shared
        agent = shared.agent_of(heard.number)
        if heard.id in self._done:
            shared.metrics.event(agent, "seen")
            return True
        inbound = self._bare(heard)
        try:
            is_admitted = await ingress.is_admitted(inbound)
            if is_admitted:
                inbound = await self._filled(inbound, heard, until)
            is_new = await ingress.accept(inbound)
        except LATER as error:
            self._later(inbound, error)
            return False
        except MessageRefusedError as error:
            shared.metrics.event(agent, "refused")
            self._tell(inbound, str(error))
        except (ChatError, KernelError) as error:
            # It would be refused for ever, and hold back all that comes with it.
            shared.metrics.event(agent, "lost")
            LOG.fault("message not taken", error, message=heard.id)
            self._tell(inbound, "this message could not be taken")
        else:
            shared.metrics.event(agent, "handed_in" if is_new else "seen")
            if is_new and is_admitted:
                self._note(heard)
        self._done[heard.id] = True
        return True

    def _later(self, inbound: Inbound, error: Exception) -> None:
        shared = self._shared
        shared.metrics.event(inbound.agent, "waits")
        why = str(error) or type(error).__name__
        LOG.warning("message waits", message=inbound.platform_id, why=why)
        if inbound.platform_id not in self._told and not isinstance(
            error, StoppingError
        ):
            self._told[inbound.platform_id] = True
            self._tell(inbound, words_of(error))

    def _note(self, heard: WhatsAppMessage) -> None:
        """Remember what was taken, and show its sender that it was read."""
        shared = self._shared
        shared.newest[heard.chat] = heard.id
        shared.said.learn(heard.chat, heard.id, heard.text, heard.sender_name)
        if shared.config.mark_read:
            read = partial(shared.numbers[heard.number].read, heard.id)
            if not shared.tasks.add("show that a message was read", read):
                shared.metrics.event(shared.agent_of(heard.number), "errand_left_out")

    def _tell(self, inbound: Inbound, words: str) -> None:
        """Tell somebody who waits for an answer that there is none yet."""
        shared = self._shared
        number, person = content.parted(inbound.address.chat)
        body = content.message(person, f"⚠️ {words}", inbound.id, inbound.platform_id)
        say = partial(shared.numbers[number].send, body)
        if not shared.tasks.add("tell somebody that nothing was taken", say):
            shared.metrics.event(inbound.agent, "errand_left_out")

    def _bare(self, heard: WhatsAppMessage) -> Inbound:
        """Return a message as it came, with nothing fetched."""
        shared = self._shared
        shared.windows.heard(heard.chat, heard.at)
        (agent,) = shared.present(heard.chat)
        return Inbound(
            id=shared.ids.new(),
            platform="whatsapp",
            platform_id=heard.id,
            address=Address(shared.connector, heard.chat),
            sender_id=heard.sender,
            sender_name=heard.sender_name,
            text=heard.text,
            received_at=shared.clock.wall(),
            agent=agent,
            wants_drafts=False,
            reply_to=heard.reply_to,
            present=(agent,),
            platform_fields=specifics(heard),
        )

    async def _filled(
        self, inbound: Inbound, heard: WhatsAppMessage, until: float
    ) -> Inbound:
        """Add what a message quotes and what came with it."""
        quoted = self._shared.said.quote(heard.chat, heard.reply_to)
        if heard.file is None:
            return msgspec.structs.replace(inbound, quoted=quoted)
        try:
            got = await self._fetch(heard.file, heard.number, until)
        except PlatformError as error:
            self._shared.metrics.event(inbound.agent, "media_left_out")
            LOG.warning("file not fetched", message=heard.id, why=str(error))
            note = left_out(heard.file.kind, heard.file.name, str(error))
            words = f"{heard.text}\n{note}".strip()
            return msgspec.structs.replace(inbound, quoted=quoted, text=words)
        file = heard.file
        attachment = Attachment(
            kind=file.kind, name=file.name, media_type=file.media_type, content=got
        )
        return msgspec.structs.replace(
            inbound, quoted=quoted, attachments=(attachment,)
        )

    async def _fetch(self, file: WhatsAppFile, number: str, until: float) -> bytes:
        """Fetch a file; a server that is busy is asked again while there is time."""
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)
        wait = FIRST_WAIT
        while True:
            left = until - trio.current_time()
            if left <= 0:
                raise BusyError("there was no time left for it")
            try:
                return await self._shared.numbers[number].media(file.id, most, left)
            except BusyError as error:
                pause = max(wait, error.retry_after or 0.0)
                if trio.current_time() + pause >= until:
                    raise
            await trio.sleep(pause)
            wait *= 2


def specifics(heard: WhatsAppMessage) -> dict[str, str]:
    """Return the fields that only WhatsApp has."""
    found = {
        "type": heard.kind,
        "phone": heard.phone,
        "phone_number_id": heard.number,
        "forwarded": "true" if heard.is_forwarded else "",
    }
    return {name: value for name, value in found.items() if value}
