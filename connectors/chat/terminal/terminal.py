"""The terminal as a chat: one person, one chat, lines in and lines out.

On a terminal the person may type at any time, also while an answer is being
written (`/stop`). With a pipe as input, lines are echoed so that the transcript
reads naturally, each waits for the answers to the one before it, and at the end
all answers are waited for. How text looks is `console.py`'s business.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

import msgspec
import pykka
import trio
from msgspec import structs

from actors.delegation.owed import Owed
from actors.errors import (
    ChatError,
    DeliveryBusyError,
    DeliveryRefusedError,
    MessageRefusedError,
)
from actors.messages.deliveries import Abilities, Delivery, Draft, TakesFiles, Typing
from actors.messages.inbound import Address, Inbound
from actors.outbound.draft_rules import DraftPiece, DraftSpeakers
from connectors.admin.display import make_safe
from connectors.chat.terminal.console import Console, Printer, TerminalWriter
from connectors.files.blobs import BlobFolder, with_path
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from actors.transport import Ingress
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("terminal")

PROMPT = "you> "

CLEAR_LINE = "\r\x1b[K"
"""Takes an unused prompt back (ECMA-48: cursor to column 1, erase in line)."""

MOST_UNANSWERED = 256
"""Messages that may wait for answers; one more is refused."""

LEAVE_TIMEOUT = 1.0
"""Seconds that the last line feed may take: the screen may have been stopped."""

NOT_TAKEN = (ChatError, KernelError, pykka.ActorDeadError, pykka.Timeout)
"""What submitter a message in may raise; anything else is a bug."""


class TerminalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who sits at the terminal and how it behaves."""

    name: str = "terminal"
    """Name of the connector account, as in the settings."""

    user: str = "you"
    """Name of the person, as the agents see it."""

    agent: str = ""
    """Whom the lines are for; empty: routes decide."""

    is_interactive: bool = True
    """True: a person types, and nothing waits. False: lines come from a pipe."""

    wait_for_answer: bool = True
    """With a pipe: wait for the answers to a line before the next one. A line that
    begins with `/stop` waits only until the answer before it has begun, and one that
    begins with `/approve` or `/deny` until somebody may have been asked."""

    answer_timeout: float = 300.0
    """Seconds such a wait may take; then the next line is read all the same."""


class TerminalTransport:
    """The terminal as a chat account; implements `actors.transport.Transport`."""

    presence = None
    """It can show nothing but messages."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send; people are told where they lie."""

    shown: Callable[[str], str] = staticmethod(str)
    """Gives what people call an agent."""

    def __init__(
        self, settings: TerminalSettings, console: Console, clock: Clock, ids: IdSource
    ) -> None:
        self._settings = settings
        self._console = console
        self._clock = clock
        self._ids = ids
        self._address = Address(settings.name, "terminal")
        self._printer = Printer(console)
        self._speakers = DraftSpeakers()
        self._writer = TerminalWriter()
        self._owed: dict[str, Owed] = {}
        """Answers that are still owed, by correlation id."""

        self._delivered: deque[str] = deque(maxlen=MOST_UNANSWERED)
        self._changed = trio.Event()
        self._has_prompt = False
        self._has_ended = False
        self._was_asked = False  # something that /approve and /deny answer
        self.output_error: OSError | None = None
        """Why nothing could be shown any more; None if that is not why it ended."""

    @property
    def abilities(self) -> Abilities:
        """Say that a screen remembers nothing: what may have been shown is in doubt."""
        return Abilities(counts_answers=True, files=TakesFiles())

    async def listen(self, ingress: Ingress) -> None:
        """Hand in lines until the input or the output ends, or `/quit`."""
        self._has_ended = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._print, nursery.cancel_scope)
                await self._converse(ingress)
                await self._printer.put("").wait()
                nursery.cancel_scope.cancel()
        finally:
            self._has_ended = True
            await self._leave_line()
            self._owed.clear()
            self._speakers, self._writer = DraftSpeakers(), TerminalWriter()

    async def deliver(self, delivery: Delivery) -> str:
        """Print an answer; returns when it is on the screen.

        Raises:
            DeliveryBusyError: the terminal is not open yet.
            DeliveryRefusedError: the terminal was closed.
        """
        self._check_open()
        delivery = with_path(delivery, self.blobs)
        if delivery.id not in self._delivered:
            self._delivered.append(delivery.id)
            if delivery.is_aside:
                is_speaking = self._speakers.is_speaking
                self._put(self._writer.beside(delivery.text, is_speaking=is_speaking))
                self._was_asked = self._was_asked or "/approve " in delivery.text
                self._note_change()
            else:
                if delivery.kind != "silence":
                    self._show(self._speakers.deliver(delivery))
                self._count(delivery)
        await self._printer.put("").wait()
        self._check_open()
        return delivery.id

    def show_typing(self, typing: Typing) -> None:
        """Do nothing: `abilities` says so; see the port."""

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: nobody can ask a screen; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        raise DeliveryBusyError(f"no screen can tell whether it shows {delivery.id}")

    def show_draft(self, draft: Draft) -> None:
        """Print a piece of an answer, on the line that the answer will stand on."""
        if self._printer.is_running:
            self._show(self._speakers.draft(draft))
            self._note_change()

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Stop waiting for answers; say so if there was none and should be."""
        if not self._printer.is_running:
            return
        self._show(self._speakers.give_up(correlation_id))
        was_waited_for = self._owed.pop(correlation_id, None) is not None
        kind, _, why = reason.partition(":")
        if was_waited_for and kind == "dropped":
            self._notice(f"nobody answers this: {why}")
        elif was_waited_for and kind == "dead":
            self._notice("there is no answer; the log says why")
        self._note_change()

    # --- the person's side --------------------------------------------------------

    async def _converse(self, ingress: Ingress) -> None:
        self._offer_prompt()
        while (line := await self._console.read_line()) is not None:
            self._has_prompt = False
            if self._settings.is_interactive and self._speakers.is_speaking:
                self._writer.break_line()  # by the person's own line feed
            text = line.strip()
            if text == "/quit":
                break
            if text:
                await self._wait_turn(text)
                self._echo(text)
                await self._submit(ingress, text)
            self._offer_prompt()
        if not self._settings.is_interactive:
            await self._wait_until(lambda: not self._owed)

    async def _wait_turn(self, text: str) -> None:
        """With a pipe, wait until it is this line's turn."""
        settings = self._settings
        if settings.is_interactive or not settings.wait_for_answer:
            return
        if text.startswith(("/approve", "/deny")):
            await self._wait_until(lambda: not self._owed or self._was_asked)
        elif text.startswith("/stop"):
            await self._wait_until(lambda: not self._owed or self._speakers.is_speaking)
        else:
            await self._wait_until(lambda: not self._owed)
        self._was_asked = False

    async def _wait_until(self, is_so: Callable[[], bool]) -> None:
        timeout = self._settings.answer_timeout
        with trio.move_on_after(timeout) as scope:
            while not is_so():
                await self._changed.wait()
        if scope.cancelled_caught:
            for correlation_id in self._owed:
                self._show(self._speakers.give_up(correlation_id))
            self._owed.clear()
            self._notice(f"no answer within {timeout:g} s; going on without it")

    async def _submit(self, ingress: Ingress, text: str) -> None:
        if len(self._owed) >= MOST_UNANSWERED:
            self._notice(f"{MOST_UNANSWERED} messages wait for answers; try later")
            return
        new_id = self._ids.new()
        inbound = Inbound(
            id=new_id,
            correlation_id=new_id,
            platform="terminal",
            platform_id=new_id,
            address=self._address,
            sender_id=self._settings.user,
            sender_name=self._settings.user,
            text=text,
            received_at=self._clock.wall(),
            agent=self._settings.agent,
        )
        # Before it is handed in, because answers may come before that returns.
        self._owed[new_id] = Owed()
        try:
            await ingress.accept(inbound)
        except NOT_TAKEN as error:
            LOG.warning("message not taken", correlation_id=new_id, error=str(error))
            self._owed.pop(new_id, None)
            is_final = isinstance(error, MessageRefusedError)
            advice = "" if is_final else ", please try again"
            self._notice(f"not taken{advice}: {error}")

    async def _leave_line(self) -> None:
        """Let what comes next on this screen, such as a shell, begin a new line."""
        if self._has_prompt or self._speakers.is_speaking:
            with (
                trio.move_on_after(LEAVE_TIMEOUT, shield=True),
                contextlib.suppress(OSError),
            ):
                await self._console.write("\n")
        self._has_prompt = False

    # --- the agents' side ---------------------------------------------------------

    def _check_open(self) -> None:
        if self._has_ended:
            raise DeliveryRefusedError("the terminal was closed")
        if not self._printer.is_running:
            raise DeliveryBusyError("the terminal is not open yet")

    def _count(self, delivery: Delivery) -> None:
        """Take one answer off what is owed, and add what it announces."""
        key = delivery.correlation_id
        owed = self._owed.get(key)
        if owed is not None and owed.count(delivery):
            del self._owed[key]
            # A stopped answer's line ends here: a notice came in its place.
            self._show(self._speakers.give_up(key))
        self._note_change()

    def _notice(self, text: str) -> None:
        notice = Delivery(
            id="", correlation_id="", address=self._address, agent="", text=text
        )
        self._show(self._speakers.deliver(notice))

    def _show(self, pieces: Iterable[DraftPiece]) -> None:
        named = (structs.replace(x, agent=self.shown(x.agent)) for x in pieces)
        self._put(self._writer.write(named))

    def _put(self, text: str) -> None:
        if not text:
            return
        clear = CLEAR_LINE if self._has_prompt else ""
        self._has_prompt = False
        self._printer.put(clear + text)
        self._offer_prompt()

    def _offer_prompt(self) -> None:
        """Prompt a person, unless an answer is being written on this line."""
        if self._settings.is_interactive and not self._speakers.is_speaking:
            if not self._has_prompt:
                self._printer.put(PROMPT)
            self._has_prompt = True

    def _echo(self, text: str) -> None:
        """Write down what a pipe said; a terminal has echoed it already."""
        if self._settings.is_interactive:
            return
        line = f"{PROMPT}{make_safe(text)}\n"
        if self._speakers.is_speaking:
            line = line if self._writer.is_at_line_start else f"\n{line}"
            self._writer.break_line()
        self._printer.put(line)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _print(self, conversation: trio.CancelScope) -> None:
        try:
            await self._printer.run()
        except OSError as error:
            LOG.info("output closed", error=str(error))
            self.output_error = error
            conversation.cancel()
