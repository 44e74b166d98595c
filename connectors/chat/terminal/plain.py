"""A conversation as plain lines: for pipes, and for terminals that can only print.

With a pipe as input, lines are echoed so that the transcript reads naturally, each
waits for the answers to the one before it, and at the end all answers are waited for.
At a terminal (`TERM=dumb`) the person may type at any time. `screen.py` is what people
usually see.

Neither the keyboard nor the screen ever blocks the kernel's loop: reading and writing
happen in threads that are left behind on Ctrl-C: nobody can wake a thread that waits
for a key, or for a screen that was stopped with Ctrl-S.

Agents' text is untrusted: control characters in it could move the cursor, change
colours or the window's title, or type into the shell. `TerminalWriter` makes them
visible.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable
from typing import Protocol, TextIO

import msgspec
import trio

from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Address
from actors.outbound.draft_rules import DraftPiece, DraftSpeakers
from connectors.admin.display import make_safe
from connectors.chat.terminal.client import (
    FILE,
    FromCompany,
    TerminalClient,
    TerminalDraft,
    TerminalFile,
    TerminalRoster,
    TerminalSettled,
    TerminalTaken,
    TerminalTold,
    files_in,
)
from runtime.telemetry.logs import EventLog

# Chosen: ten times what a message may have unless the settings say otherwise, so that
# whoever takes it in says how much too long it is.
MOST_CHARACTERS = 1_000_000
"""Longest line that is kept; what is beyond is read, and forgotten."""

PIECE = 65_536
"""Characters read at a time."""


class Console(Protocol):
    """Where lines come from and text goes to."""

    async def read_line(self) -> str | None:
        """Wait for the next line, without its line feed; None at the end."""
        ...

    async def write(self, text: str) -> None:
        """Write text as it is, at once.

        Raises:
            OSError: nobody reads any more.
        """
        ...


class StandardConsole:
    """The process's own standard input and output."""

    def __init__(self, source: TextIO, target: TextIO) -> None:
        self._source = source
        self._target = target
        # Why: what a terminal's encoding cannot show must not end the chat.
        for stream in (source, target):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")

    @property
    def is_interactive(self) -> bool:
        """True if a person types and watches; False if one of both is a pipe."""
        return self._source.isatty() and self._target.isatty()

    async def read_line(self) -> str | None:
        """Wait for the next line, without its line feed; None at the end."""
        line = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        return line.removesuffix("\n") if line else None

    async def write(self, text: str) -> None:
        """Write text as it is, at once.

        Raises:
            OSError: nobody reads any more.
        """
        await trio.to_thread.run_sync(self._write, text, abandon_on_cancel=True)

    def _read(self) -> str:
        pieces: list[str] = []
        kept = 0
        try:
            while piece := self._source.readline(PIECE):
                pieces.append(piece[: max(0, MOST_CHARACTERS - kept)])
                kept += len(pieces[-1])
                if piece.endswith("\n"):
                    break
        except OSError:
            return ""  # the terminal was hung up
        return "".join(pieces)

    def _write(self, text: str) -> None:
        self._target.write(text)
        self._target.flush()


class Printer:
    """Text on its way to a console, in order; putting never waits."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._pending: list[str] = []
        self._wake = trio.Event()
        self._written = trio.Event()
        self.is_running = False

    def put(self, text: str) -> trio.Event:
        """Print soon; gives what is set when it is written or never will be."""
        self._pending.append(text)
        self._wake.set()
        return self._written

    async def run(self) -> None:
        """Print what is put until cancelled, or until nobody reads any more.

        Raises:
            OSError: nobody reads any more.
        """
        if self._written.is_set():  # an earlier run ended
            self._written = trio.Event()
        written = self._written
        self.is_running = True
        try:
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                text, self._pending = "".join(self._pending), []
                written, self._written = self._written, trio.Event()
                if text:
                    await self._console.write(text)
                written.set()
        finally:
            self.is_running = False
            written.set()
            self._written.set()


class TerminalWriter:
    """Turns pieces of answers into the lines `anna> text`, notices into `* text`.

    Further lines of an answer are indented to where its first one begins. Blank
    lines at an answer's end are left out, so line feeds wait for what follows.
    """

    def __init__(self) -> None:
        self._indent = 0
        self._owed_line_feeds = 0
        self._is_at_line_start = False

    @property
    def is_at_line_start(self) -> bool:
        """Whether the answer being written goes on with a line of its own."""
        return self._is_at_line_start

    def break_line(self) -> None:
        """Learn that somebody else ended the line on which an answer stands."""
        self._is_at_line_start, self._owed_line_feeds = True, 0

    def beside(self, text: str, *, is_speaking: bool) -> str:
        """Return a notice on a line of its own, and go on with the answer below it.

        Args:
            is_speaking: whether an answer is being written.
        """
        lead = "\n" if is_speaking and not self._is_at_line_start else ""
        if is_speaking:
            self.break_line()
        notice = DraftPiece("", text, begins=True, ends=True)
        return lead + TerminalWriter().write([notice])

    def write(self, pieces: Iterable[DraftPiece]) -> str:
        """Return the text that shows these pieces."""
        return "".join(self._write_piece(piece) for piece in pieces)

    def _write_piece(self, piece: DraftPiece) -> str:
        text = ""
        if piece.begins:
            name = make_safe(piece.agent).replace("\n", " ")
            text = f"{name}> " if name else "* "
            self._indent, self._owed_line_feeds = len(text), 0
            self._is_at_line_start = False
        text += self._indent_lines(make_safe(piece.text))
        if piece.ends:
            text += "" if self._is_at_line_start else "\n"
            self._owed_line_feeds, self._is_at_line_start = 0, False
        return text

    def _indent_lines(self, text: str) -> str:
        said = text.rstrip("\n")
        if not said:
            self._owed_line_feeds += len(text)
            return ""
        whole = "\n" * self._owed_line_feeds + said
        if self._is_at_line_start:
            whole = " " * self._indent + whole.lstrip("\n")
            self._is_at_line_start = False
        self._owed_line_feeds = len(text) - len(said)
        return re.sub(r"\n(?=[^\n])", "\n" + " " * self._indent, whole)


LOG = EventLog("terminal")

PROMPT = "you> "

MOST_UNANSWERED = 256
"""Messages that may wait for answers; one more is refused."""

LEAVE_TIMEOUT = 1.0
"""Seconds that leaving may take, and the last line feed: the screen may have been
stopped."""

NOWHERE = Address("terminal", "terminal")

LOST = "the company is gone; trying to reach it again"
BACK = "the company is back"


def refused_text(taken: TerminalTaken) -> str:
    """Say that a message was not taken, and why."""
    advice = "" if taken.is_final else ", please try again"
    return f"not taken{advice}: {taken.refused}"


def not_sent_text(error: OSError) -> str:
    """Say that a message was not sent, as a file that it names cannot be read."""
    return f"not sent: {error.strerror or error}: {error.filename or ''}"


def unanswered_text(settled: TerminalSettled) -> str:
    """Say why a message gets no answer; empty: it had one, or was stopped."""
    kind, _, why = settled.reason.partition(":")
    if kind == "dropped":
        return f"nobody answers this: {why}"
    return "there is no answer; the log says why" if kind == "dead" else ""


class PlainSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How lines are read and shown."""

    is_interactive: bool = True
    """True: a person types, and nothing waits. False: lines come from a pipe."""

    wait_for_answer: bool = True
    """With a pipe: wait for the answers to a line before the next one. A line that
    begins with `/stop` waits only until the answer before it has begun, and one that
    begins with `/approve` or `/deny` until somebody may have been asked."""

    answer_timeout: float = 300.0
    """Seconds such a wait may take; then the next line is read all the same."""


class PlainChat:
    """Lines in and lines out; a `Face`."""

    client: TerminalClient
    """Set by the code that makes both."""

    def __init__(self, settings: PlainSettings, console: Console) -> None:
        self._settings = settings
        self._console = console
        self._printer = Printer(console)
        self._speakers = DraftSpeakers()
        self._writer = TerminalWriter()
        self._shown: dict[str, str] = {}
        """What people call each agent."""

        self._lengths: dict[str, int] = {}
        """Characters of drafts that were shown, by turn; the newest."""

        self._owed: dict[str, str] = {}
        """Messages that are not settled: id, and correlation id once it is known."""

        self._changed = trio.Event()
        self.ready = trio.Event()
        """Set when frames can be shown."""

        self._number = 0
        """Of the last answer that was given to the printer."""

        self._is_leaving = False  # what comes now is told next time
        self._is_lost = False
        self._has_prompt = False
        self._was_asked = False  # something that /approve and /deny answer
        self.output_error: OSError | None = None
        """Why nothing could be shown any more; None if that is not why it ended."""

    async def run(self) -> None:
        """Converse until the input or the output ends, or `/quit`.

        What was printed is acknowledged at the end, also if it is cancelled: else it
        would be printed again next time.
        """
        printing = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._print, nursery.cancel_scope, printing)
                nursery.start_soon(self._acknowledge)
                self.ready.set()
                try:
                    await self._converse()
                    await self._printer.put("").wait()
                finally:
                    with trio.move_on_after(LEAVE_TIMEOUT, shield=True):
                        await self._leave()
                    printing.cancel()
                    nursery.cancel_scope.cancel()
        finally:
            await self._leave_line()

    # --- from the company ---------------------------------------------------------

    def hear(self, frame: FromCompany) -> None:
        """Print what the company sends."""
        if self._is_leaving:
            return
        match frame:
            case TerminalTold():
                self._told(frame)
            case TerminalDraft() if self._follows(frame.draft):
                self._shown[frame.draft.agent] = frame.shown
                self._show(self._speakers.draft(frame.draft))
            case TerminalTaken(refused=why) if why:
                self._owed.pop(frame.id, None)
                self._notice(refused_text(frame))
            case TerminalTaken() if frame.id in self._owed:
                self._owed[frame.id] = frame.correlation_id
            case TerminalSettled():
                self._settled(frame)
            case TerminalRoster() if self._is_lost:
                self._is_lost = False
                self._notice(BACK)
            case _:
                pass
        self._note_change()

    def lose(self) -> None:
        """Say once that the company is gone."""
        if not self._is_lost:
            self._is_lost = True
            self._notice(LOST)

    def _follows(self, draft: Draft) -> bool:
        """Whether a piece follows those before; of a torn answer the whole is shown."""
        known = self._lengths.get(draft.turn_id, 0)
        if draft.begins_at != known:
            return False
        self._lengths[draft.turn_id] = known + len(draft.text)
        if len(self._lengths) > MOST_UNANSWERED:
            del self._lengths[next(iter(self._lengths))]
        return True

    def _told(self, told: TerminalTold) -> None:
        self._shown[told.agent] = told.shown
        self._number = told.number
        if told.is_aside:
            is_speaking = self._speakers.is_speaking
            self._put(self._writer.beside(told.text, is_speaking=is_speaking))
            self._was_asked = self._was_asked or "/approve " in told.text
        else:
            self._show(self._speakers.deliver(delivery_of(told)))

    def _settled(self, settled: TerminalSettled) -> None:
        # A stopped answer's line ends here: a notice came in its place.
        self._show(self._speakers.give_up(settled.correlation_id))
        was_owed = self._owed.pop(settled.id, None) is not None
        if was_owed and (why := unanswered_text(settled)):
            self._notice(why)

    # --- from the person ----------------------------------------------------------

    async def _converse(self) -> None:
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
                await self._say(text)
            self._offer_prompt()
        if not self._settings.is_interactive:
            await self._wait_until(lambda: not self._owed)

    async def _say(self, text: str) -> None:
        if len(self._owed) >= MOST_UNANSWERED:
            self._notice(f"{MOST_UNANSWERED} messages wait for answers; try later")
            return
        files: tuple[TerminalFile, ...] = ()
        # Why not from a pipe: its lines may be somebody else's words, and they must not
        # choose which of this person's files are sent.
        if self._settings.is_interactive and FILE.search(text):
            try:
                # Why a thread: the company may run in this loop, and a disk be slow.
                files = await trio.to_thread.run_sync(files_in, text)
            except OSError as error:
                self._notice(not_sent_text(error))
                return
        message = self.client.new_message(text, files)
        self._owed[message.id] = ""  # before: its end may come while it is sent
        await self.client.say(message)

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
            for correlation_id in self._owed.values():
                self._show(self._speakers.give_up(correlation_id))
            self._owed.clear()
            self._notice(f"no answer within {timeout:g} s; going on without it")

    async def _leave(self) -> None:
        """Acknowledge what was printed, and go."""
        self._is_leaving = True
        await self._printer.put("").wait()
        if self._printer.is_running:
            await self.client.have(self._number)
        await self.client.leave()

    async def _leave_line(self) -> None:
        """Let what comes next on this screen, such as a shell, begin a new line."""
        if self._has_prompt or self._speakers.is_speaking:
            with (
                trio.move_on_after(LEAVE_TIMEOUT, shield=True),
                contextlib.suppress(OSError),
            ):
                await self._console.write("\n")
        self._has_prompt = False

    # --- the screen ---------------------------------------------------------------

    async def _acknowledge(self) -> None:
        """Tell the company what has been printed."""
        acknowledged = 0
        while True:
            await self._changed.wait()
            number = self._number
            if number > acknowledged:
                await self._printer.put("").wait()
                if self._printer.is_running:
                    await self.client.have(number)
                acknowledged = number

    def _notice(self, text: str) -> None:
        told = TerminalTold(0, "", "", text, "")
        self._show(self._speakers.deliver(delivery_of(told)))

    def _show(self, pieces: Iterable[DraftPiece]) -> None:
        shown = self._shown
        named = (
            msgspec.structs.replace(x, agent=shown.get(x.agent, x.agent))
            for x in pieces
        )
        self._put(self._writer.write(named))

    def _put(self, text: str) -> None:
        if not text:
            return
        lead = "\n" if self._has_prompt else ""
        self._has_prompt = False
        self._printer.put(lead + text)
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

    async def _print(
        self, conversation: trio.CancelScope, printing: trio.CancelScope
    ) -> None:
        try:
            with printing:
                await self._printer.run()
        except OSError as error:
            LOG.info("output closed", error=str(error))
            self.output_error = error
            conversation.cancel()


def delivery_of(told: TerminalTold) -> Delivery:
    """Give an answer in the shape that orders answers and their drafts."""
    return Delivery(
        id=str(told.number),
        correlation_id=told.correlation_id,
        address=NOWHERE,
        agent=told.agent,
        text=told.text,
    )
