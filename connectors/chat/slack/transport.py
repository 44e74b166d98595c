"""Slack as a place where people write: several agents' apps in one workspace.

Each app listens by itself (`listeners`), so that each is supervised by itself; a
message that several of them hear is handed in by one. What an agent says goes out by
its own app.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from actors.deliveries import Abilities
from actors.errors import DeliveryBusyError, DeliveryUnknownError
from connectors.chat.faults import LostError, translated
from connectors.chat.limits import LIMITS, takes_files
from connectors.chat.loose_json import text
from connectors.chat.seen import Seen
from connectors.chat.slack import reconciling
from connectors.chat.slack.account import SlackAccount
from connectors.chat.slack.content import message
from connectors.chat.slack.figures import SlackFigures
from connectors.chat.slack.following import Following
from connectors.chat.slack.moments import is_ts, message_id
from connectors.chat.slack.people import People
from connectors.chat.slack.presence import SlackPresence
from connectors.chat.slack.rooms import Rooms
from connectors.chat.slack.shared import Shared
from connectors.chat.slack.speaking import Speakers, prefixed
from connectors.chat.slack.typist import TYPING_FOR, Typist
from connectors.chat.slack.uploads import Uploads
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress, Listening
    from connectors.blobs import BlobFolder
    from connectors.chat.bookmarks import Bookmarks
    from connectors.chat.slack.figures import SlackCounters
    from connectors.chat.slack.wire import Wire
    from connectors.gates import Gates
    from connectors.slack_config import SlackConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("slack")


@dataclass(frozen=True)
class Surroundings:
    """What the transport is given by the company."""

    clock: Clock
    ids: IdSource
    counters: SlackCounters
    bookmarks: Bookmarks
    gates: Gates
    wire: Wire
    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send."""


class SlackTransport:
    """The apps in one workspace; see the port.

    Args:
        name: of the connector, as in the settings.
        config: the workspace and the apps.
        given: what the company gives.
    """

    needs_loop = True
    """slack_sdk lives on the asyncio loop."""

    def __init__(self, name: str, config: SlackConfig, given: Surroundings) -> None:
        self._accounts = {
            agent: SlackAccount(agent, account, config.request_timeout)
            for agent, account in config.accounts.items()
        }
        self._shared = Shared(
            connector=name,
            config=config,
            accounts=self._accounts,
            wire=given.wire,
            rooms=Rooms(self._accounts),
            people=People(given.clock),
            seen=Seen(),
            bookmarks=given.bookmarks,
            figures=SlackFigures(given.counters, name),
            gates=given.gates,
            clock=given.clock,
            ids=given.ids,
        )
        self._typists = {
            agent: Typist(account) for agent, account in self._accounts.items()
        }
        self._speakers = Speakers(self._accounts, self._shared.rooms)
        self._uploads = Uploads(given.blobs)
        self._presence = SlackPresence(self._speakers)
        self._listeners = {
            agent: Following(account, self._typists[agent], self._shared)
            for agent, account in self._accounts.items()
        }

    @property
    def abilities(self) -> Abilities:
        """What it can do: what was said bears our id, and is found by it."""
        config = self._shared.config
        return Abilities(
            can_look_up=True,
            max_part_chars=LIMITS["slack"].part,
            markup="slack",
            pace=config.pace,
            paces_threads=True,
            shows_typing=True,
            typing_for=TYPING_FOR,
            ends_typing=True,
            takes_back=True,
            draft_pace=config.draft_pace,
            files=takes_files("slack"),
        )

    @property
    def presence(self) -> SlackPresence:
        """How it edits and reacts."""
        return self._presence

    @property
    def listeners(self) -> Mapping[str, Listening]:
        """The apps' listeners, by agent."""
        return self._listeners

    @property
    def trouble(self) -> str:
        """Why nobody is heard now; empty: one app at least hears Slack."""
        troubles = {agent: each.trouble for agent, each in self._accounts.items()}
        if not all(troubles.values()):
            return ""
        return "; ".join(f"{agent}: {why}" for agent, why in troubles.items())

    async def listen(self, ingress: Ingress) -> None:
        """Follow all apps until cancelled, or until none is let in."""
        async with trio.open_nursery() as nursery:
            for listener in self._listeners.values():
                nursery.start_soon(listener.listen, ingress)

    async def deliver(self, delivery: Delivery) -> str:
        """Say one message in its channel; see the port."""
        channel = delivery.address.chat
        account = self._speakers.choose(delivery.agent, channel)
        known = self._shared.said.receipt_of(delivery.id)
        if known is not None:
            await trio.lowlevel.checkpoint()
            return known
        words = prefixed(delivery.text, delivery.agent, account)
        file = delivery.file
        with translated():
            if file is None:
                receipt = await _say(delivery, words, account)
            else:
                receipt = await self._uploads.say(delivery, file, words, account)
        self._shared.said.note(delivery.id, receipt, words)
        return receipt

    async def look_up(self, delivery: Delivery) -> str | None:
        """Look for words by the mark that they bear, for a file by what it is."""
        account = self._speakers.choose(delivery.agent, delivery.address.chat)
        try:
            with translated():
                if delivery.file is not None:
                    others = self._shared.said.others(delivery.id)
                    return await self._uploads.find(delivery, account, others)
                is_it = partial(reconciling.bears, delivery)
                return await reconciling.find(delivery, account, is_it)
        except DeliveryUnknownError as error:
            raise DeliveryBusyError(str(error)) from error

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: drafts are shown by edits; see `presence`."""

    def show_typing(self, typing: Typing) -> None:
        """Show in an assistant's thread that an agent is writing, or no longer."""
        typist = self._typists.get(typing.agent)
        if typist is not None:  # nobody is seen to write for an agent without an app
            typist.show(typing.address, is_over=typing.is_over)

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Do nothing: who waits for an answer was told by a message."""
        await trio.lowlevel.checkpoint()
        LOG.debug("settled", correlation_id=correlation_id, reason=reason)


async def _say(delivery: Delivery, words: str, account: SlackAccount) -> str:
    """Say a delivery without a file; gives the message's id."""
    answer = await account.ask("chat.postMessage", message(delivery, words))
    ts = text(answer.get("ts"))
    if not is_ts(ts):
        raise LostError("Slack's answer names no message")
    return message_id(delivery.address.chat, ts)
