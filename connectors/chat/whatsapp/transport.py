"""The transport of WhatsApp: agents with numbers of their own.

Messages come in by a gate on the HTTP server (`inbound.py`), answers go out to the
Graph API. WhatsApp knows no id of ours: if the answer to a request gets lost, a status
that brings back our marker shows that the message was sent.
"""

from __future__ import annotations

import trio

from actors.journal.outbox import spoken
from actors.messages.deliveries import Abilities, Delivery, Typing
from actors.transport import Ingress
from connectors.chat.accounts import PlatformMetrics, PlatformTransport
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
from connectors.chat.whatsapp.inbound import (
    METRICS,
    WhatsAppShared,
    WhatsAppSubmitter,
    WhatsAppWebhooks,
)
from connectors.chat.whatsapp.platform import PLATFORM, WhatsAppConfig
from connectors.chat.whatsapp.senders import (
    MEND_WAIT,
    TYPING_FOR,
    WhatsAppPresence,
    WhatsAppSenders,
    WhatsAppTyping,
)
from runtime.telemetry.logs import EventLog

LOG = EventLog("whatsapp")

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


def make_transport(
    name: str, config: WhatsAppConfig, parts: TransportParts
) -> WhatsAppTransport:
    """Make the transport of one app's numbers."""
    return WhatsAppTransport(name, config, parts)
