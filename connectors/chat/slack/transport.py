"""The transport of Slack: several agents' apps in one workspace.

Each app has its own listener, so that each is supervised by itself. If several of them
hear a message, one submits it. An agent's answers go out by its own app.
"""

from __future__ import annotations

from functools import partial

import trio

from actors.errors import DeliveryBusyError, DeliveryUnknownError
from actors.messages.deliveries import Abilities, Delivery, Typing
from connectors.chat.accounts import (
    AccountsTransport,
    Bookmarks,
    ConnectorShelf,
    PlatformMetrics,
    StoredBookmarks,
    prefixed,
    typeable,
)
from connectors.chat.inbound import SeenMessages
from connectors.chat.platforms import TransportParts
from connectors.chat.requests import LostError, RefusedError, text, translated
from connectors.chat.slack import senders as reconciling
from connectors.chat.slack.account import SlackAccount, SlackWire
from connectors.chat.slack.events import is_ts, message_id
from connectors.chat.slack.inbound import SlackPeople
from connectors.chat.slack.listener import SlackListener
from connectors.chat.slack.markup import message, whisper
from connectors.chat.slack.platform import PLATFORM, SlackConfig
from connectors.chat.slack.sdk import SdkWire
from connectors.chat.slack.senders import (
    METRICS,
    SlackChannels,
    SlackPresence,
    SlackSenders,
    SlackShared,
    SlackUploads,
)
from runtime.telemetry.logs import EventLog

LOG = EventLog("slack")

TYPING_FOR = 100.0
"""Seconds after which it is shown anew; Slack shows it for two minutes."""

MARKS = "slack_mark"
"""Kind of the rows that keep up to where each app has read everything."""


class SlackTransport(AccountsTransport[SlackAccount, SlackListener]):
    """The apps in one workspace; see the port."""

    needs_loop = True
    """slack_sdk lives on the asyncio loop."""

    def __init__(
        self,
        name: str,
        config: SlackConfig,
        parts: TransportParts,
        bookmarks: Bookmarks,
        wire: SlackWire,
    ) -> None:
        accounts = {
            agent: SlackAccount(agent, account, config.request_timeout)
            for agent, account in config.accounts.items()
        }
        self._shared = SlackShared(
            connector=name,
            config=config,
            accounts=accounts,
            wire=wire,
            rooms=SlackChannels(accounts),
            people=SlackPeople(parts.clock),
            seen=SeenMessages(),
            bookmarks=bookmarks,
            metrics=PlatformMetrics(parts.once(METRICS), name),
            gates=parts.gates,
            clock=parts.clock,
            ids=parts.ids,
        )
        self._senders = SlackSenders(accounts, self._shared.rooms)
        self._uploads = SlackUploads(parts.blobs)
        self._name = parts.shown
        self.presence = SlackPresence(self._senders, parts.shown)
        listeners = {
            agent: SlackListener(account, self._shared)
            for agent, account in accounts.items()
        }
        super().__init__(LOG, accounts, listeners)

    @property
    def abilities(self) -> Abilities:
        """The abilities: what was said bears our id, and is found by it."""
        config = self._shared.config
        return Abilities(
            can_look_up=True,
            max_part_chars=PLATFORM.limits.part,
            measure=PLATFORM.limits.measure,
            pace=config.pace,
            paces_threads=True,
            shows_typing=True,
            typing_for=TYPING_FOR,
            ends_typing=True,
            takes_back=True,
            draft_pace=config.draft_pace,
            files=PLATFORM.takes_files,
        )

    async def deliver(self, delivery: Delivery) -> str:
        """Send one message to its channel; see the port."""
        channel = delivery.address.chat
        account = self._senders.choose(delivery.account, channel)
        known = self._shared.said.receipt_of(delivery.id)
        if known is not None:
            await trio.lowlevel.checkpoint()
            return known
        words = prefixed(delivery, account.agent, self._name)
        words = typeable(delivery, words, self._before_command(delivery, account))
        with translated():
            receipt = await self._whisper(delivery, words, account)
            receipt = receipt or await self._say(delivery, words, account)
        self._shared.said.note(delivery.id, receipt, words, account.agent)
        return receipt

    def _before_command(self, delivery: Delivery, account: SlackAccount) -> str:
        """Return what is typed before a command; in threads Slack knows no slashes."""
        is_in_thread = bool(delivery.address.thread)
        own = f"{self._shared.config.slash_command} "
        return f"@{account.agent} /" if is_in_thread else own

    async def _say(self, delivery: Delivery, words: str, account: SlackAccount) -> str:
        """Say a delivery in its channel or thread; gives the message's id."""
        if delivery.file is not None:
            return await self._uploads.say(delivery, delivery.file, words, account)
        answer = await account.ask("chat.postMessage", message(delivery, words))
        ts = text(answer.get("ts"))
        if not is_ts(ts):
            raise LostError("Slack's answer names no message")
        return message_id(delivery.address.chat, ts)

    async def _whisper(
        self, delivery: Delivery, words: str, account: SlackAccount
    ) -> str:
        """Show the runtime's answer to a slash command to its sender alone.

        Returns:
            A receipt, which no edit finds; empty: it is to be said in the channel.
        """
        url = self._shared.response_urls.get(delivery.reply_to)
        is_for_one = delivery.kind == "notice" and not delivery.is_aside
        if url is None or not is_for_one:
            return ""
        try:
            await account.respond(url, whisper(words))
        except RefusedError as error:
            LOG.info("command answered in its channel", why=str(error))
            return ""
        return f"{delivery.address.chat}/whisper-{delivery.id}"

    async def look_up(self, delivery: Delivery) -> str | None:
        """Look for words by the mark that they bear, for a file by what it is."""
        account = self._senders.choose(delivery.account, delivery.address.chat)
        try:
            with translated():
                if delivery.file is not None:
                    others = self._shared.said.others(delivery.id)
                    return await self._uploads.find(delivery, account, others)
                is_it = partial(reconciling.bears, delivery)
                return await reconciling.find(delivery, account, is_it)
        except DeliveryUnknownError as error:
            raise DeliveryBusyError(str(error)) from error

    def show_typing(self, typing: Typing) -> None:
        """Show in an assistant's thread that an agent is writing, or no longer."""
        account, place = self.accounts.get(typing.agent), typing.address
        is_assistants = bool(place.thread) and place.chat.startswith("D")
        # Nobody is seen to write for an agent without an app, nor anywhere else.
        if account is not None and is_assistants:
            account.typing.show((place.chat, place.thread), is_over=typing.is_over)


def make_transport(
    name: str, config: SlackConfig, parts: TransportParts
) -> SlackTransport:
    """Make the transport of one workspace's apps."""
    marks = StoredBookmarks(ConnectorShelf(parts.store, parts.clock, name), MARKS)
    wire = SdkWire(parts.bridge, config.base_url, config.request_timeout)
    return SlackTransport(name, config, parts, marks, wire)
