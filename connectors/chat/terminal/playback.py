"""A room that is played: people speak from a file, all that is said is printed.

Knows no file and no order: who speaks when is the player's (`commands/play.py`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import ChatError, DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Draft, TakesFiles, Typing
from actors.messages.inbound import Address, Inbound, Quoted
from actors.outbound.draft_rules import DraftPiece
from connectors.chat.terminal.console import Console, Printer, TerminalWriter
from connectors.files.blobs import BlobFolder, with_path
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.transport import Ingress
    from connectors.chat.terminal.script import Cue
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("playing")

# Chosen: more than one line's answers; what is older is not said again so late.
MOST_KNOWN = 1_000
"""Deliveries that are known to have been printed."""

LINE = "line"
"""Among a message's `platform_fields`: where in the file it stands."""


class RoomSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which room is played."""

    connector: str = "room"
    """Name of the connector account, as in the settings."""

    chat: str = "room"
    """The room's id on its platform."""

    agents: tuple[str, ...] = ()
    """Names of the agents that are in it."""

    roles: dict[str, tuple[str, ...]] = {}
    """By person: what they are on the platform."""


class Last(msgspec.Struct, frozen=True):
    """What somebody said last."""

    receipt: str
    quoted: Quoted


class PlayingTransport:
    """A room as a chat account; implements `actors.transport.Transport`."""

    presence = None
    """It can show nothing but messages."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send; people are told where they lie."""

    shown: Callable[[str], str] = staticmethod(str)
    """Gives what people call an agent."""

    def __init__(
        self, settings: RoomSettings, console: Console, clock: Clock, ids: IdSource
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._address = Address(settings.connector, settings.chat)
        self._printer = Printer(console)
        self._unsaid: deque[tuple[Cue, trio.Event]] = deque()
        self._delivered: deque[str] = deque(maxlen=MOST_KNOWN)
        self._last: dict[str, Last] = {}
        """By name, case-folded; of the few that are in the room."""

        self.refused: list[tuple[Cue, str]] = []
        """What was not taken in, and why; no more than there are lines in a file."""

        self._changed = trio.Event()
        self._has_ended = False
        self.has_begun = False
        """Whether an answer has begun since somebody spoke."""

        self.was_asked = False
        """Whether something was asked, since somebody spoke, that /approve answers."""

        self.output_error: OSError | None = None
        """Why nothing could be printed any more."""

    @property
    def abilities(self) -> Abilities:
        """Say that paper remembers nothing: what may have been printed is in doubt."""
        return Abilities(files=TakesFiles())

    # --- people -------------------------------------------------------------------

    async def say(self, cue: Cue) -> None:
        """Have a person speak; returns when that was taken in, or refused."""
        self.has_begun = self.was_asked = False
        is_done = self.put(cue)
        await is_done.wait()

    def put(self, cue: Cue) -> trio.Event:
        """Have a person speak soon; gives what is set when that was handed in."""
        is_done = trio.Event()
        self._unsaid.append((cue, is_done))
        self._note_change()
        return is_done

    def notice(self, text: str) -> None:
        """Print something that nobody in the room says."""
        self._show("", text)

    async def listen(self, ingress: Ingress) -> None:
        """Hand in what people say until cancelled, or until nobody reads any more."""
        self._has_ended = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._print, nursery.cancel_scope)
                while True:
                    while not self._unsaid:
                        await self._changed.wait()
                    cue, is_done = self._unsaid[0]
                    await self._submit(ingress, cue)
                    self._unsaid.popleft()
                    is_done.set()
        finally:
            self._has_ended = True

    async def _submit(self, ingress: Ingress, cue: Cue) -> None:
        to = f" (to {cue.reply_to})" if cue.reply_to else ""
        self._show(f"{cue.speaker}{to}", cue.text)
        inbound = self._inbound(cue)
        said = Quoted(text=cue.text, sender_name=cue.speaker)
        self._last[cue.speaker.casefold()] = Last(inbound.platform_id, said)
        try:
            if not await ingress.accept(inbound):
                self._refuse(cue, f"{cue.speaker} is not let in here")
        except (ChatError, KernelError) as error:
            LOG.warning("message not taken", line=cue.line, error=str(error))
            self._refuse(cue, str(error))
        # What came before an answer to it is printed before whatever comes next.
        await self._printer.put("").wait()

    def _refuse(self, cue: Cue, why: str) -> None:
        self.refused.append((cue, why))
        self.notice(f"not taken: {why}")

    def _inbound(self, cue: Cue) -> Inbound:
        new_id = self._ids.new()
        to = self._last.get(cue.reply_to.casefold()) if cue.reply_to else None
        if cue.reply_to and to is None:
            self.notice(f"{cue.reply_to} has said nothing yet: this replies to nobody")
        return Inbound(
            id=new_id,
            platform="room",
            platform_id=new_id,
            address=self._address,
            sender_id=cue.speaker,
            sender_name=cue.speaker,
            text=cue.text,
            received_at=self._clock.wall(),
            is_direct=False,
            reply_to="" if to is None else to.receipt,
            quoted=None if to is None else to.quoted,
            present=self._settings.agents,
            roles=self._settings.roles.get(cue.speaker, ()),
            platform_fields={LINE: str(cue.line)},
        )

    # --- agents -------------------------------------------------------------------

    async def deliver(self, delivery: Delivery) -> str:
        """Print an answer; returns when it is printed.

        Raises:
            DeliveryBusyError: the room is not open yet.
            DeliveryRefusedError: the room was closed.
        """
        self._check_open()
        delivery = with_path(delivery, self.blobs)
        if delivery.id not in self._delivered:
            self._delivered.append(delivery.id)
            self._take(delivery)
        await self._printer.put("").wait()
        self._check_open()
        return delivery.id

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: nobody can ask paper; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        raise DeliveryBusyError(f"nobody can tell whether {delivery.id} was printed")

    def show_draft(self, draft: Draft) -> None:
        """Note that somebody writes; what is printed is the whole."""
        if draft.text:
            self.has_begun = True

    def show_typing(self, typing: Typing) -> None:
        """Do nothing: `abilities` says so; see the port."""

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Do nothing: what became of everything is told at the end."""

    def _take(self, delivery: Delivery) -> None:
        self.has_begun = True
        self.was_asked = self.was_asked or "/approve " in delivery.text
        if delivery.kind == "silence":
            return
        self._show(self.shown(delivery.agent), delivery.text)
        if delivery.agent:
            said = Quoted(
                text=delivery.text, sender_name=delivery.agent, agent=delivery.agent
            )
            self._last[delivery.agent.casefold()] = Last(delivery.id, said)

    def _check_open(self) -> None:
        if self._has_ended:
            raise DeliveryRefusedError("the room was closed")
        if not self._printer.is_running:
            raise DeliveryBusyError("the room is not open yet")

    # --- paper --------------------------------------------------------------------

    def _show(self, name: str, text: str) -> None:
        piece = DraftPiece(name, text, begins=True, ends=True)
        self._printer.put(TerminalWriter().write([piece]))

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _print(self, listening: trio.CancelScope) -> None:
        try:
            await self._printer.run()
        except OSError as error:
            LOG.info("output closed", error=str(error))
            self.output_error = error
            listening.cancel()
