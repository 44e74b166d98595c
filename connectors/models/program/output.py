"""What a model program printed: Claude Code's result, or Codex's events. Pure.

Claude Code's `--output-format json` is one JSON object on one line, perhaps after
others, perhaps the last of an array: `result`, `session_id`, `num_turns`, `usage`,
`total_cost_usd`, `is_error`, and a `subtype` that says how it ended. Codex's `--json`
is an event on each line: `thread.started`, `item.completed` with each message, and
`turn.completed` or `turn.failed` at the end, whose tokens are those of the whole
session.
"""

from __future__ import annotations

import re

import msgspec

from actors.errors import ModelBusyError, ModelError, ModelFault, ModelRefusedError
from actors.messages.inbound import Usage

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
    num_turns: int = 0
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
