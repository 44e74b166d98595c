"""The transport of WhatsApp: agents with numbers of their own.

Messages come in by a gate on the HTTP server (`inbound.py`), answers go out to the
Graph API: here it is chosen which number sends, reacts and shows typing. Sent messages
never change. WhatsApp knows no id of ours: if the answer to a request gets lost, a
status that brings back our marker shows that the message was sent.
"""

from __future__ import annotations

from functools import partial

import trio

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.journal.outbox import spoken
from actors.messages.deliveries import Abilities, Delivery, Edit, Reaction, Typing
from actors.messages.inbound import SentFile
from actors.rules.text.limits import RecentMap
from actors.transport import Ingress
from connectors.chat.accounts import (
    PlatformMetrics,
    PlatformTransport,
    prefixed,
    window_closed,
)
from connectors.chat.platforms import TransportParts
from connectors.chat.requests import (
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    translated,
)
from connectors.chat.whatsapp import markup
from connectors.chat.whatsapp.account import GraphApi, WhatsAppAccount
from connectors.chat.whatsapp.events import MissingError, WindowError
from connectors.chat.whatsapp.inbound import (
    METRICS,
    WhatsAppShared,
    WhatsAppSubmitter,
    WhatsAppWebhooks,
)
from connectors.chat.whatsapp.platform import PLATFORM, WhatsAppConfig
from connectors.files.blobs import BlobFolder, bytes_of
from runtime.telemetry.logs import EventLog

LOG = EventLog("whatsapp")

MEND_WAIT = 60.0
"""Seconds until an account is tried again that its operator must mend."""

MOST_EXPLAINED = 1_000

OUTSIDE = (
    "this person has not written for 24 hours, and WhatsApp takes nothing for them but"
    " templates (131047; see connectors.<name>.template)"
)


class WhatsAppSenders:
    """Chooses which number sends, and keeps back what WhatsApp does not allow now."""

    def __init__(self, shared: WhatsAppShared, parts: TransportParts) -> None:
        self._shared = shared
        self._name = parts.shown
        self._uploads = WhatsAppUploads(parts.blobs)
        self._explained: RecentMap[str, bool] = RecentMap(MOST_EXPLAINED)
        self._announced: RecentMap[str, bool] = RecentMap(MOST_EXPLAINED)

    def choose(self, chat: str) -> tuple[WhatsAppAccount, str]:
        """Return the number and the person of a chat.

        Raises:
            DeliveryRefusedError: it is none of ours.
        """
        try:
            number_id, person = markup.parted(chat)
        except ValueError as error:
            raise DeliveryRefusedError(str(error)) from error
        number = self._shared.numbers.get(number_id)
        if number is None:
            text = f"no agent has the number {number_id}: see [connectors.…accounts]"
            raise DeliveryRefusedError(text)
        return number, person

    async def send(
        self, delivery: Delivery, number: WhatsAppAccount, person: str
    ) -> str:
        """Say one message; gives its id.

        Raises:
            DeliveryBusyError: it is kept until the person writes again.
            DeliveryRefusedError: it is given up; or the bytes of its file are gone.
            PlatformError: as `Graph.ask`.
        """
        windows, chat = self._shared.windows, delivery.address.chat
        if windows.is_closed(chat, self._shared.clock.wall()):
            return await self._send_outside(delivery, number, person)
        try:
            return await self._send_inside(delivery, number, person)
        except WindowError:
            windows.refused(chat)
            return await self._send_outside(delivery, number, person)

    async def _send_inside(
        self, delivery: Delivery, number: WhatsAppAccount, person: str
    ) -> str:
        file = delivery.file
        media = None if file is None else await self._uploads.bring(file, number)
        marker = markup.marker_of(delivery.id)
        words = prefixed(delivery, number.agent, self._name).rstrip()
        reply_to = self._shown_above(delivery)
        self._shared.said.intend(marker, delivery.address.chat)
        body = markup.message(person, words, marker, reply_to, media)
        try:
            return await number.send(body)
        except WindowError:
            raise
        except RefusedError:
            if not reply_to:
                raise
        # What it was to stand below may be gone, and the words count.
        body = markup.message(person, words, marker, media=media)
        return await number.send(body)

    def _shown_above(self, delivery: Delivery) -> str:
        """Return the message that an answer quotes; empty: it is clear without."""
        newest = self._shared.newest.get(delivery.address.chat, "")
        is_clear = delivery.part > 0 or delivery.reply_to == newest
        return "" if is_clear else delivery.reply_to

    async def _send_outside(
        self, delivery: Delivery, number: WhatsAppAccount, person: str
    ) -> str:
        """Say it as a template; what does not go into it is announced by one.

        Why only announced: the rest is said as it is, once the person has answered.
        """
        shared, template = self._shared, self._shared.config.template
        if template is None or delivery.id in self._announced:
            await trio.lowlevel.checkpoint()
            raise self._outside(delivery)
        file, marker = delivery.file, markup.marker_of(delivery.id)
        words = markup.one_line(prefixed(delivery, number.agent, self._name))
        is_whole = file is None and len(words) <= template.max_chars
        if file is not None:
            words = f"{words} [{file.name}]".strip()
        if len(words) > template.max_chars:
            words = f"{words[: template.max_chars - 1].rstrip()}…"
        if is_whole:
            shared.said.intend(marker, delivery.address.chat)
        body = markup.template(person, template, words, marker if is_whole else "")
        message_id = await number.send(body)
        shared.metrics.event(number.agent, "template")
        if is_whole:
            return message_id
        self._announced[delivery.id] = True
        raise self._outside(delivery)

    def _outside(self, delivery: Delivery) -> DeliveryBusyError | DeliveryRefusedError:
        """Say that somebody's window is closed, to the operator once."""
        shared = self._shared
        is_first = delivery.id not in self._explained
        if is_first:
            self._explained[delivery.id] = True
            number, _ = self.choose(delivery.address.chat)
            shared.metrics.event(number.agent, "window_closed")
        is_kept = shared.config.outside_window == "keep"
        log = LOG if is_first else None
        return window_closed(delivery, OUTSIDE, log, is_kept=is_kept)


TYPING_FOR = PLATFORM.limits.typing_for
"""Seconds; a message of ours ends it, too."""

AGAIN_AFTER = TYPING_FOR - 5.0
"""Seconds until it is told again."""

MOST_CHATS = 5_000


class WhatsAppTyping:
    """Shows that an answer is being written, no more often than WhatsApp needs."""

    def __init__(self, shared: WhatsAppShared) -> None:
        self._shared = shared
        self._shown: RecentMap[str, tuple[str, float]] = RecentMap(MOST_CHATS)

    def show(self, chat: str, now: float) -> None:
        """Show it; it stands below a message, so that there must be one.

        Args:
            now: seconds on a monotonic clock.
        """
        shared = self._shared
        message_id = shared.newest.get(chat, "")
        number_id = chat.partition(":")[0]
        number = shared.numbers.get(number_id)
        before, at = self._shown.get(chat, ("", 0.0))
        is_shown = before == message_id and now - at < AGAIN_AFTER
        if not message_id or number is None or is_shown:
            return
        self._shown[chat] = message_id, now
        read = partial(number.read, message_id, is_typing=True)
        shared.run_soon(number_id, "show that an answer is being written", read)

    def end(self, chat: str) -> None:
        """Note that a message of ours has ended it."""
        self._shown.pop(chat, None)


class WhatsAppPresence:
    """Reactions by the numbers."""

    def __init__(self, speaking: WhatsAppSenders) -> None:
        self._senders = speaking

    async def edit(self, edit: Edit) -> None:
        """Refuse: see the port.

        Raises:
            DeliveryRefusedError: always; WhatsApp's Cloud API knows no edits.
        """
        await trio.lowlevel.checkpoint()
        text = f"WhatsApp cannot change {edit.receipt}: say it anew"
        raise DeliveryRefusedError(text)

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message; a number has one there, the newest. See the port."""
        number, person = self._senders.choose(reaction.address.chat)
        body = markup.reaction(person, reaction.message, reaction.sign)
        try:
            with translated(MEND_WAIT):
                await number.send(body)
        except DeliveryUnknownError:
            # Put twice, it is there once.
            with translated(MEND_WAIT):
                await number.send(body)


# Chosen: what waits for a person waits for a day.
KNOWN_FOR = 86_400.0
"""Seconds in which a file is not brought again; Meta has it for 30 days."""

MOST_KNOWN = 200
"""Files of which it is remembered what Meta calls them."""

BAD_PARAMETER = "100"
"""Meta's number, also for a file of a type that it does not take."""

TAKEN = (
    markup.PICTURES
    | markup.VIDEOS
    | markup.SOUNDS
    | frozenset(markup.OFFICE_FILES.values())
    | {"application/pdf", "text/plain"}
)
"""Types that Meta takes for sure; of others it is asked."""


class WhatsAppUploads:
    """Files that were uploaded to Meta recently.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._known: RecentMap[tuple[str, str, str, str], tuple[str, float]] = (
            RecentMap(MOST_KNOWN)
        )

    async def bring(self, file: SentFile, number: WhatsAppAccount) -> markup.Media:
        """Return what Meta calls a file, after it was brought there.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: as `WhatsAppAccount.upload`.
        """
        kind, now = markup.type_of(file), trio.current_time()
        key = (number.id, file.digest, kind, file.name)
        media_id, until = self._known.get(key, ("", now))
        if now >= until:
            media_id = await self._bring(file, kind, number)
            self._known[key] = media_id, now + KNOWN_FOR
        return markup.Media(media_id, file)

    async def _bring(self, file: SentFile, kind: str, number: WhatsAppAccount) -> str:
        path = bytes_of(self._blobs, file)
        try:
            return await number.upload(file, path)
        except RefusedError as error:
            is_missing = isinstance(error, MissingError)
            if error.code != BAD_PARAMETER or is_missing or kind in TAKEN:
                raise
            # Meta's own words list all types that it takes.
            text = f"WhatsApp takes no files of the type {kind}"
            raise RefusedError(text, error.code) from error


# Chosen: Meta's first status comes within seconds; until then the chat waits.
STATUS_WITHIN = 10.0
"""Seconds in which a message whose answer got lost may show that it is there."""

LOOK_EVERY = 900.0
"""Seconds between looks whether a token is still taken, if nothing is refused."""

LOOK_AGAIN = 60.0
"""Seconds until the next look at one that was not."""


class WhatsAppTransport(PlatformTransport):
    """The numbers of one app; see the port."""

    def __init__(
        self, name: str, config: WhatsAppConfig, parts: TransportParts
    ) -> None:
        super().__init__(LOG)
        self._graph = GraphApi(config.graph_url, parts.network)
        numbers = (
            WhatsAppAccount(agent, account, self._graph, config.request_timeout)
            for agent, account in config.accounts.items()
        )
        self._shared = WhatsAppShared(
            connector=name,
            config=config,
            numbers={number.id: number for number in numbers},
            metrics=PlatformMetrics(parts.once(METRICS), name),
            clock=parts.clock,
            ids=parts.ids,
        )
        self._gates = parts.gates
        self._submitter = WhatsAppSubmitter(self._shared)
        self._senders = WhatsAppSenders(self._shared, parts)
        self.presence = WhatsAppPresence(self._senders)
        self._typing = WhatsAppTyping(self._shared)

    @property
    def abilities(self) -> Abilities:
        """The abilities: nothing is edited, so that no drafts are seen."""
        limits = PLATFORM.limits
        return Abilities(
            max_part_chars=limits.part,
            measure=limits.measure,
            pace=self._shared.config.pace,
            per_minute=self._shared.config.per_minute,
            shows_typing=True,
            typing_for=TYPING_FOR,
            shows_drafts=False,
            files=PLATFORM.takes_files,
        )

    @property
    def trouble(self) -> str:
        """Why no number can answer now; empty: one can, or nobody knows yet."""
        numbers = self._shared.numbers.values()
        if not all(each.trouble for each in numbers):
            return ""
        return "; ".join(f"{each.agent}: {each.trouble}" for each in numbers)

    async def listen(self, ingress: Ingress) -> None:
        """Let Meta in until cancelled."""
        calls = WhatsAppWebhooks(self._shared, self._submitter, ingress)
        name = self._shared.connector
        async with self._graph, trio.open_nursery() as nursery:
            nursery.start_soon(self._shared.tasks.run)
            for number in self._shared.numbers.values():
                nursery.start_soon(self._look_after, number)
            with self._gates.opened((name, ""), calls):
                await trio.sleep_forever()

    async def _look_after(self, number: WhatsAppAccount) -> None:
        """Say whether a number can be used, now and again."""
        was_well: bool | None = None
        try:
            while True:
                is_well = await self._is_well(number, was_well=was_well)
                if is_well is not None:
                    was_well = is_well
                    self._shared.metrics.show(number.agent, is_up=is_well)
                await trio.sleep(LOOK_AGAIN)
                if is_well:
                    with trio.move_on_after(LOOK_EVERY - LOOK_AGAIN):
                        why = await number.refusal()
                        LOG.warning("number not let in", agent=number.agent, why=why)
        finally:
            self._shared.metrics.show(number.agent, is_up=False)

    async def _is_well(
        self, number: WhatsAppAccount, *, was_well: bool | None
    ) -> bool | None:
        """Return whether a token is taken; None: nobody knows now."""
        try:
            shown = await number.show()
        except (ShutOutError, RefusedError) as error:
            if was_well is not False:
                LOG.warning("number cannot be used", agent=number.agent, why=str(error))
            number.trouble = str(error)
            return False
        except PlatformError as error:
            LOG.warning("WhatsApp is away", agent=number.agent, why=str(error))
            return None
        if not was_well:
            LOG.info("number is ready", agent=number.agent, number=shown)
        number.trouble = ""
        return True

    async def deliver(self, delivery: Delivery) -> str:
        """Send one message to its person; see the port."""
        shared, chat = self._shared, delivery.address.chat
        marker = markup.marker_of(delivery.id)
        known = shared.said.find(marker)
        if known:
            await trio.lowlevel.checkpoint()
            return known
        number, person = self._senders.choose(chat)
        with translated(MEND_WAIT):
            try:
                message_id = await self._senders.send(delivery, number, person)
            except LostError:
                message_id = await shared.said.wait(marker, STATUS_WITHIN)
                if not message_id:
                    raise
        shared.said.note(marker, message_id)
        agent = delivery.agent or number.agent
        shared.said.learn(chat, message_id, spoken((delivery,)), agent=agent)
        self._typing.end(chat)
        return message_id

    def show_typing(self, typing: Typing) -> None:
        """Show that an answer is being written."""
        if not typing.is_over:
            self._typing.show(typing.address.chat, self._shared.clock.monotonic())


make_transport = WhatsAppTransport
