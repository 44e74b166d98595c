"""Models that are programs of the command line, such as Claude Code or Codex.

Made for `kind = "cli"`. The prompt goes to the program's standard input, its answer
comes as JSON. It works in a folder of the conversation's own, keeps the conversation
there, and always runs in the sandbox, which is why it may be allowed to use its tools
without asking. A folder is removed when nobody has spoken there for long. The program's
own memory of the conversation goes with it; Callboard's stays, and the next message
starts the program again with that.

Claude Code's `--output-format json` is one JSON object on one line, perhaps after
others, perhaps the last of an array: `result`, `session_id`, `usage`,
`total_cost_usd`, `is_error`, and a `subtype` that says how it ended. Codex's `--json`
is an event on each line: `thread.started`, `item.completed` with each message, and
`turn.completed` or `turn.failed` at the end, whose tokens are those of the whole
session.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec
import trio

from actors.errors import ModelBusyError, ModelError, ModelFault, ModelRefusedError
from actors.messages.inbound import (
    Image,
    ModelAnswer,
    ModelRequest,
    TranscriptLine,
    Usage,
)
from actors.ports import Speak
from connectors.config.models import CliModelConfig
from connectors.sandbox.orders import command_files
from connectors.sandbox.plan import LONG_RUNNING, Confinement, Finished, SandboxError
from connectors.sandbox.runner import Sandbox
from runtime.errors import KernelError
from runtime.fairness import FairLimiter
from runtime.telemetry.logs import EventLog, Quoted

MAX_SNIPPET = 200
TURNS_USED_UP = "error_max_turns"

# Source: the program's own messages; each is matched anywhere, without case.
TROUBLES: tuple[tuple[str, ModelFault], ...] = (
    (r"usage limit|credit balance|quota|billing|\b402\b", "quota"),
    (r"rate.?limit|too many requests|\b429\b", "rate"),
    (
        r"invalid api key|not logged in|/login|authenticat|unauthori[sz]ed|\b401\b",
        "auth",
    ),
    (r"prompt is too long|context (window|length)|too many tokens", "context"),
    (r"overloaded|\b529\b|\b503\b|internal server error|\b500\b", "overload"),
    (r"network|connection|econn|enotfound|socket|fetch failed", "network"),
    (r"usage polic|content filter", "content"),
)
REFUSED: frozenset[ModelFault] = frozenset({"quota", "auth", "context", "content"})


class ProgramCounts(msgspec.Struct, frozen=True):
    """The program's token counts."""

    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class ProgramSession(msgspec.Struct, frozen=True):
    """A session of a program, as the conversation's history keeps it."""

    id: str = ""
    taken: Usage = Usage()
    """All that it has taken, if the program tells of the sum; else nothing."""

    def __str__(self) -> str:
        """Write it down."""
        counts = msgspec.structs.astuple(self.taken)[:3]
        return " ".join([self.id, *map(str, counts if any(counts) else ())])

    @classmethod
    def read(cls, text: str) -> ProgramSession:
        """Read what was written down; a bare id is one that has taken nothing."""
        name, *counts = text.split(" ")
        if len(counts) == 3 and all(count.isdecimal() for count in counts):
            return cls(name, Usage(*map(int, counts)))
        return cls(name)


class ProgramOutput(msgspec.Struct, frozen=True):
    """What the program printed at its end."""

    type: str = "result"
    subtype: str = ""
    is_error: bool = False
    result: str | None = None
    session_id: str = ""
    usage: ProgramCounts | None = None
    total_cost_usd: float | None = None
    tells_sum: bool = False
    """Whether `usage` is what the whole session has taken."""

    @property
    def is_cut(self) -> bool:
        """Whether it stopped because it had used up its turns."""
        return self.subtype == TURNS_USED_UP

    @property
    def has_failed(self) -> bool:
        """Whether this is no answer, and not the first part of one."""
        return self.is_error and not self.is_cut

    @property
    def tokens(self) -> Usage:
        """What it took."""
        counts = self.usage or ProgramCounts()
        read = (
            counts.input_tokens
            + counts.cache_creation_input_tokens
            + counts.cache_read_input_tokens
        )
        return Usage(
            max(read, 0),
            max(counts.output_tokens, 0),
            max(counts.cache_read_input_tokens, 0),
            max(self.total_cost_usd or 0.0, 0.0),
        )

    def taken_in(self, session: ProgramSession) -> Usage:
        """Say what this answer took of the session that it went on with."""
        before = session.taken if self.tells_sum else Usage()
        took = self.tokens
        return Usage(
            max(took.input_tokens - before.input_tokens, 0),
            max(took.output_tokens - before.output_tokens, 0),
            max(took.cached_tokens - before.cached_tokens, 0),
            took.dollars,
        )

    def after(self, session: ProgramSession) -> ProgramSession:
        """Give the session as it is now."""
        is_told = self.tells_sum and self.usage is not None
        taken = self.tokens if is_told else session.taken
        return ProgramSession(self.session_id or session.id, taken)


class ProgramItem(msgspec.Struct, frozen=True):
    """What Codex did, such as saying something."""

    type: str = ""
    text: str = ""


class SessionCounts(msgspec.Struct, frozen=True):
    """Codex's token counts; the cache's part is among what was read."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0

    def plain(self) -> ProgramCounts:
        """Count the cache's part apart."""
        return ProgramCounts(
            self.input_tokens - self.cached_input_tokens,
            cache_read_input_tokens=self.cached_input_tokens,
            output_tokens=self.output_tokens,
        )


class ProgramTrouble(msgspec.Struct, frozen=True):
    """What went wrong, as Codex says it."""

    message: str = ""


class ProgramEvent(msgspec.Struct, frozen=True):
    """One of Codex's events."""

    type: str = ""
    thread_id: str = ""
    item: ProgramItem = ProgramItem()
    usage: SessionCounts | None = None
    error: ProgramTrouble = ProgramTrouble()


def read_output(stdout: bytes) -> ProgramOutput | None:
    """Find the result among what was printed; None if there is none."""
    lines = [line.strip() for line in stdout.splitlines()]
    for line in reversed(lines):
        found = read_line(line)
        if found is not None:
            return found
    return read_line(stdout.strip()) or read_events(lines)


def read_events(lines: list[bytes]) -> ProgramOutput | None:
    """Put events together; None if they tell of no end."""
    thread, words = "", ""
    for event in filter(None, map(read_event, lines)):
        thread = event.thread_id or thread
        match event.type:
            case "item.completed" if event.item.type == "agent_message":
                words = event.item.text
            case "turn.completed":
                usage = event.usage.plain() if event.usage else None
                return ProgramOutput(
                    result=words, session_id=thread, usage=usage, tells_sum=True
                )
            case "turn.failed":
                said = event.error.message
                return ProgramOutput(is_error=True, result=said, session_id=thread)
            case _:
                pass  # commands it ran, and errors that it got over
    return None


def read_event(line: bytes) -> ProgramEvent | None:
    """Read an event; None if a line is none."""
    try:
        return msgspec.json.decode(line, type=ProgramEvent)
    except (ValueError, RecursionError):
        return None


def read_line(line: bytes) -> ProgramOutput | None:
    """Read one line, or all of it; None if that is no result."""
    if not line.startswith((b"{", b"[")):
        return None
    try:
        if line.startswith(b"["):
            line = bytes(msgspec.json.decode(line, type=list[msgspec.Raw])[-1])
        decoded = msgspec.json.decode(line, type=ProgramOutput)
    except (ValueError, RecursionError, IndexError):
        return None
    if decoded.type != "result" or (decoded.result is None and not decoded.subtype):
        return None
    return decoded


def trouble(name: str, said: str) -> ModelError:
    """Make the error for what the program said went wrong.

    Args:
        name: what the program is called, for the text.
        said: its own words, without secrets; may be empty.
    """
    shown = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    text = f"{name}: {shown[:MAX_SNIPPET] or 'it ended without an answer'}"
    for pattern, kind in TROUBLES:
        if re.search(pattern, said, re.IGNORECASE):
            if kind in REFUSED:
                return ModelRefusedError(text, kind=kind)
            return ModelBusyError(text, kind=kind)
    return ModelBusyError(text, kind="protocol")


LOG = EventLog("cli")

DAY = 86_400.0

# Chosen: folders age by days; a look takes about 10 ms for each thousand of them.
LOOK_EVERY = 3600.0
"""Seconds between two looks."""

MOST_AT_ONCE = 1000
"""Folders removed in one look; the others wait for the next."""

LEAVING = ".leaving"
"""Ends the name of a folder that is being removed: nobody begins anything in it."""


class Folders:
    """The folders of all programs' conversations.

    Args:
        folder: holds them, as `<agent>/<conversation>`.
        keep: seconds for which an unused one stays.
        wall_clock: gives Unix seconds.
        count: is told how many were removed.
    """

    def __init__(
        self,
        folder: Path,
        keep: float,
        wall_clock: Callable[[], float],
        count: Callable[[int], object],
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._wall_clock = wall_clock
        self._count = count
        self._due_at = 0.0

    async def tidy(self) -> None:
        """Remove those that nobody uses any more; mostly there is nothing to do."""
        now = self._wall_clock()
        if now < self._due_at:
            return
        self._due_at = now + LOOK_EVERY
        removed = await trio.to_thread.run_sync(
            remove_unused, self._folder, now - self._keep
        )
        if removed:
            self._count(removed)
            LOG.info("folders of programs' conversations removed", count=removed)


def touch(home: Path) -> None:
    """Note that a conversation's folder is in use now.

    Raises:
        OSError: it cannot be changed.
    """
    os.utime(home)


def remove_unused(folder: Path, before: float) -> int:
    """Remove the folders that were last used before a moment; give how many.

    Args:
        folder: holds them, as `<agent>/<conversation>`.
        before: Unix seconds.
    """
    removed = 0
    for home in folders_in(folder):
        if removed == MOST_AT_ONCE:
            break
        try:
            if home.name.endswith(LEAVING):
                leaving = home
            elif home.lstat().st_mtime < before:
                # Renamed first: a message that comes just now begins a new one.
                leaving = home.rename(home.with_name(home.name + LEAVING))
            else:
                continue
            shutil.rmtree(leaving)
            removed += 1
        except OSError as error:
            LOG.warning(
                "folder of a conversation not removed",
                folder=str(home),
                why=error.strerror,
            )
    return removed


def folders_in(folder: Path) -> Iterator[Path]:
    """Give the conversations' folders of all agents; links are none."""
    for agent in plain_folders(folder):
        yield from plain_folders(agent)


def plain_folders(folder: Path) -> list[Path]:
    """List the folders in a folder; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            names = [x.name for x in found if x.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


# Chosen: one more start of the program after each.
GOES_ON_AFTER = (2.0, 4.0, 8.0, 16.0, 32.0)


class CallAids(msgspec.Struct, frozen=True):
    """What a program is given for one answer besides its prompt."""

    servers: Path | None = None
    """A file that names servers of tools, for the program to start."""

    readable: tuple[Path, ...] = ()
    """Folders that it may read: those of the agent's skills."""


Prepare = Callable[["ModelRequest", "Path"], "AbstractAsyncContextManager[CallAids]"]
"""Makes a conversation's folder ready for one answer, and tidies up after it; raises
`KernelError`."""


def leave_as_it_is(_: ModelRequest, __: Path) -> AbstractAsyncContextManager[CallAids]:
    """Prepare nothing."""
    return nullcontext(CallAids())


class ProgramPlace(msgspec.Struct, frozen=True):
    """Where programs run."""

    sandbox: Sandbox
    folder: Path
    """Where their conversations' folders are: `<agent>/<conversation>`."""

    prepare: Prepare = leave_as_it_is
    tidy: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    """Removes what nobody uses any more; called before each answer."""

    pauses: tuple[float, ...] = GOES_ON_AFTER
    """Seconds before each further start for one answer."""


def confinement_of(
    config: CliModelConfig, home: Path, readable: tuple[Path, ...] = ()
) -> Confinement:
    """Say what a program that answers may do.

    Args:
        home: its current folder, which it may change.
        readable: what it may read besides what the settings say.
    """
    program, *rest = config.command
    named = command_files(program, rest, home)
    return Confinement(
        readable=(*config.readable, *named, *readable),
        writable=(home, *config.writable),
        network="tcp",
        limits=LONG_RUNNING,
    )


MAX_OUTPUT = 4 * 1024 * 1024
MAX_COMPLAINT = 500

GO_ON = b"Go on where you stopped."

PASSES_ON: frozenset[ModelFault] = frozenset({"rate", "quota", "auth", "overload"})
"""What a fresh session of the program would run into as well."""

ENDINGS = {"image/png": "png", "image/gif": "gif", "image/webp": "webp"}


class CallPlace(msgspec.Struct, frozen=True):
    """Where the program works for one answer, and what lies there for it."""

    home: Path
    images: list[Path]
    aids: CallAids


class CliModel:
    """Answers by starting a program."""

    def __init__(self, config: CliModelConfig, ground: ProgramPlace) -> None:
        self._config = config
        self._ground = ground
        self._name = config.command[0].rpartition("/")[2]
        self._secrets = {
            name: secret.reveal() for name, secret in config.secrets.items()
        }
        self._at_once = FairLimiter(config.max_at_once)

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Run the program until it has answered.

        Raises:
            ModelBusyError: it did not answer, and may another time.
            ModelRefusedError: it will not: key, quota, length, or no sandbox.
        """
        async with self._at_once.place(request.owner):
            home = (
                self._ground.folder / request.agent / folder_name(request.conversation)
            )
            inbox = home / "inbox"
            images = request.lines[-1].images
            saved = [inbox / f"{uuid.uuid4()}.{ending(image)}" for image in images]
            await self._ground.tidy()
            try:
                await trio.to_thread.run_sync(make_inbox, inbox)
                for path, image in zip(saved, images, strict=True):
                    await trio.Path(path).write_bytes(image.content)
                async with self._ground.prepare(request, home) as aids:
                    place = CallPlace(home, saved, aids)
                    return await self._converse(request, place, speak)
            except KernelError as error:
                raise ModelRefusedError(f"{self._name}: {error}") from error
            except OSError as error:
                text = f"{self._name}: {home} cannot be used: {error.strerror}"
                raise ModelBusyError(text, kind="overload") from error
            finally:
                for path in saved:
                    path.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Do nothing: each program has ended with its answer."""

    async def _converse(
        self, request: ModelRequest, place: CallPlace, speak: Speak
    ) -> ModelAnswer:
        """Have an answer; tell what it took, or what it took to get none."""
        taken: list[Usage] = []
        try:
            answer = await self._talk(request, place, taken)
        except ModelError as error:
            error.tokens = msgspec.structs.astuple(sum(taken, Usage()))
            raise
        speak(answer.text)
        return msgspec.structs.replace(answer, usage=sum(taken, Usage()))

    async def _talk(
        self, request: ModelRequest, place: CallPlace, taken: list[Usage]
    ) -> ModelAnswer:
        """Go on with the program's session; begin a new one if that fails."""
        images = [str(path) for path in place.images]
        if request.resume:
            prompt = short_prompt(request, images)
            session = ProgramSession.read(request.resume)
            try:
                return await self._run(request, place, prompt, session, taken)
            except ModelError as error:
                if error.kind in PASSES_ON:
                    raise
                LOG.info(
                    "session of a program lost", program=self._name, why=Quoted(error)
                )
        prompt = full_prompt(request, images)
        return await self._run(request, place, prompt, ProgramSession(), taken)

    async def _run(
        self,
        request: ModelRequest,
        place: CallPlace,
        prompt: bytes,
        session: ProgramSession,
        taken: list[Usage],
    ) -> ModelAnswer:
        """Run the program, again where it stops for its number of turns."""
        said: list[str] = []
        for wait in (0.0, *self._ground.pauses):
            await trio.sleep(wait)
            output = await self._start(request, place, prompt, session.id)
            taken.append(output.taken_in(session))
            if output.has_failed:
                words = self._without_secrets(output.result or "")
                raise trouble(self._name, words)
            if output.result:
                said.append(output.result.strip())
            session = output.after(session)
            if not (output.is_cut and session.id):
                break
            prompt = GO_ON
        text = "\n\n".join(part for part in said if part)
        if not text:
            raise ModelRefusedError(f"{self._name}: {self._silence()}")
        return ModelAnswer(text=text, resume=str(session))

    def _silence(self) -> str:
        if not self._config.turns_flag:
            return "ended without a word"
        turns = self._config.max_turns
        return f"no answer within {turns} turns; allow more (max_turns)"

    async def _start(
        self, request: ModelRequest, place: CallPlace, prompt: bytes, resume: str
    ) -> ProgramOutput:
        """Run the program once."""
        config = self._config
        try:
            ended = await self._ground.sandbox.run(
                self._command(request, resume, place.aids),
                confinement=confinement_of(config, place.home, place.aids.readable),
                cwd=place.home,
                env={**config.variables, **self._secrets},
                stdin=prompt,
                timeout=config.timeout,
                max_output=MAX_OUTPUT,
                owner=self._name,
            )
        except SandboxError as error:
            raise ModelRefusedError(f"{self._name}: {error}") from error
        complaint = self._log_complaint(ended)
        if ended.timed_out:
            late = f"{self._name}: not done after {config.timeout:g} s"
            raise ModelBusyError(late, kind="timeout")
        output = None if ended.was_cut else read_output(ended.stdout)
        if output is None:
            raise trouble(self._name, complaint)
        if output.has_failed and not output.result:
            return msgspec.structs.replace(output, result=complaint)
        return output

    def _command(self, request: ModelRequest, resume: str, aids: CallAids) -> list[str]:
        config = self._config
        command = [*config.command, *config.arguments]
        if request.model and config.model_flag:
            command += [config.model_flag, request.model]
        if config.turns_flag:
            command += [config.turns_flag, str(config.max_turns)]
        if resume and config.resume_flag:
            command += [config.resume_flag, resume]
        if aids.servers and config.servers_flag:
            command += [config.servers_flag, str(aids.servers)]
        return command

    def _log_complaint(self, ended: Finished) -> str:
        """Log what it wrote to standard error; give it."""
        said = self._without_secrets(ended.stderr.decode("utf-8", "replace").strip())
        if said:
            shown = Quoted(said[:MAX_COMPLAINT])
            log = LOG.warning if ended.returncode else LOG.info
            log("a program complained", program=self._name, said=shown)
        return said

    def _without_secrets(self, text: str) -> str:
        for name, value in self._secrets.items():
            text = text.replace(value, f"[{name}]")
        return text


def make_inbox(inbox: Path) -> None:
    """Make a conversation's folder, and the one for pictures in it.

    The program may write there: what it has put in that one's place goes, and a link
    leads us nowhere.
    """
    inbox.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if inbox.is_symlink() or not inbox.is_dir():
        inbox.unlink(missing_ok=True)
    inbox.mkdir(exist_ok=True, mode=0o700)
    touch(inbox.parent)


def folder_name(conversation: str) -> str:
    """Name a conversation's folder: nothing of what people chose is in it."""
    return hashlib.sha256(conversation.encode()).hexdigest()[:32]


def ending(image: Image) -> str:
    """Give the ending of a picture's file name."""
    return ENDINGS.get(image.media_type, "jpg")


ENDS_AN_ELEMENT = str.maketrans({"<": "[", ">": "]"})
"""What people write stands between tags, and must not close them."""


def full_prompt(request: ModelRequest, images: Sequence[str]) -> bytes:
    """Write all that a new session of the program must know.

    Args:
        images: files with the pictures of the newest message.
    """
    *earlier, newest = request.lines
    parts = [
        f"<instructions>\n{request.system}\n</instructions>" if request.system else "",
    ]
    if earlier:
        told = "\n\n".join(told_line(line) for line in earlier)
        parts.append(f"<conversation>\n{told}\n</conversation>")
    parts.append(question(newest, images))
    return "\n\n".join(part for part in parts if part).encode()


def short_prompt(request: ModelRequest, images: Sequence[str]) -> bytes:
    """Write what a session of the program that goes on must know."""
    newest = request.lines[-1]
    parts = [*request.notes, question(newest, images)]
    return "\n\n".join(parts).encode()


def told_line(line: TranscriptLine) -> str:
    """Tell who said what."""
    speaker = line.name or line.role
    return f"{speaker}: {line.text}".translate(ENDS_AN_ELEMENT)


def question(line: TranscriptLine, images: Sequence[str]) -> str:
    """Write the newest words, after the files that came with them."""
    named = [f"[Attached image: {path}]" for path in images]
    return "\n".join([*named, told_line(line)])
