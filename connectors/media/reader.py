"""Reads attachments: the port `MediaReader`.

What each one is, is found in its bytes; a name or a declared type only says how it is
called. Nothing of it is trusted: documents are framed for the model as what they are,
and parsed in a confined child; addresses are fetched by the guarded way only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import trio

from actors.errors import ModelError
from actors.messages.inbound import Attachment, Image, Media
from actors.models.pool import NEUTRAL
from actors.ports import Transcriber
from connectors.config.tools import MediaConfig
from connectors.fetch.messages import (
    PICTURES,
    Fetch,
    FetchError,
    FetchRequest,
    media_type,
)
from connectors.media import extract
from connectors.sandbox.plan import MIB, Confinement, SandboxError, SandboxLimits
from connectors.sandbox.runner import Sandbox
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("media")

PROGRAM = Path(extract.__file__).resolve()

LIMITS = SandboxLimits(
    memory=768 * MIB, cpu=20.0, processes=8, file_size=MIB, open_files=64
)
"""Chosen: a PDF of 10 MiB with pictures takes 300 MiB and some seconds."""

WHY = {
    extract.NO_PYPDF: "PDF files need pypdf: pip install 'callboard[documents]'",
}

BYTES_PER_CHARACTER = 4


class DocumentError(Exception):
    """A document could not be read; the text says why, without its name."""


class DocumentReader:
    """Gives the words of documents."""

    def __init__(self, sandbox: Sandbox, seconds: float) -> None:
        self._sandbox = sandbox
        self._seconds = seconds

    async def read(
        self, document: bytes, media_type: str, most: int, owner: str = ""
    ) -> str:
        """Give a document's text.

        Args:
            media_type: what it is, by its bytes.
            most: characters of text; one more comes back where there is more.
            owner: see `Sandbox.run`.

        Raises:
            DocumentError: it cannot be read.
        """
        try:
            ended = await self._sandbox.run(
                [sys.executable, "-I", str(PROGRAM), media_type, str(most)],
                confinement=Confinement(readable=(PROGRAM.parent,), limits=LIMITS),
                cwd=PROGRAM.parent,
                stdin=document,
                timeout=self._seconds,
                max_output=(most + 1) * BYTES_PER_CHARACTER,
                owner=owner,
            )
        except SandboxError as error:
            raise DocumentError(f"it cannot be read safely here: {error}") from error
        if ended.timed_out:
            raise DocumentError(f"reading it took longer than {self._seconds:g} s")
        if ended.returncode != 0:
            said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
            why = WHY.get(ended.returncode) or (said[-1][:200] if said else "")
            raise DocumentError(why or "it needs more memory or time than allowed")
        return ended.stdout.decode("utf-8", "replace")


MOST_NAME = 80

NOT_A_NAME = str.maketrans(dict.fromkeys('[]<>`"', "'"))
"""Would end the frame that a name stands in."""

# What a model could take for the end of a frame, in capitals, with blanks, or with what
# people cannot see.
_GAP = r"[\s\u00ad\u200b-\u200f\u2060\ufeff]"
ENDS = re.compile(rf"[\[\uff3b\u3010]({_GAP}*end{_GAP}+of)", re.IGNORECASE)

RECORDINGS = {"video/webm": "audio/webm", "video/mp4": "audio/mp4"}
"""Containers that voice notes come in."""


class Documents(Protocol):
    """Gives the words of documents, as `DocumentReader` does."""

    async def read(
        self, document: bytes, media_type: str, most: int, owner: str = ""
    ) -> str:
        """Give a document's text, or one character more than `most` of it."""
        ...


class UnreadError(Exception):
    """An attachment is left out; the text says why and what to do."""


class Reader:
    """Reads what came with messages."""

    def __init__(
        self,
        config: MediaConfig,
        fetch: Fetch,
        documents: Documents,
        transcriber: Transcriber | None,
    ) -> None:
        self._config = config
        self._fetch = fetch
        self._documents = documents
        self._transcriber = transcriber

    async def read(self, attachments: Sequence[Attachment], owner: str = "") -> Media:
        """Read them side by side; never fails."""
        config = self._config
        found = [Media() for _ in attachments]

        async def read(place: int, attachment: Attachment) -> None:
            found[place] = await self._read_one(attachment, owner)

        async with trio.open_nursery() as nursery:
            for place, attachment in enumerate(attachments[: config.max_attachments]):
                nursery.start_soon(read, place, attachment)
        for place, attachment in enumerate(attachments):
            if place >= config.max_attachments:
                why = f"only {config.max_attachments} are read at a time"
                found[place] = left_out(attachment, why)
        return Media(
            text="\n\n".join(each.text for each in found if each.text),
            images=tuple(image for each in found for image in each.images),
            kept="\n\n".join(each.kept for each in found if each.kept),
        )

    async def _read_one(self, attachment: Attachment, owner: str) -> Media:
        late = left_out(attachment, f"it took longer than {self._config.timeout:g} s")
        with trio.move_on_after(self._config.timeout):
            try:
                content = await self._content(attachment, owner)
                return await self._understand(attachment, content, owner)
            except (DocumentError, FetchError, UnreadError) as error:
                return left_out(attachment, str(error))
            except ModelError as error:
                LOG.warning(
                    "recording not transcribed",
                    kind=error.kind,
                    why=error.plain or "see it with log.texts = true",
                    said=Quoted(error),
                )
                # Why so little: the agent passes on what it reads here, and people need
                # not know whose service that is.
                told = NEUTRAL.get(error.kind, "not available")
                return left_out(attachment, f"nobody could write it down: {told}")
        return late

    async def _content(self, attachment: Attachment, owner: str) -> bytes:
        """Get the bytes, from where they are."""
        content = attachment.content
        if not content and attachment.url:
            wanted = FetchRequest(
                url=attachment.url, max_bytes=self._config.max_bytes, owner=owner
            )
            fetched = await self._fetch(wanted)
            if not fetched.is_success:
                raise UnreadError(f"its address answered HTTP {fetched.status}")
            content = fetched.body
        if not content:
            raise UnreadError("it is empty")
        if len(content) > self._config.max_bytes:
            raise UnreadError(f"it is above {self._config.max_bytes} bytes")
        return content

    async def _understand(
        self, attachment: Attachment, content: bytes, owner: str
    ) -> Media:
        kind = media_type(content, attachment.media_type)
        kind = RECORDINGS.get(kind, kind) if attachment.kind == "audio" else kind
        if kind.startswith("image/"):
            return self._picture(attachment, content, kind)
        if kind.startswith("audio/"):
            return await self._recording(content, kind)
        return await self._document(attachment, content, kind, owner)

    def _picture(self, attachment: Attachment, content: bytes, kind: str) -> Media:
        if kind not in PICTURES:
            raise UnreadError(f"{kind} is no picture that models see; send PNG or JPEG")
        if len(content) > self._config.max_image_bytes:
            most = self._config.max_image_bytes
            raise UnreadError(f"it is above {most} bytes; send a smaller one")
        line = f"[Image: {called(attachment)}]"
        return Media(text=line, images=(Image(kind, content),), kept=line)

    async def _recording(self, content: bytes, kind: str) -> Media:
        if self._transcriber is None:
            raise UnreadError("this company transcribes no recordings; please write")
        words = (await self._transcriber.transcribe(content, kind)).strip()
        most = self._config.max_document_chars
        said = cut(words, most) or "(nothing was said)"
        line = self._config.voice_line.replace("{words}", said)
        return Media(text=line, kept=line)

    async def _document(
        self, attachment: Attachment, content: bytes, kind: str, owner: str
    ) -> Media:
        most = self._config.max_document_chars
        text = await self._documents.read(content, kind, most, owner)
        if not text.strip():
            raise UnreadError("there is no text in it")
        shown = cut(text, most)
        return Media(
            text=framed(attachment, shown),
            kept=framed(attachment, cut(text, self._config.max_kept_chars)),
        )


def called(attachment: Attachment) -> str:
    """Give a name that fits into one line, and ends no frame."""
    name = "".join(c if c.isprintable() else " " for c in attachment.name)
    name = " ".join(name.translate(NOT_A_NAME).split())
    return name[:MOST_NAME] or attachment.kind


def cut(text: str, most: int) -> str:
    """Shorten a text to a number of characters, and say so."""
    return text if len(text) <= most else f"{text[:most]}\n[cut at {most} characters]"


def framed(attachment: Attachment, text: str) -> str:
    """Put a document's text between lines that say what it is."""
    name = called(attachment)
    inside = ENDS.sub(r"(\1", text)
    return f"[Document: {name}]\n{inside}\n[End of {name}]"


def left_out(attachment: Attachment, why: str) -> Media:
    """Say that an attachment was not read."""
    line = f"[{attachment.kind.capitalize()} {called(attachment)} was not read: {why}]"
    return Media(text=line, kept=line)
