"""Ports of the domain to models, tools, files and memory, as Protocols.

Each port has one contract suite in `tests/contracts/`, which every implementation
passes, fake and real. An implementation translates its library's errors into those of
`actors/errors.py`.

What the domain needs of whoever copies and keeps the files that agents send.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from actors.messages.inbound import (
    Attachment,
    Image,
    Media,
    ModelAnswer,
    ModelRequest,
    SentFile,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)

Speak = Callable[[str], None]
"""Receives the next piece of a streamed answer; never waits, never fails."""


class Model(Protocol):
    """A model that answers a transcript.

    Implemented by `connectors/models/scripted.py` (start there) and
    `connectors/models/http/client.py`, which speaks the formats of
    `connectors/models/openai/model.py`, `connectors/models/anthropic.py`,
    `connectors/models/google.py` and `connectors/models/ollama.py`; all
    pass `tests/contracts/test_model.py`.

    A callback instead of an async generator carries the stream: a generator left
    half read needs an async close that cancellation can skip, a callback does not.
    """

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Answer one request, and pass the text to `speak` piece by piece.

        The pieces in order make up `ModelAnswer.text`. Cancelling the caller's
        scope closes the connection.

        Raises:
            ModelBusyError: try again; `retry_after` is in seconds, or None. Also
                for a stream that ended without its protocol's end marker.
            ModelRefusedError: trying again cannot help (key, quota, content).
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, at the end."""
        ...


class Tool(Protocol):
    """A tool that agents can call.

    Implemented in `connectors/tools/`, starting with `connectors/tools/calculate.py`;
    all pass `tests/contracts/test_tool.py`.
    """

    @property
    def spec(self) -> ToolSpec:
        """The tool's description for models; constant for its life."""
        ...

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run one call. Bad arguments are a result with `is_error`, not an exception.

        Raises:
            ToolError: the tool itself failed; its text goes to the model.
        """
        ...


class MediaReader(Protocol):
    """Reads attachments into text and pictures.

    Implemented by `connectors/media/reader.py`; passes
    `tests/contracts/test_media_reader.py`.
    """

    async def read(self, attachments: Sequence[Attachment], owner: str = "") -> Media:
        """Read attachments, each within its own time limit; never fails.

        The text names each file that cannot be read, with the reason and what to do.

        Args:
            owner: the person who sent it: whose share of what all use it takes.
        """
        ...


class Noted(msgspec.Struct, frozen=True):
    """Something worth remembering, found in a conversation."""

    kind: str
    """`facts`: memory tags, one per line; `summary`: the summary of a conversation."""

    agent: str
    conversation: str
    """The session's key."""

    sender_id: str
    """The person whose message brought it up last."""

    text: str
    """The text, without secrets and without markers other than memory tags."""

    is_group: bool = False
    """Whether the conversation is a group chat."""

    since: str = ""
    """Mark of the last `/forget` before the text was written; see
    `actors/memory/forgetting.py`.
    """


ReadChecklist = Callable[[Path], Awaitable[str]]
"""Reads a heartbeat's checklist file; empty if there is none. Raises `ToolError` with
the reason if it cannot be read. Implemented by
`connectors/settings/checks/schedule.py`.
"""


class Transcriber(Protocol):
    """Transcribes voice recordings.

    Implemented by `connectors/models/audio.py`; passes
    `tests/contracts/test_transcriber.py`.
    """

    async def transcribe(self, recording: bytes, media_type: str) -> str:
        """Return the text of one recording; empty if nobody speaks.

        Args:
            recording: bytes of the file.
            media_type: MIME type detected from its bytes: `audio/ogg`, `audio/mpeg`, …

        Raises:
            ModelBusyError: try again; `retry_after` is in seconds, or None.
            ModelRefusedError: trying again cannot help.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, at the end."""
        ...


class Speaker(Protocol):
    """Turns text into speech.

    Implemented by `connectors/models/audio.py`; passes
    `tests/contracts/test_speaker.py`.
    """

    @property
    def media_type(self) -> str:
        """MIME type of the recordings, such as `audio/mpeg`; constant for its life."""
        ...

    @property
    def max_chars(self) -> int:
        """Longest text of one recording, in characters; constant for its life."""
        ...

    async def speak(self, text: str, voice: str = "") -> bytes:
        """Return a recording of one text.

        Args:
            text: the text to speak; at most `max_chars` characters.
            voice: the provider's name of a voice; empty uses the one in the settings.

        Raises:
            ModelBusyError: try again; `retry_after` is in seconds, or None.
            ModelRefusedError: trying again cannot help.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, at the end."""
        ...


class Embedder(Protocol):
    """Computes embedding vectors of texts.

    Implemented by `connectors/models/embedders/local.py` (start there: no key, no
    network) and `connectors/models/embedders/http.py`, which speaks OpenAI's format and
    Ollama's; all pass `tests/contracts/test_embedder.py`.
    """

    @property
    def space(self) -> str:
        """Vector space: maker, model, dimensions. Vectors of two cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """Return one packed vector (`runtime.store.vectors.pack`) per text, in order.

        Args:
            texts: at most 256; of a text that is too long only the beginning counts.

        Raises:
            ModelBusyError: try again; `retry_after` is in seconds, or None.
            ModelRefusedError: trying again cannot help.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, at the end."""
        ...


class LogBook(Protocol):
    """Daily logs of agents for people to read, one file a day.

    Implemented by `connectors/files/notebook.py`; passes
    `tests/contracts/test_log_book.py`.
    """

    async def append(self, agent: str, at: float, text: str) -> None:
        """Add an entry, `- [HH:MM] text`, to the agent's file of that day.

        Args:
            at: Unix seconds.
            text: one entry; line breaks become spaces.

        Raises:
            ToolError: the entry cannot be written; the text says why.
        """
        ...

    async def prune(self, agent: str, before: float) -> int:
        """Delete the agent's files of days that ended before `before`.

        Args:
            before: Unix seconds.

        Returns:
            Number of deleted files; some may be left for the next call.

        Raises:
            ToolError: files cannot be deleted; the text says why.
        """
        ...


class Jot(msgspec.Struct, frozen=True):
    """Result of writing to, or reading from, the notebook."""

    text: str = ""
    """The present text in the notebook."""

    why: str = ""
    """Why it failed, for people; empty on success."""


class Notebook(Protocol):
    """The operator's files that agents may extend or read.

    Implemented by `connectors/files/notebook.py`; passes
    `tests/contracts/test_notebook.py`. Names and texts come from models. Whatever they
    hold, nothing outside the configured folders is touched, and a failure is a result,
    never an exception. Writing the same text twice stores it once, with the same result
    both times.
    """

    async def improve_skill(
        self, agent: str, skill: str, lesson: str, *, is_owner: bool
    ) -> Jot:
        """Add a lesson to one of the agent's skills; it is in effect at once.

        Args:
            agent: name of the agent that learnt it.
            lesson: one sentence, without secrets.
            is_owner: whether an owner's message led to it.
        """
        ...

    async def report_bug(self, agent: str, at: float, text: str) -> Jot:
        """Add a report to the bug file.

        Args:
            agent: name of the reporting agent.
            at: Unix seconds.
            text: the report, without secrets; line breaks become spaces, and a long
                report is cut.
        """
        ...

    async def find_project(self, name: str) -> Jot:
        """Return a project's exact name if the project can be read."""
        ...

    async def read_project(self, name: str) -> Jot:
        """Return the operator's text about a project."""
        ...


class Offer(msgspec.Struct, frozen=True):
    """The tools that an agent gets beside its own, for one round."""

    tools: tuple[Tool, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the prompt: which tools are unavailable, and how to use them."""

    standing: tuple[str, ...] = ()
    """The part of the notes that is the same for every message."""


class ToolSource(Protocol):
    """A source of tools that come and go: tool servers and skills.

    Implemented by `connectors/mcp/source.py` and `connectors/skills/source.py`; all
    pass `tests/contracts/test_tool_source.py`.
    """

    async def offer(self, context: ToolContext, words: str) -> Offer:
        """Return the agent's present tools; called before each round of a turn.

        Waits a few seconds at most and never fails; an unavailable tool becomes a note.
        Tool names are unique over all sources.

        Args:
            words: the messages of this turn.
        """
        ...


class PictureWatch(Protocol):
    """Watches for pictures that one turn creates in an agent's folder."""

    async def take(self, most: int) -> tuple[SentFile, ...]:
        """Copy new and changed pictures, at most `most`; never fails.

        None if another turn of the agent ran meanwhile, since the pictures may belong
        to it.
        """
        ...

    async def clear(self) -> None:
        """Delete the copied pictures from the folder unless they have changed since."""
        ...

    def end(self) -> None:
        """Stop watching; always called."""
        ...


class Enclosures(Protocol):
    """Copies the files that agents send at once, so that they cannot change.

    Implemented by `connectors/tools/workspace/files.py`. Copies that are never sent
    are swept after a while (`Blobs`), so nobody has to release them.
    """

    async def enclose(
        self, agent: str, path: str, *, show_as: str = "", caption: str = ""
    ) -> SentFile:
        """Copy a file from an agent's own folder.

        Args:
            agent: name of the agent; paths cannot leave its folder.
            path: path of the file, as the agent wrote it.
            show_as: a kind of `SentFile`, used if its bytes allow it; empty: detect
                from its bytes.

        Raises:
            ToolError: the file cannot be sent; the text says why.
        """
        ...

    async def watch(self, agent: str) -> PictureWatch:
        """Watch an agent's folder for pictures that appear from now on."""
        ...

    async def enclose_image(self, agent: str, image: Image, name: str) -> SentFile:
        """Keep a picture that a tool returned to an agent; raises like `enclose`."""
        ...


class Blobs(Protocol):
    """Storage of file bytes until the files have been sent.

    Implemented by `connectors/files/blobs.py`.
    """

    async def sweep(self, needed: Collection[str], before: float) -> int:
        """Delete files that nothing needs any more.

        Args:
            needed: digests of files that are still to be sent.
            before: Unix seconds; files that were kept since then stay.

        Returns:
            Number of deleted files.
        """
        ...
