"""The actor that runs one hook's code and puts the questions to it; both kinds.

A hook that is a program is spoken to over its standard input and output, one JSON
object in each line. To the program, one question:

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

A hook that is Python of an installed package is found by its entry point. What that
names is called with the event, the text and a mapping of what there is to know; it
gives None (continue), a text (change), or a `Verdict`. A coroutine function runs on the
kernel's thread and must not block it; anything else runs in a thread of its own, where
it may. It runs in this process: it is trusted like Callboard.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import entry_points
from typing import ClassVar, Protocol, cast

import msgspec
import trio

from actors.hooks.book import AskHook, TellHook
from actors.hooks.chain import Action, Verdict, checked
from actors.rules.text.cleaning import one_line
from connectors.hooks.hook import (
    Answered,
    HookEnded,
    HookError,
    HookFigures,
    HookStarted,
    LeftBehind,
    PendingQuestion,
    QuestionQueue,
    Settings,
    Told,
    Unanswered,
)
from connectors.mcp.connection import Gate, Lines, ServerEnd, ServerLostError
from connectors.sandbox.plan import SandboxError
from connectors.sandbox.runner import Confined
from runtime.actor.actor import Actor
from runtime.telemetry.logs import EventLog, Quoted

START_TIMEOUT = 60.0
"""Seconds until a hook's code must have been started."""


class Run(msgspec.Struct, frozen=True):
    """A note to itself: begin."""


class HookRunner(Actor):
    """One run of a hook's code, from its start to its end.

    Takes: nothing; questions come by the link.
    Sends: `HookStarted`, `HookEnded`, `Answered`, `Unanswered`, `Told` to its hook.
    Keeps: the code that runs, and the questions that it has.
    Fails: never by what a hook does.
    Ends: when its code does not start, ends, or sends what no hook may; it is started
        again after a while.
    """

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(
        self,
        settings: Settings,
        connect: Connect,
        link: QuestionQueue,
        figures: HookFigures,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._connect = connect
        self._link = link
        self._figures = figures

    def on_start(self) -> None:
        """Begin."""
        self.note(Run())

    async def on_receive(self, message: object) -> None:
        """Run the code until its end, which is told in any case."""
        if not isinstance(message, Run):
            super().on_receive(message)
            return
        reason = f"it did not start within {START_TIMEOUT:g} s"
        with trio.CancelScope() as starting:
            starting.deadline = trio.current_time() + START_TIMEOUT
            try:
                async with self._connect() as connection:
                    reason = await self._serve(connection, starting)
            except HookError as error:
                reason = str(error)
        self._end(reason)
        self._tell(HookEnded(reason))
        self.stop()

    def on_failure(self, *_args: object, **_kwargs: object) -> None:
        """Let nobody wait for what it had in hand, whatever went wrong."""
        self._end("its runner failed")

    def on_stop(self) -> None:
        """Let nobody wait for what it has in hand."""
        self._end("it has been stopped")

    def _end(self, reason: str) -> None:
        why = f"it does not run any more: {reason}"
        failed, missed = self._link.close(why)
        if failed or missed:
            self._tell(LeftBehind(why, failed, missed))

    def _tell(self, message: object) -> None:
        self.tell(f"{self.actor_urn.rpartition('/')[0]}/hook", message)

    async def _serve(
        self, connection: HookConnection, starting: trio.CancelScope
    ) -> str:
        """Put questions to the code until its end; give why it ended."""
        starting.deadline = float("inf")
        self._link.is_open = True
        self._tell(HookStarted())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._take, connection, nursery)
            nursery.start_soon(self._take_told, connection)
            await connection.ending.wait()
            self._end(connection.ending.reason)
            nursery.cancel_scope.cancel()
        return connection.ending.reason

    async def _take(self, connection: HookConnection, nursery: trio.Nursery) -> None:
        while True:
            nursery.start_soon(self._ask, connection, await self._link.take())

    async def _take_told(self, connection: HookConnection) -> None:
        while True:
            await self._tell_finished(connection, await self._link.take_told())

    async def _tell_finished(self, connection: HookConnection, told: TellHook) -> None:
        problem = f"it took longer than {self._settings.timeout:g} seconds"
        with trio.move_on_after(self._settings.timeout):
            try:
                await connection.tell(told)
            except HookError as error:
                problem = str(error)
            else:
                problem = ""
        self._tell(Told(problem))

    async def _ask(self, connection: HookConnection, pending: PendingQuestion) -> None:
        """Put one question, within its time."""
        began_at = trio.current_time()
        with trio.CancelScope(deadline=pending.due) as scope:
            try:
                found = await connection.ask(pending.asked)
                problem = checked(found, pending.asked.event)
                text = f"its verdict is none: {problem}"
                pending.end(HookError(text, "wrong") if problem else found)
            except HookError as error:
                pending.end(error)
        if scope.cancelled_caught:
            seconds = self._settings.timeout
            text = f"it did not answer within {seconds:g} s"
            pending.end(HookError(text, "timeout"))
        self._link.done(pending)
        outcome = pending.outcome
        if isinstance(outcome, HookError):
            self._tell(Unanswered(outcome.trouble, str(outcome)))
        elif outcome is not None:
            took = trio.current_time() - began_at
            self._figures.seconds.observe(took, self._settings.name)
            self._tell(Answered(outcome.action))


class HookConnection(Protocol):
    """A hook's code that runs."""

    ending: ServerEnd

    async def ask(self, asked: AskHook) -> Verdict:
        """Put one question to it; may be cancelled.

        Raises:
            connectors.hooks.hook.HookError: there is no verdict.
        """
        ...

    async def tell(self, told: TellHook) -> None:
        """Tell it of a finished turn; may be cancelled.

        Raises:
            connectors.hooks.hook.HookError: it failed.
        """
        ...


Connect = Callable[[], AbstractAsyncContextManager[HookConnection]]
"""Runs a hook's code until the block ends. Raises `HookError`: it cannot be started."""

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
        self.ending = ServerEnd()
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


GROUP = "callboard.hooks"


CONTAINED = (Exception, SystemExit, GeneratorExit)
"""What a hook may raise without ending the company: whoever writes `sys.exit()` in one
means the hook. An interrupt is not its own."""


class FunctionConnection:
    """A hook's function.

    Args:
        function: what the entry point names.
        most: threads at once. One that hangs keeps its own until it ends: nobody can
            end a thread.
    """

    def __init__(self, function: Callable[..., object], most: int) -> None:
        self.ending = ServerEnd()
        self._function = function
        self._most = most
        self._threads: set[object] = set()

    async def ask(self, asked: AskHook) -> Verdict:
        """Call it; see the port."""
        about = msgspec.to_builtins(asked.about)
        return as_verdict(await self._call(asked.event, asked.text, about))

    async def tell(self, told: TellHook) -> None:
        """Call it, and take no notice of what it gives; see the port."""
        about = {
            **msgspec.to_builtins(told.about),
            "ended": msgspec.to_builtins(told.ended),
        }
        await self._call("turn_finished", told.text, about)

    async def _call(self, *arguments: object) -> object:
        is_async = inspect.iscoroutinefunction(self._function)
        if not is_async and len(self._threads) >= self._most:
            raise HookError(f"{len(self._threads)} calls of it hang already", "busy")
        try:
            if is_async:
                return await cast("Awaitable[object]", self._function(*arguments))
            return await trio.to_thread.run_sync(
                partial(self._counted, *arguments),
                abandon_on_cancel=True,
                limiter=trio.CapacityLimiter(1),
            )
        except CONTAINED as error:
            text = one_line(f"it raised {in_words(error)}", LONGEST_ERROR)
            raise HookError(text, "failed") from error

    def _counted(self, *arguments: object) -> object:
        call = object()
        self._threads.add(call)
        try:
            return self._function(*arguments)
        finally:
            self._threads.discard(call)


def in_words(error: BaseException) -> str:
    """Say what a hook raised; what it says of itself may fail, too."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except CONTAINED:
        return name


def as_verdict(given: object) -> Verdict:
    """Take what a function gave for a verdict.

    Raises:
        HookError: it is none.
    """
    if given is None:
        return Verdict()
    found = Verdict("change", given) if isinstance(given, str) else given
    if not isinstance(found, Verdict):
        kind = type(given).__name__
        raise HookError(
            f"it gave {kind}; a hook gives None, a text or a Verdict", "wrong"
        )
    try:
        # A Struct that was made by hand may hold anything.
        found = msgspec.convert(msgspec.to_builtins(found), Verdict)
    except (msgspec.ValidationError, TypeError) as error:
        raise HookError(f"its verdict is none: {error}", "wrong") from error
    return found


def load(name: str) -> Callable[..., object]:
    """Find a function by its entry point, and import it.

    Raises:
        HookError: there is none, or it cannot be imported.
    """
    found = tuple(entry_points(group=GROUP, name=name))
    if not found:
        known = ", ".join(sorted(each.name for each in entry_points(group=GROUP)))
        raise HookError(
            f"no installed package has an entry point {name!r} in the group {GROUP};"
            f" there are: {known or 'none'}",
            "down",
        )
    try:
        function: object = found[0].load()
    except CONTAINED as error:
        text = f"{found[0].value} cannot be imported: {in_words(error)}"
        raise HookError(one_line(text, LONGEST_ERROR), "down") from error
    if not callable(function):
        raise HookError(f"{found[0].value} cannot be called", "down")
    return function


@asynccontextmanager
async def loaded(name: str, most: int) -> AsyncGenerator[FunctionConnection]:
    """Import a hook's function.

    Raises:
        HookError: as `load`.
    """
    # Why in a thread: what it imports may take seconds.
    yield FunctionConnection(await trio.to_thread.run_sync(load, name), most)
