"""What the domain needs from outside, named as Protocols.

Each port has one contract suite in `tests/contracts/` that every implementation
passes, fake and real. An implementation translates its library's errors into
those of `actors/errors.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from actors.messages import (
        Attachment,
        Media,
        ModelAnswer,
        ModelRequest,
        ToolCall,
        ToolContext,
        ToolResult,
        ToolSpec,
    )

Speak = Callable[[str], None]
"""Takes the next piece of an answer's text; never waits, never fails."""


class Model(Protocol):
    """A model that answers a transcript.

    Implemented by `connectors/models/scripted.py` (start there) and `http_model.py`,
    which speaks the formats of `openai.py`, `anthropic.py`, `google.py` and
    `ollama.py`; all pass `tests/contracts/test_model.py`.

    A callback instead of an async generator carries the stream: a generator left
    half read needs an async close that cancellation can skip, a callback does not.
    """

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Answer one request; `speak` is given the text piece by piece meanwhile.

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
    """Something an agent can do in the world.

    Implemented in `connectors/tools/`, by `calculate.py` to start with; all pass
    `tests/contracts/test_tool.py`.
    """

    @property
    def spec(self) -> ToolSpec:
        """What the model is told; constant for the tool's life."""
        ...

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run one call. Bad arguments are a result with `is_error`, not an exception.

        Raises:
            ToolError: the tool itself failed; its text goes to the model.
        """
        ...


class MediaReader(Protocol):
    """Makes words and pictures of what came with a message.

    Implemented by `connectors/media/reader.py`; passes
    `tests/contracts/test_media_reader.py`.
    """

    async def read(self, attachments: Sequence[Attachment]) -> Media:
        """Read them, each within its own time; never fails.

        What cannot be read is told in the text, with the reason and what to do.
        """
        ...


@dataclass(frozen=True)
class Noted:
    """Something found worth remembering."""

    kind: str
    """`facts`: memory tags, one in a line; `summary`: what a conversation was about."""

    agent: str
    conversation: str
    """The session's key."""

    sender_id: str
    """Whose words brought it up last."""

    text: str
    """Without secrets, and without any marker but memory tags."""

    is_group: bool = False
    """Whether others read along in that conversation."""

    since: str = ""
    """Mark of the last forgetting before the words it was found in; see
    `rules/forgetting.py`."""


ReadChecklist = Callable[[Path], Awaitable[str]]
"""Gives the text of a heartbeat's file, empty if there is none; raises `ToolError`,
which says why, if it cannot be read. Implemented by `connectors/checklists.py`."""


class Transcriber(Protocol):
    """Writes down what somebody says in a recording.

    Implemented by `connectors/media/transcription.py`; passes
    `tests/contracts/test_transcriber.py`.
    """

    async def transcribe(self, recording: bytes, media_type: str) -> str:
        """Give the words of one recording; empty if nobody speaks.

        Args:
            recording: the file as it came.
            media_type: what it is, by its bytes: `audio/ogg`, `audio/mpeg`, …

        Raises:
            ModelBusyError: try again; `retry_after` is in seconds, or None.
            ModelRefusedError: trying again cannot help.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, at the end."""
        ...


class Speaker(Protocol):
    """Speaks texts.

    Implemented by `connectors/models/speaking.py`; passes
    `tests/contracts/test_speaker.py`.
    """

    @property
    def media_type(self) -> str:
        """What `speak` gives: `audio/mpeg`, …; constant for its life."""
        ...

    @property
    def max_chars(self) -> int:
        """Longest text that is spoken, in characters; constant for its life."""
        ...

    async def speak(self, text: str, voice: str = "") -> bytes:
        """Give a recording of one text.

        Args:
            text: what is said; not longer than `max_chars`.
            voice: the provider's name of a voice; empty: that of the settings.

        Raises:
            ModelBusyError: try again; `retry_after` is in seconds, or None.
            ModelRefusedError: trying again cannot help.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, at the end."""
        ...


class Embedder(Protocol):
    """Gives texts places among others, by what they mean.

    Implemented by `connectors/models/hashing_embedder.py` (start there: no key, no
    network) and `http_embedder.py`, which speaks OpenAI's format and Ollama's; all
    pass `tests/contracts/test_embedder.py`.
    """

    @property
    def space(self) -> str:
        """Name what its vectors can be compared with: maker, model, dimensions."""
        ...

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """Give one vector for each text, in order, as `runtime.vectors.pack` makes it.

        Args:
            texts: at most 256; one that is too long is embedded by its beginning.

        Raises:
            ModelBusyError: try again; `retry_after` is in seconds, or None.
            ModelRefusedError: trying again cannot help.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; called once, at the end."""
        ...


class LogBook(Protocol):
    """Where an agent's days are written down for people, one file each (F162).

    Implemented by `connectors/log_book.py`; passes `tests/contracts/test_log_book.py`.
    """

    async def append(self, agent: str, at: float, text: str) -> None:
        """Add an entry, `- [HH:MM] text`, to the agent's file of that day.

        Args:
            agent: whose.
            at: Unix seconds.
            text: one entry; line breaks become blanks.

        Raises:
            ToolError: it cannot be written; the text says why.
        """
        ...

    async def prune(self, agent: str, before: float) -> int:
        """Remove the agent's files of days that were over before a moment.

        Args:
            agent: whose.
            before: Unix seconds.

        Returns:
            How many files; some may be left for the next time.

        Raises:
            ToolError: they cannot be removed; the text says why.
        """
        ...


@dataclass(frozen=True)
class Jot:
    """What became of something that was to be written down, or looked up."""

    text: str = ""
    """What stands there now, in the notebook's own words."""

    why: str = ""
    """Why nothing came of it, for people; empty: it stands there."""


class Notebook(Protocol):
    """The operator's files that agents may add to, or have read to them.

    Implemented by `connectors/notebook.py`; passes `tests/contracts/test_notebook.py`.
    Names and texts come from models: whatever they hold, nothing outside the settings'
    own places is touched, and what cannot be done is told, never raised. The same
    thing written twice stands there once, and is told the same both times.
    """

    async def improve_skill(
        self, agent: str, skill: str, lesson: str, *, is_owner: bool
    ) -> Jot:
        """Add a lesson to a skill that the agent has; it counts at once (F255).

        Args:
            agent: who learnt it.
            skill: its name.
            lesson: one sentence, without secrets.
            is_owner: whether an owner's own words led to it.
        """
        ...

    async def report_bug(self, agent: str, at: float, text: str) -> Jot:
        """Add a report to the file of bugs (F256).

        Args:
            agent: who reports it.
            at: Unix seconds.
            text: without secrets; line breaks become blanks, a long one is cut.
        """
        ...

    async def find_project(self, name: str) -> Jot:
        """Give a project's own name, if it can be read (F257)."""
        ...

    async def read_project(self, name: str) -> Jot:
        """Give what the operator wrote of a project."""
        ...


@dataclass(frozen=True)
class Offer:
    """What an agent has beside its own tools, for a moment."""

    tools: tuple[Tool, ...] = ()
    notes: tuple[str, ...] = ()
    """What its model is told beside them: which of them are out of order, what it
    should know to use them. Part of the prompt."""

    standing: tuple[str, ...] = ()
    """The same, as far as it is the same for every message."""


class ToolSource(Protocol):
    """Where agents find tools that come and go: those of servers, and of skills.

    Implemented by `connectors/mcp/source.py` and `connectors/skills/source.py`; all
    pass `tests/contracts/test_tool_source.py`.
    """

    async def offer(self, context: ToolContext, words: str) -> Offer:
        """Say what an agent has now; asked before each round of a turn.

        Waits a few seconds at most, and never fails: what cannot be had is a note.
        The names of tools are unique over all sources.

        Args:
            context: who asks, and on whose behalf.
            words: what the agent was told in this turn.
        """
        ...
