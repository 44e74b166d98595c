"""WhatsApp as a place where people write: agents with numbers of their own.

Messages come in by a gate on the HTTP server (`calls.py`), answers go out to the Graph
API. WhatsApp knows no id of ours: whether a message is there whose answer got lost is
seen by its statuses, which bring back the marker we gave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from actors.deliveries import Abilities
from actors.delivering import spoken
from actors.errors import DeliveryBusyError
from connectors.chat.faults import (
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    translated,
)
from connectors.chat.limits import LIMITS, takes_files
from connectors.chat.whatsapp import content
from connectors.chat.whatsapp.calls import Calls
from connectors.chat.whatsapp.errors import WindowError
from connectors.chat.whatsapp.figures import WhatsAppFigures
from connectors.chat.whatsapp.graph import Graph
from connectors.chat.whatsapp.handing import Handing
from connectors.chat.whatsapp.number import Number
from connectors.chat.whatsapp.presence import WhatsAppPresence
from connectors.chat.whatsapp.shared import Shared
from connectors.chat.whatsapp.speaking import MEND_WAIT, Speaking
from connectors.chat.whatsapp.typist import TYPING_FOR, Typist
from runtime.logs import EventLog

if TYPE_CHECKING:
    import httpx

    from actors.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress
    from connectors.blobs import BlobFolder
    from connectors.chat.whatsapp.figures import WhatsAppCounters
    from connectors.gates import Gates
    from connectors.whatsapp_config import WhatsAppConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("whatsapp")

# Chosen: Meta's first status comes within seconds; until then the chat waits.
STATUS_WITHIN = 10.0
"""Seconds in which a message whose answer got lost may show that it is there."""

LOOK_EVERY = 900.0
"""Seconds between looks whether a token is still taken."""

LOOK_AGAIN = 60.0
"""Seconds until the next look at one that was not."""


@dataclass(frozen=True)
class Surroundings:
    """What the transport is given by the company."""

    clock: Clock
    ids: IdSource
    counters: WhatsAppCounters
    gates: Gates
    """Where Meta calls."""

    network: httpx.AsyncBaseTransport | None = None
    """What carries the requests; None is the network."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send."""


class WhatsAppTransport:
    """The numbers of one app; see the port.

    Args:
        name: of the connector, as in the settings.
        config: the app and the numbers.
        given: what the company gives.
    """

    def __init__(self, name: str, config: WhatsAppConfig, given: Surroundings) -> None:
        self._graph = Graph(config.graph_url, given.network)
        numbers = (
            Number(agent, account, self._graph, config.request_timeout)
            for agent, account in config.accounts.items()
        )
        self._shared = Shared(
            connector=name,
            config=config,
            numbers={number.id: number for number in numbers},
            figures=WhatsAppFigures(given.counters, name),
            clock=given.clock,
            ids=given.ids,
        )
        self._gates = given.gates
        self._handing = Handing(self._shared)
        self._speaking = Speaking(self._shared, given.blobs)
        self._presence = WhatsAppPresence(self._speaking)
        self._typist = Typist(self._shared)

    @property
    def abilities(self) -> Abilities:
        """What it can do: nothing is edited, so that no drafts are seen."""
        limits = LIMITS["whatsapp"]
        return Abilities(
            max_part_chars=limits.part,
            markup=limits.markup,
            pace=self._shared.config.pace,
            shows_typing=True,
            typing_for=TYPING_FOR,
            shows_drafts=False,
            files=takes_files("whatsapp"),
        )

    @property
    def presence(self) -> WhatsAppPresence:
        """How it reacts."""
        return self._presence

    async def listen(self, ingress: Ingress) -> None:
        """Let Meta in until cancelled."""
        calls = Calls(self._shared, self._handing, ingress)
        name = self._shared.connector
        async with self._graph, trio.open_nursery() as nursery:
            nursery.start_soon(self._shared.errands.run)
            for number in self._shared.numbers.values():
                nursery.start_soon(self._look_after, number)
            with self._gates.opened((name, ""), calls):
                await trio.sleep_forever()

    async def _look_after(self, number: Number) -> None:
        """Say whether a number can be used, now and again."""
        was_well: bool | None = None
        while True:
            is_well = await self._is_well(number, was_well=was_well)
            if is_well is not None:
                was_well = is_well
                self._shared.figures.show(number.agent, is_up=is_well)
            await trio.sleep(LOOK_EVERY if is_well else LOOK_AGAIN)

    async def _is_well(self, number: Number, *, was_well: bool | None) -> bool | None:
        """Tell whether a token is taken; None: nobody knows now."""
        try:
            shown = await number.show()
        except (ShutOutError, RefusedError) as error:
            if was_well is not False:
                LOG.warning("number cannot be used", agent=number.agent, why=str(error))
            return False
        except PlatformError as error:
            LOG.warning("WhatsApp is away", agent=number.agent, why=str(error))
            return None
        if not was_well:
            LOG.info("number is ready", agent=number.agent, number=shown)
        return True

    async def deliver(self, delivery: Delivery) -> str:
        """Say one message to its person; see the port."""
        shared, chat = self._shared, delivery.address.chat
        marker = content.marker_of(delivery.id)
        known = shared.said.find(marker)
        if known:
            await trio.lowlevel.checkpoint()
            return known
        number, person = self._speaking.choose(chat)
        self._speaking.check_window(delivery)
        with translated(MEND_WAIT):
            try:
                message_id = await self._speaking.send(delivery, number, person)
            except WindowError as error:
                shared.windows.refused(chat)
                raise self._speaking.outside(delivery) from error
            except LostError:
                message_id = await shared.said.wait(marker, STATUS_WITHIN)
                if not message_id:
                    raise
        shared.said.note(marker, message_id)
        agent = delivery.agent or number.agent
        shared.said.learn(chat, message_id, spoken((delivery,)), agent=agent)
        self._typist.end(chat)
        return message_id

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: WhatsApp has no history that could be asked; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"WhatsApp cannot be asked for {delivery.id}")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: what is said cannot be changed."""

    def show_typing(self, typing: Typing) -> None:
        """Show that an answer is being written."""
        if not typing.is_over:
            self._typist.show(typing.address.chat, self._shared.clock.monotonic())

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Do nothing: who waits for an answer was told by a message."""
        await trio.lowlevel.checkpoint()
        LOG.debug("settled", correlation_id=correlation_id, reason=reason)
