"""A hook that is a program, spoken to over its standard input and output.

What goes over a hook program's pipes, one JSON object in each line; pure.

To the program, one question:

    {"id": "7", "event": "message_received", "text": "hello", "about": {...}}

From it, in any order, one answer each:

    {"id": "7", "action": "continue"}
    {"id": "7", "action": "change", "text": "hello!"}
    {"id": "7", "action": "cancel", "reason": "spam"}
    {"id": "7", "error": "the word list is missing"}

Asked about `message_heard`, it may have the message for itself, and answer it:

    {"id": "8", "action": "consume", "text": "The gate is open."}

To the program, with no answer to come:

    {"event": "turn_finished", "text": "...", "about": {...}, "ended": {...}}

An answer with any other field is none: there is no way to say where words go.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.hooks.chain import Action, Verdict
from actors.rules.text.cleaning import one_line
from connectors.hooks.messages import HookError
from connectors.hooks.runner import HookEnd
from connectors.mcp.limits import Gate, Lines
from connectors.mcp.messages import ServerLostError
from connectors.sandbox.plan import SandboxError
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from actors.hooks.book import AskHook, TellHook
    from connectors.sandbox.runner import Confined


LONGEST_LINE = 1024 * 1024
"""Bytes of one line from a program: the longest words that pass, several times."""

LONGEST_ERROR = 300


class Answer(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One line from a program."""

    id: str
    action: Action | None = None
    text: str = ""
    reason: str = ""
    error: str = ""


ANSWERS = msgspec.json.Decoder(Answer)


class QuestionName(msgspec.Struct, frozen=True):
    """As much of a wrong line as says which question it is about."""

    id: str


NAMED = msgspec.json.Decoder(QuestionName)


def question(number: str, asked: AskHook) -> bytes:
    """Write a question, as one line."""
    line: dict[str, object] = {
        "id": number,
        "event": asked.event,
        "text": asked.text,
        "about": asked.about,
    }
    return msgspec.json.encode(line) + b"\n"


def notice(told: TellHook) -> bytes:
    """Write what needs no answer, as one line."""
    line: dict[str, object] = {
        "event": "turn_finished",
        "text": told.text,
        "about": told.about,
        "ended": told.ended,
    }
    return msgspec.json.encode(line) + b"\n"


def read(line: bytes) -> tuple[str, Verdict | HookError]:
    """Read an answer.

    Returns:
        Which question it answers, and how; the former is empty if it does not say.
    """
    try:
        answer = ANSWERS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"what it wrote is no answer: {one_line(str(error), LONGEST_ERROR)}"
        return named(line), HookError(text, "wrong")
    return answer.id, verdict(answer)


def verdict(answer: Answer) -> Verdict | HookError:
    """Take an answer's verdict, or say why it has none."""
    if answer.error:
        said = one_line(answer.error, LONGEST_ERROR)
        return HookError(f"it says that it failed: {said}", "failed")
    if answer.action is None:
        return HookError("its answer has no 'action'", "wrong")
    return Verdict(answer.action, answer.text, answer.reason)


def named(line: bytes) -> str:
    """Find which question a wrong line is about; empty if it does not say."""
    try:
        return NAMED.decode(line).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


LOG = EventLog("hooks")

PIECE = 64 * 1024
MOST_COMPLAINTS = 200
"""Lines of complaints that are written to the log while it runs."""

LONGEST_COMPLAINT = 500

MOST_SILENT = 5
"""Questions in a row that get no answer in their time, and nothing else is heard of it
meanwhile; then it hangs, and would for ever. Chosen: more than the three after which
it is left alone, so that what is only slow has time to come to itself."""

GRACE = 1.0
"""Seconds a program has to end by itself when its input ends; then it is killed."""


class ProgramConnection:
    """A program that runs."""

    def __init__(self, name: str, program: Confined) -> None:
        self.ending = HookEnd()
        self._name = name
        self._program = program
        self._lines = Lines(LONGEST_LINE)
        self._gate = Gate()
        self._number = 0
        self._asked: dict[str, tuple[trio.Event, list[Verdict | HookError]]] = {}
        self._pen = trio.Lock()
        self._silent = 0
        """Questions without an answer since it was heard last."""

    async def ask(self, asked: AskHook) -> Verdict:
        """Write the question, and wait for the line that answers it; see the port."""
        self._number += 1
        number = str(self._number)
        news, answers = self._asked[number] = (trio.Event(), [])
        try:
            await self._write(question(number, asked))
            await news.wait()
        finally:
            del self._asked[number]
            if not answers:
                self._missed()
        found = answers[0]
        if isinstance(found, HookError):
            raise found
        return found

    def _missed(self) -> None:
        self._silent += 1
        if self._silent >= MOST_SILENT:
            self.ending.come(f"it answered none of {self._silent} questions in a row")

    async def tell(self, told: TellHook) -> None:
        """Write it; see the port."""
        await self._write(notice(told))

    async def _write(self, line: bytes) -> None:
        async with self._pen:
            is_whole = False
            try:
                await self._program.stdin.send_all(line)
                is_whole = True
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                self.ending.come("it closed its input")
                raise HookError("it closed its input", "down") from error
            finally:
                if not is_whole:  # half a line would spoil the next one
                    self.ending.come("it did not read what it is asked in time")

    async def hear(self) -> None:
        """Read what it writes until it ends, or writes what no hook may."""
        try:
            while piece := await self._program.stdout.receive_some(PIECE):
                for line in self._lines.feed(bytes(piece)):
                    if line.strip():
                        self._take(line)
        except ServerLostError as error:
            self.ending.come(str(error))
            return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        with trio.move_on_after(GRACE):
            code = await self._program.wait()
            self.ending.come(f"it ended with code {code}")
        self.ending.come("it closed its output")

    def _take(self, line: bytes) -> None:
        number, answer = read(line)
        if not isinstance(answer, HookError):
            self._silent = 0  # it may be late, but it works
        asked = self._asked.get(number)
        if asked is not None:
            news, answers = asked
            answers.append(answer)
            news.set()
            return
        now = trio.current_time()
        if isinstance(answer, HookError):
            LOG.warning("hook wrote nonsense", hook=self._name, why=str(answer))
            self._gate.take_garbage(now)
        else:  # nobody asked, or nobody waits any more
            self._gate.take_unasked(now)

    async def log_complaints(self) -> None:
        """Write what it complains to the log, up to a bound."""
        rest, left = b"", MOST_COMPLAINTS
        try:
            while piece := await self._program.stderr.receive_some(PIECE):
                *lines, rest = (rest + bytes(piece)).split(b"\n")
                rest = rest[-LONGEST_COMPLAINT:]
                for line in lines[:left]:
                    words = one_line(line.decode(errors="replace"), LONGEST_COMPLAINT)
                    LOG.info("hook complains", hook=self._name, line=Quoted(words))
                left -= min(left, len(lines))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


@asynccontextmanager
async def started(
    name: str, opened: AbstractAsyncContextManager[Confined]
) -> AsyncGenerator[ProgramConnection]:
    """Run a program until the block ends.

    Args:
        name: of the hook.
        opened: starts it, and leaves nothing of it behind.

    Raises:
        HookError: it cannot be started.
    """
    async with AsyncExitStack() as stack:
        try:
            program = await stack.enter_async_context(opened)
        except (SandboxError, OSError) as error:
            raise HookError(f"it cannot be started: {error}", "down") from error
        nursery = await stack.enter_async_context(trio.open_nursery())
        connection = ProgramConnection(name, program)
        nursery.start_soon(connection.hear)
        nursery.start_soon(connection.log_complaints)
        try:
            yield connection
        finally:
            # Why shielded: most ends are cancellations, and it may have something to
            # put away.
            with trio.move_on_after(GRACE, shield=True):
                await program.stdin.aclose()
                await program.wait()
            nursery.cancel_scope.cancel()
