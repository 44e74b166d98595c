"""A conversation on a screen: answers above, a line with what goes on, and the input.

prompt_toolkit edits and completes, rich draws. The former has a loop of its own, and so
a thread: `hear` and `lose` hand over to it, and what the person does comes back by a
channel. All state below is used in that thread alone. This module takes a quarter of a
second to import, so only who needs it does.

Agents' text is untrusted: `make_safe` makes control characters in it visible before
anything is drawn, and links are shown as text.
"""

from __future__ import annotations

import contextvars
import math
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import ClassVar, Final, Protocol

import msgspec
import trio
from markdown_it import MarkdownIt
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    PathCompleter,
)
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, merge_formatted_text
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableElement
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from connectors.admin.display import make_safe
from connectors.chat.terminal.client import (
    FromCompany,
    TerminalClient,
    TerminalDraft,
    TerminalRoster,
    TerminalSettled,
    TerminalTaken,
    TerminalTold,
    TerminalTyping,
    TerminalWelcome,
    files_in,
)
from connectors.chat.terminal.plain import (
    BACK,
    LOST,
    not_sent_text,
    refused_text,
    unanswered_text,
)
from runtime import __version__

PROMPT = "you> "
KEYS = (
    "Enter sends, Alt-Enter makes a line, Tab completes /commands, @names and @./files;"
    " Ctrl-C stops an answer, then leaves."
)
QUESTION = re.compile(r"/approve (\w+) or /deny \1\b")
DECISIONS: Final = {
    "y": "/approve {}",
    "a": "/approve {} always",
    "n": "/deny {}",
}
HINT = "y approves, a approves for a while, n denies; then Enter"

COLOUR = "magenta"
"""The one colour: of the eight of a terminal, the only one with a contrast of about
4.5 to 1 both on white and on black. Who set `NO_COLOR` sees none.
"""

# No background: who reads chose theirs.
COLOURS = Theme(
    {
        "markdown.code": COLOUR,
        "markdown.block_quote": "italic",
        "markdown.link": "underline",
        "markdown.link_url": "underline",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.table.header": "bold",
        "markdown.table.border": "none",
    }
)
PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
FILLING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
"""Spaces at the end of a line, which nobody wants to copy."""

GOES_ON = " " * 4
"""Before the rest of a line that is too wide for the screen: a list stays readable."""

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK = 0.25
"""Seconds between two frames of the progress sign."""

REDRAW = 0.05
"""Least seconds between two drawings: more cost a processor and no eye sees them."""

LONGEST_PREVIEW = 6_000
"""Characters of an unfinished answer that are drawn again and again: its end."""

LONGEST_HISTORY = 1_000_000
"""Bytes of the file of what was typed; then its older half goes."""

PRIVATE = 0o600
LEAVE_WITHIN = 2.0


class DraftView(msgspec.Struct):
    """An answer that is being written."""

    shown: str
    turn_id: str
    text: str = ""

    def take(self, frame: TerminalDraft) -> None:
        """Take the next piece; a piece that is missing is seen."""
        draft = frame.draft
        if draft.turn_id != self.turn_id:
            self.turn_id, self.text = draft.turn_id, ""
        is_next = draft.begins_at <= len(self.text)
        before = self.text[: draft.begins_at] if is_next else f"{self.text} … "
        self.text = before + draft.text


class Painter:
    """Draws texts for a terminal, in the columns it has; knows no state."""

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns

    def draw(self, *what: RenderableType) -> str:
        """Give the characters that show something."""
        file = StringIO()
        columns = max(20, self._columns())
        console = Console(
            file=file,
            width=columns,
            force_terminal=True,
            highlight=False,
            theme=COLOURS,
        )
        console.print(*what, sep="\n")
        return FILLING.sub(r"\1", file.getvalue())

    def answer(self, shown: str, text: str) -> str:
        """Draw what an agent says."""
        return self.draw(Text(one_line(shown), style=f"bold {COLOUR}"), markdown(text))

    def notice(self, text: str) -> str:
        """Draw what the runtime says."""
        lines = f"* {make_safe(text)}".replace("\n", "\n  ").split("\n")
        console = Console(width=max(20, self._columns()), file=StringIO())
        room = console.width - len(GOES_ON)
        drawn = (
            Text(f"\n{GOES_ON}").join(Text(line).wrap(console, room)) for line in lines
        )
        return self.draw(*drawn)

    def question(self, text: str) -> str:
        """Draw an approval question."""
        body = Group(Text(make_safe(text)), Text(HINT, style="bold"))
        return self.draw(Panel(body, border_style=COLOUR, title="your approval"))

    def person(self, text: str) -> str:
        """Draw what the person sent."""
        return self.draw(Text.assemble((PROMPT, "bold"), make_safe(text)))

    def banner(self, roster: TerminalRoster, where: str) -> str:
        """Draw who is here, and which keys do what."""
        lines = [Text(f"Callboard {__version__}, {where}", style="bold")]
        for each in roster.agents:
            name = one_line(each.shown)
            tag = f"@{each.name}" if each.shown != each.name else name
            named = f"{name} ({tag})" if tag != name else name
            line = Text.assemble(
                "  ", (named, f"bold {COLOUR}"), f"  model {each.model}"
            )
            if each.name == roster.answers:
                line.append("  answers when nobody is named")
            if each.description:
                line.append(f"\n    {one_line(each.description)}")
            lines.append(line)
        return self.draw(*lines, Text(KEYS, style="italic"))


def one_line(text: str) -> str:
    """Make a name or the like safe, on one line."""
    return make_safe(text).replace("\n", " ")


class PlainHeading(Heading):
    """A heading at the left, as wide as its words; a screen is no page."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw it."""
        self.text.stylize("bold underline" if self.tag in {"h1", "h2"} else "bold")
        yield self.text


class PlainCode(CodeBlock):
    """Code in one colour, which suits a light screen and a dark one."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw it."""
        code = str(self.text).rstrip()
        yield Padding(Text(code, style=COLOUR, overflow="fold"), (0, 0, 0, 2))


class WholeTable(TableElement):
    """A table that wraps what is too wide, instead of cutting it."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw it."""
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class ChatMarkdown(Markdown):
    """Markdown as a chat shows it."""

    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": PlainHeading,
        "fence": PlainCode,
        "code_block": PlainCode,
        "table_open": WholeTable,
    }


def markdown(text: str) -> RenderableType:
    """Make Markdown that keeps models' line breaks, and shows where links lead."""
    safe = make_safe(text)
    made = ChatMarkdown(safe, hyperlinks=False)
    # Again: HTML is text here, and not left out.
    made.parsed = PARSER.parse(safe)
    for token in made.parsed:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
    return Padding(made, (0, 0, 0, 2))


class ChatCompleter(Completer):
    """Completes slash commands, agents' names and paths of files."""

    def __init__(self) -> None:
        self.roster = TerminalRoster((), "", ())
        self._paths = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Give what may be meant."""
        word = document.get_word_before_cursor(WORD=True)
        if document.text_before_cursor == word and word.startswith("/"):
            for name, meaning in (*self.roster.commands, ("quit", "leave")):
                if name.startswith(word[1:]):
                    yield Completion(f"/{name}", -len(word), display_meta=meaning)
        elif word.startswith(("@/", "@.", "@~")):
            yield from self._paths.get_completions(Document(word[1:]), complete_event)
        elif word.startswith("@"):
            for each in self.roster.agents:
                if each.name.startswith(word[1:]):
                    yield Completion(
                        f"@{each.name}", -len(word), display_meta=each.description
                    )


class Act(Protocol):
    """Something that the person wants done, on the kernel's side."""

    async def __call__(self) -> None:
        """Do it."""
        ...


class ScreenChat:
    """What a person sees and types; a `Face`.

    Args:
        history: file of what was typed; None: it is kept nowhere.
        where: which company this is, for the banner.
    """

    client: TerminalClient
    """Set by the code that makes both."""

    output_error: OSError | None = None

    def __init__(self, history: Path | None, where: str) -> None:
        self._where = where
        self._completer = ChatCompleter()
        self._keys = KeyBindings()
        self._bind()
        self._session: PromptSession[str] = PromptSession(
            message=self._above,
            multiline=True,
            history=InMemoryHistory() if history is None else open_history(history),
            completer=self._completer,
            complete_while_typing=True,
            key_bindings=self._keys,
            bottom_toolbar=self._below,
            prompt_continuation="     ",
        )
        self._app = self._session.app
        self._app.min_redraw_interval = REDRAW
        # A terminal that does not say where its cursor is works as well; else a warning
        # would be printed into the conversation.
        self._app.renderer.cpr_not_supported_callback = None
        self._painter = Painter(lambda: self._app.output.get_size().columns)
        self._context: contextvars.Context | None = None
        self.ready = trio.Event()
        """Set when frames can be shown."""

        send, self._acts = trio.open_memory_channel[Act](math.inf)
        self._send = send
        self._token: trio.lowlevel.TrioToken
        self._roster: TerminalRoster | None = None
        self._is_lost = self._is_stopping = False
        self._stop = ""
        """The message that Ctrl-C sent last."""

        self._has_stopped = False
        """Whether something was said to have stopped since."""

        self._began: dict[str, float] = {}
        """Messages that are not settled, with when they were sent."""

        self._typing: OrderedDict[str, None] = OrderedDict()
        self._drafts: dict[tuple[str, str], DraftView] = {}
        self._questions: OrderedDict[str, str] = OrderedDict()
        """Ids of open approval questions, with the message they belong to."""

    # --- on the kernel's side -----------------------------------------------------

    async def run(self) -> None:
        """Converse until the person leaves.

        Raises:
            OSError: the terminal cannot be used any more.
        """
        self._token = trio.lowlevel.current_trio_token()
        done = threading.Event()

        def prompt() -> None:
            try:
                self._session.prompt(pre_run=self._start)
            except EOFError:
                pass  # they left
            finally:
                done.set()

        carrying = trio.CancelScope(shield=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._carry_out, carrying)
            nursery.start_soon(self._tick)
            try:
                await trio.to_thread.run_sync(prompt, abandon_on_cancel=True)
            finally:
                if not done.is_set():  # told to end: give the terminal back first
                    self._post(self._leave)
                    with trio.CancelScope(shield=True):
                        await trio.to_thread.run_sync(done.wait, LEAVE_WITHIN)
                with trio.move_on_after(LEAVE_WITHIN, shield=True):
                    await self._finish()
                carrying.cancel()
                nursery.cancel_scope.cancel()

    def hear(self, frame: FromCompany) -> None:
        """Show what the company sends."""
        self._post(self._hear, frame)

    def lose(self) -> None:
        """Show that the company is gone."""
        self._post(self._lose)

    async def _carry_out(self, carrying: trio.CancelScope) -> None:
        with carrying:
            async for act in self._acts:
                await act()

    async def _finish(self) -> None:
        """Go, behind all that was asked: what was shown is acknowledged."""
        is_gone = trio.Event()

        async def leave() -> None:
            await self.client.leave()
            is_gone.set()

        self._ask(leave)
        await is_gone.wait()

    async def _tick(self) -> None:
        await self.ready.wait()
        while True:
            await trio.sleep(TICK)
            if self._began or self._typing:
                self._post(self._app.invalidate)

    def _post(self, do: Callable[..., None], *given: object) -> None:
        loop = self._app.loop
        if loop is not None and not loop.is_closed() and self._context is not None:
            loop.call_soon_threadsafe(do, *given, context=self._context)

    # --- in the thread of the screen ----------------------------------------------

    def _start(self) -> None:
        self._context = contextvars.copy_context()
        self._token.run_sync_soon(self.ready.set)

    def _leave(self) -> None:
        if self._app.is_running:
            self._app.exit(exception=EOFError)

    def _ask(self, act: Act) -> None:
        """Have something done on the kernel's side."""
        self._token.run_sync_soon(self._send.send_nowait, act)

    def _print(self, text: str) -> None:
        """Print above the input, where it stays."""
        output = self._app.output

        def write() -> None:
            output.write_raw(text.replace("\n", "\r\n"))
            output.flush()

        run_in_terminal(write)

    def _notice(self, text: str) -> None:
        self._print(self._painter.notice(text))

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._typing.clear()
            self._notice(LOST)

    def _hear(self, frame: FromCompany) -> None:
        match frame:
            case TerminalWelcome() if self._is_lost:
                self._is_lost = False
                self._notice(BACK)
            case TerminalRoster():
                self._learn(frame)
            case TerminalTold():
                self._told(frame)
            case TerminalDraft():
                self._draft(frame)
            case TerminalTyping():
                self._show_typing(frame)
            case TerminalTaken(refused=why) if why:
                self._began.pop(frame.id, None)
                self._notice(refused_text(frame))
            case TerminalSettled():
                self._settled(frame)
            case _:
                pass
        self._app.invalidate()

    def _show_typing(self, typing: TerminalTyping) -> None:
        self._typing.pop(typing.shown, None)
        if not typing.is_over:
            self._typing[typing.shown] = None

    def _learn(self, roster: TerminalRoster) -> None:
        if self._roster is None:
            self._print(self._painter.banner(roster, self._where))
        self._roster = self._completer.roster = roster

    def _draft(self, frame: TerminalDraft) -> None:
        draft = frame.draft
        key = (draft.correlation_id, draft.agent)
        view = self._drafts.setdefault(key, DraftView(frame.shown, draft.turn_id))
        view.take(frame)

    def _told(self, told: TerminalTold) -> None:
        question = QUESTION.search(told.text) if told.is_aside else None
        if told.agent:
            self._drafts.pop((told.correlation_id, told.agent), None)
            self._print(self._painter.answer(told.shown, told.text))
        elif question is not None:
            self._questions[question[1]] = told.correlation_id
            self._print(self._painter.question(told.text))
        elif told.is_aside:
            self._notice(told.text)
        elif not told.reply_to or told.reply_to != self._stop or not self._has_stopped:
            # Else it answers Ctrl-C: what was stopped has said so.
            self._has_stopped = True
            self._give_up(told.correlation_id)
            self._notice(told.text)

        async def acknowledge() -> None:
            await self.client.have(told.number)

        self._ask(acknowledge)

    def _give_up(self, correlation_id: str) -> None:
        """Keep on the screen what there is of answers that do not go on."""
        for key in [key for key in self._drafts if key[0] == correlation_id]:
            view = self._drafts.pop(key)
            self._print(self._painter.answer(view.shown, f"{view.text} …"))

    def _settled(self, settled: TerminalSettled) -> None:
        self._give_up(settled.correlation_id)
        kept = self._questions.items()
        self._questions = OrderedDict(
            (name, message)
            for name, message in kept
            if message != settled.correlation_id
        )
        was_owed = self._began.pop(settled.id, None) is not None
        if was_owed and (why := unanswered_text(settled)):
            self._notice(why)
        if not self._began:
            self._typing.clear()
            self._is_stopping = False

    # --- what is drawn ------------------------------------------------------------

    def _above(self) -> AnyFormattedText:
        """Draw unfinished answers, what goes on, and where to type."""
        drawn = "\n".join((*self._preview(), *self._work()))
        lead = ANSI(f"{drawn}\n") if drawn else ""
        return merge_formatted_text([lead, [("bold", PROMPT)]])

    def _preview(self) -> Iterator[str]:
        views = list(self._drafts.values())
        rows = max(3, self._app.output.get_size().rows - 8)
        for view in views:
            text = view.text[-LONGEST_PREVIEW:]
            lines = self._painter.answer(view.shown, text).rstrip("\n").split("\n")
            most = max(2, rows // len(views))
            yield from lines if len(lines) <= most else [lines[0], *lines[1 - most :]]

    def _work(self) -> Iterator[str]:
        if self._is_lost:
            yield self._painter.draw(Text(f"  {LOST}")).rstrip("\n")
        elif self._began:
            now = time.monotonic()
            seconds = int(now - min(self._began.values()))
            sign = SPINNER[int(now / TICK) % len(SPINNER)]
            names = ", ".join(map(one_line, self._typing))
            who = f"{names} at work" if names else "waiting for an answer"
            stop = "stopping" if self._is_stopping else "Ctrl-C stops"
            if self._questions:
                sign, stop = "?", HINT
            line = Text(f"{sign} {who}, {seconds} s; {stop}", style="italic")
            yield self._painter.draw(line).rstrip("\n")

    def _below(self) -> AnyFormattedText:
        if self._roster is None:
            return " connecting …"
        who = next(
            (x for x in self._roster.agents if x.name == self._roster.answers), None
        )
        talk = "" if who is None else f" {one_line(who.shown)}, model {who.model};"
        return f"{talk} Enter sends, Tab completes, /help, Ctrl-D leaves"

    # --- keys ---------------------------------------------------------------------

    def _bind(self) -> None:
        keys = self._keys

        @keys.add("enter")
        @keys.add("c-j")  # Enter typed before there was a screen
        def _(event: KeyPressEvent) -> None:
            self._accept(event)

        @keys.add("escape", "enter")
        @keys.add("escape", "c-j")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            self._interrupt(event)

    def _accept(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text.strip()
        buffer.append_to_history()
        buffer.reset()
        if text == "/quit":
            self._leave()
        elif text:
            self._print(self._painter.person(text))
            self._submit(self._decided(text))

    def _decided(self, text: str) -> str:
        """Read a letter as the answer to an open approval question."""
        wanted = DECISIONS.get(text.casefold())
        if wanted is None or not self._questions:
            return text
        question, _ = self._questions.popitem(last=False)
        return wanted.format(question)

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Stop the answer; when nothing goes on, clear the line; else leave."""
        if self._began and not self._is_stopping and not self._is_lost:
            self._is_stopping = True
            self._stop, self._has_stopped = self._submit("/stop"), False
        elif event.current_buffer.text and not self._is_stopping:
            event.current_buffer.reset()
        else:
            self._leave()

    def _submit(self, text: str) -> str:
        """Send a message, with the files that it names; give its id, if it is sent."""
        try:
            files = files_in(text)
        except OSError as error:
            self._notice(not_sent_text(error))
            return ""
        message = self.client.new_message(text, files)
        self._began[message.id] = time.monotonic()

        async def say() -> None:
            await self.client.say(message)

        self._ask(say)
        return message.id


def open_history(path: Path) -> FileHistory | InMemoryHistory:
    """Open the file of what was typed, for this user alone; else keep it in memory."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
        with os.fdopen(number, "r+b") as file:
            os.fchmod(file.fileno(), PRIVATE)
            if os.fstat(file.fileno()).st_size > LONGEST_HISTORY:
                file.seek(-LONGEST_HISTORY // 2, os.SEEK_END)
                kept = file.read().partition(b"\n\n")[2]
                file.seek(0)
                file.write(kept)
                file.truncate()
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
