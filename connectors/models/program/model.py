"""A model that is a program: Claude Code, Codex, or any that speaks as they do.

The prompt goes to its standard input, its answer comes as JSON. It works in a folder of
the conversation's own, keeps the conversation there, and always runs in the sandbox,
which is why it may be allowed to use its tools without asking.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import ModelBusyError, ModelError, ModelFault, ModelRefusedError
from actors.messages.inbound import ModelAnswer, Usage
from connectors.models.program.folders import (
    CallAids,
    ProgramPlace,
    confinement_of,
    touch,
)
from connectors.models.program.output import (
    ProgramOutput,
    ProgramSession,
    read_output,
    trouble,
)
from connectors.sandbox.plan import Finished, SandboxError
from runtime.errors import KernelError
from runtime.fairness import FairLimiter
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from actors.messages.inbound import Image, ModelRequest, TranscriptLine
    from actors.ports import Speak
    from connectors.config.models import CliModelConfig


LOG = EventLog("cli")

MAX_OUTPUT = 4 * 1024 * 1024
MAX_COMPLAINT = 500

GO_ON = b"Go on where you stopped."

PASSES_ON: frozenset[ModelFault] = frozenset({"rate", "quota", "auth", "overload"})
"""What a fresh session of the program would run into as well."""

ENDINGS = {"image/png": "png", "image/gif": "gif", "image/webp": "webp"}


@dataclass(frozen=True)
class CallPlace:
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
        """Run the program once.

        Raises:
            ModelError: it gave no answer.
        """
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
        request: what is asked, with its conversation.
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
